/** How many tasks are at work: per user, else per session or connection, and in all. */
import { callerAccount, Occupancy, shareText, Tally } from '../../../core/occupancy.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'

export interface RunningLimitOptions {
  /** Tasks at work in all. */
  readonly runningTasks: number
  /** Tasks at work per principal, else per session or connection. */
  readonly runningTasksPerCaller: number
}

export class RunningTasks {
  readonly #limits: RunningLimitOptions
  readonly #owners = new Tally<object | string>()
  readonly #places: Occupancy
  readonly #accounts = new WeakMap<Exchange, string>()

  constructor(limits: RunningLimitOptions) {
    this.#limits = limits
    this.#places = new Occupancy(limits.runningTasks)
  }

  /** Throws a busy refusal when there is none left. */
  take(exchange: Exchange): void {
    const { runningTasks, runningTasksPerCaller } = this.#limits
    const owner = ownerOf(exchange)
    if (owner !== undefined && this.#owners.of(owner) >= runningTasksPerCaller)
      throw full(`${runningTasksPerCaller} tasks of yours are running, which is the limit (runningTasksPerCaller)`)
    const account = callerAccount(exchange.caller)
    const refusal = this.#places.refusal(account)
    if (refusal === 'share') throw full(`${shareText(`${runningTasks} tasks that may run`)} (runningTasks)`)
    if (refusal !== undefined) throw full(`${runningTasks} tasks are running, which is the limit (runningTasks)`)
    this.#places.enter(account)
    // Kept, because a socket forgets its address when it is closed.
    this.#accounts.set(exchange, account)
    if (owner !== undefined) this.#owners.add(owner, 1)
  }

  leave(exchange: Exchange): void {
    const owner = ownerOf(exchange)
    this.#places.leave(this.#accounts.get(exchange) ?? callerAccount(exchange.caller))
    if (owner !== undefined) this.#owners.add(owner, -1)
  }
}

/** Undefined where nothing tells one caller from another: only the total holds for those. */
function ownerOf({ caller, conversation }: Exchange): object | string | undefined {
  if (caller.principal !== undefined) return callerAccount(caller)
  return conversation.connection === undefined && conversation.session === undefined ? undefined : conversation
}

const waitMs = 1_000

function full(what: string): McpError {
  const message = `${what}; wait ${waitMs} ms, or until one has ended or is cancelled, and try again`
  return new McpError('busy', message, { data: { retryAfterMs: waitMs } })
}
