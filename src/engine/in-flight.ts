/** How many calls are being handled: per conversation, per user where each call is a conversation of its own, and in all. */
import { callerAccount, Occupancy, shareText, Tally } from '../core/occupancy.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Exchange } from './exchange.ts'
import type { Limits } from './limits.ts'

/** While so few run it does not matter whose they are. */
const calm = 64

export class InFlight {
  readonly #limits: Limits
  /** Of stateless calls: whatever else one principal sends at once is not held against another one. */
  readonly #users = new Tally<string>()
  /** Of all that began when so many ran already that one network could keep others out. */
  readonly #crowd: Occupancy
  /** In whose share each of them is counted. */
  readonly #shares = new Map<Exchange, string>()
  /** Stateless calls under way: no conversation remembers them. Of callers without a principal only where `keepsAll`. */
  readonly alone = new Set<Exchange>()
  /** Calls that go on when nobody waits for their answer, as tasks or streams, and what ends each of them. */
  readonly detached = new Map<Exchange, (why: Error) => void>()
  /** Somebody looks at all calls under way, whoever made them. */
  keepsAll = false
  #all = 0
  /** Made once: in a flood each would cost more, by its stack, than all the rest of a refusal. */
  readonly #ofConnection: McpError
  readonly #ofPrincipal: McpError
  readonly #ofAll: McpError
  readonly #ofNetwork: McpError

  constructor(limits: Limits) {
    const { callsPerConversation, calls } = limits
    this.#limits = limits
    this.#crowd = new Occupancy(calls)
    this.#ofNetwork = busy(`${shareText(`${calls} calls`)} (calls); wait for one to end, or sign in`)
    this.#ofConnection = tooMany(`${callsPerConversation} calls of this connection`, 'callsPerConversation')
    this.#ofPrincipal = tooMany(`${callsPerConversation} calls of yours`, 'callsPerConversation')
    this.#ofAll = tooMany(`${calls} calls`, 'calls')
  }

  /** Running calls are never dropped; new ones are refused while there are too many. */
  refusal({ conversation, route, caller }: Exchange): McpError | undefined {
    if (route.method.lasting === true || route.method.instant === true) return undefined
    const { callsPerConversation, calls } = this.#limits
    if (conversation.inFlight >= callsPerConversation) return this.#ofConnection
    if (caller.principal !== undefined && isAlone(conversation) && this.#users.of(callerAccount(caller)) >= callsPerConversation)
      return this.#ofPrincipal
    if (this.#all >= calls) return this.#ofAll
    // Most of the time there is room for all, and nobody is asked where he comes from.
    return this.#crowd.held > 0 && this.#crowd.refusal(callerAccount(caller)) !== undefined ? this.#ofNetwork : undefined
  }

  enter(exchange: Exchange): void {
    if (this.#all >= calm && exchange.route.method.lasting !== true) {
      const account = callerAccount(exchange.caller)
      this.#shares.set(exchange, account)
      this.#crowd.enter(account)
    }
    if ((exchange.caller.principal !== undefined || this.keepsAll) && isAlone(exchange.conversation)) this.alone.add(exchange)
    this.#count(exchange, 1)
  }

  leave(exchange: Exchange): void {
    const account = this.#shares.size === 0 ? undefined : this.#shares.get(exchange)
    if (account !== undefined) {
      this.#crowd.leave(account)
      this.#shares.delete(exchange)
    }
    this.alone.delete(exchange)
    this.#count(exchange, -1)
  }

  #count({ conversation, route, caller }: Exchange, by: 1 | -1): void {
    if (route.method.lasting === true) return
    this.#all += by
    if (caller.principal !== undefined && isAlone(conversation)) this.#users.add(callerAccount(caller), by)
  }
}

/** Nothing is remembered from one call to the next: who sends them is all that they have in common. */
function isAlone({ connection, session }: Exchange['conversation']): boolean {
  return connection === undefined && session === undefined
}

function tooMany(what: string, limit: keyof Limits): McpError {
  return busy(`${what} are in flight, which is the limit (${limit}); wait for one to end`)
}

function busy(message: string): McpError {
  return new McpError('busy', message, { data: { retryAfterMs: 1000 } })
}
