/**
 * One connection to an upstream and the calls under way on it. Questions and log messages go to the client whose call caused them. Where
 * each call has its own stream, the stream decides. On a shared pipe they go to the only client with calls in flight; with several
 * clients a question waits for the others to finish and is refused if they do not. From then on clients take turns on that pipe.
 */
import type { Client } from '../../client/client.ts'
import type { AskedFrom, Relaying } from '../../client/relaying.ts'
import type { Clock } from '../../core/clock.ts'
import { quoted } from '../../core/suggestion.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Method } from '../../engine/method.ts'
import { type LogLevel, levels } from '../../features/mcp/logging/messages.ts'
import { listRoots } from '../../features/mcp/roots/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Id, Params } from '../../jsonrpc/message.ts'
import { type ShareOptions, sharerOf } from '../shares.ts'
import type { Pages } from './questions.ts'
import { CallTurns, UpstreamSlots } from './turns.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** How long a question with several possible owners waits. */
const doubtMs = 10_000
/** How long an upstream may take to withdraw questions of a cancelled call. */
const withdrawMs = 5_000

/** What a connection needs from the rest of the gateway. */
export interface UpstreamConnectionPort {
  readonly clock: Clock
  readonly shares: Required<ShareOptions>
  trace(event: string, detail: unknown): void
  /** The pages that clients were sent to. */
  readonly pages: Pages
  /** The upstream asked for this client's roots. */
  rooted(upstream: string, upstreamCall: UpstreamCall): void
  /** Whether this caller may see everything of the upstream. */
  seesAll(upstream: string, caller: Caller): boolean
}

/** Routes what an upstream asks and logs to the call that it belongs to. */
export class UpstreamConnection {
  readonly upstream: string
  readonly #turns: CallTurns
  readonly #places: UpstreamSlots
  /** Calls under way by request id. */
  readonly #port: UpstreamConnectionPort
  readonly #upstreamCalls = new Map<Id, UpstreamCall>()
  /** Cancelled calls that the upstream has not confirmed; a subset of the calls under way. */
  readonly #given = new Set<UpstreamCall>()
  /** Callbacks of questions that wait for their owner to become certain. */
  readonly #doubts = new Set<() => void>()
  /** The least severe log level requested so far, as an index; smaller is less severe. */
  #level: number = levels.length
  #levelling: Promise<void> | undefined = undefined

  constructor(upstream: string, port: UpstreamConnectionPort) {
    this.upstream = upstream
    this.#port = port
    this.#places = new UpstreamSlots(upstream, port.clock, port.shares)
    const giveWay = (owner: object): void => this.#giveWay(owner)
    this.#turns = new CallTurns({ upstream, clock: port.clock, waiting: port.shares.waiting, giveWay })
  }

  /** The callbacks for the client side of the connection. */
  get relaying(): Relaying {
    return {
      ask: (method, params, from) => this.#ask(method, params, from),
      log: ({ level, data, logger }, within) => {
        const upstreamCall = this.#upstreamCall(within)
        if (typeof upstreamCall === 'object' && this.#mayHear(upstreamCall, within)) upstreamCall.ctx.log(level, data, logger)
        else this.#port.trace('upstream-log', { server: this.upstream, level, data })
      },
      elicitationDone: id => this.#port.pages.done(this.upstream, id),
    }
  }

  /** A log message without a known call may be about anything, so only a client that sees the whole upstream gets it. */
  #mayHear({ first: { caller } }: UpstreamCall, within: Id | undefined): boolean {
    return within !== undefined || this.#port.seesAll(this.upstream, caller)
  }

  /** Whether any call waits for an answer. */
  get busy(): boolean {
    for (const upstreamCall of this.#upstreamCalls.values()) if (!this.#given.has(upstreamCall)) return true
    return false
  }

  /** Admits a call. Undefined: at once. Rejects where there is no slot or its turn does not come. */
  enter(exchange: Exchange): Promise<void> | undefined {
    const place = this.#places.enter(exchange)
    return place === undefined ? this.#turn(exchange) : place.then(() => this.#turn(exchange))
  }

  /** Waits for the turn; a call that gets none gives its slot back. */
  #turn(exchange: Exchange): Promise<void> | undefined {
    return this.#turns.enter(exchange)?.catch(error => {
      this.#places.leave(sharerOf(exchange.caller))
      throw error
    })
  }

  /** Cancels this client's calls with open questions, because others have waited too long. */
  #giveWay(owner: object): void {
    for (const upstreamCall of this.#upstreamCalls.values())
      if (upstreamCall.owner === owner && upstreamCall.open.size > 0)
        upstreamCall.stop('The question was not answered in time, and other clients wait for this server. Repeat the call')
  }

  /** Registers the id of a sent call; a repeated call has a new id. */
  add(id: Id, upstreamCall: UpstreamCall): void {
    if (upstreamCall.id !== undefined) this.#upstreamCalls.delete(upstreamCall.id)
    upstreamCall.id = id
    this.#upstreamCalls.set(id, upstreamCall)
  }

  /**
   * A call has ended. A call without an answer was cancelled: it stays registered for a while, so that late questions for it do not reach
   * another client.
   */
  over(upstreamCall: UpstreamCall, answered: boolean): void {
    if (answered) this.#forget(upstreamCall)
    else {
      this.#given.add(upstreamCall)
      this.#port.clock.setTimeout(() => this.#forget(upstreamCall), withdrawMs, true)
    }
    this.#turns.leave(upstreamCall.owner)
  }

  /** Removes a call, and checks whether waiting questions now have a single owner. */
  #forget(upstreamCall: UpstreamCall): void {
    this.#given.delete(upstreamCall)
    this.#places.leave(sharerOf(upstreamCall.first.caller))
    if (upstreamCall.id !== undefined) this.#upstreamCalls.delete(upstreamCall.id)
    if (this.#doubts.size > 0) for (const look of this.#doubts) look()
  }

  /** Remembers that an error sent the client to pages. */
  sent(upstreamCall: UpstreamCall, pages: readonly Params[]): void {
    for (const { elicitationId: id } of pages) if (typeof id === 'string') this.#port.pages.sent(this.upstream, id, upstreamCall)
  }

  /** Sets the log level of a session: the least severe level that any client wants. */
  level(client: Client, wanted: LogLevel): Promise<void> | undefined {
    const at = levels.indexOf(wanted)
    if (at >= this.#level || client.capabilities['logging'] === undefined) return this.#levelling
    this.#level = at
    this.#levelling = client
      .setLogLevel(wanted)
      .catch(error => this.#port.trace('upstream-log-level', { server: this.upstream, error }))
      .finally(() => {
        this.#levelling = undefined
      })
    return this.#levelling
  }

  /** Finds the call that a question belongs to, and asks its client. */
  async #ask(method: Method, params: Params, { signal, within, task }: AskedFrom): Promise<unknown> {
    const found = (task === undefined ? undefined : this.#ofTask(task)) ?? this.#upstreamCall(within)
    const upstreamCall = found === 'several' ? await this.#certain(signal) : found
    if (upstreamCall === 'none')
      throw new McpError('invalid-request', `${method.name}: no client has an open call that this request could be for`)
    if (upstreamCall !== 'several') {
      if (typeof params['elicitationId'] === 'string') this.#port.pages.sent(this.upstream, params['elicitationId'], upstreamCall)
      if (method.name === listRoots.name) this.#port.rooted(this.upstream, upstreamCall)
      return upstreamCall.ask(method, params, signal)
    }
    throw new McpError(
      'invalid-request',
      `${method.name}: several clients have open calls, and the request does not say which one it is for. Retry: the gateway now sends calls one at a time`,
    )
  }

  /** A task's questions arrive on the stream of the request that waits for it, but name the task. */
  #ofTask(task: string): UpstreamCall | undefined {
    for (const upstreamCall of this.#upstreamCalls.values()) if (upstreamCall.task === task) return upstreamCall
    return undefined
  }

  /** The call of a stream; without a stream, a call of the only client. */
  #upstreamCall(within: Id | undefined): UpstreamCall | 'none' | 'several' {
    if (within !== undefined) return this.#upstreamCalls.get(within) ?? 'none'
    let found: UpstreamCall | undefined
    for (const upstreamCall of this.#upstreamCalls.values()) {
      if (found !== undefined && found.owner !== upstreamCall.owner) return 'several'
      found = upstreamCall
    }
    return found ?? 'none'
  }

  /** Waits until a single owner is left: a call that ends was not waiting for an answer. */
  #certain(signal: AbortSignal): Promise<UpstreamCall | 'none' | 'several'> {
    this.#turns.begin([...this.#upstreamCalls.values()].filter(upstreamCall => !this.#given.has(upstreamCall)))
    this.#port.trace(
      'upstream-question',
      `The server ${quoted(this.upstream)} sent a question while several clients wait for it. Their calls now run one at a time`,
    )
    return new Promise(resolve => {
      const done = (upstreamCall: UpstreamCall | 'none' | 'several'): void => {
        cancel()
        this.#doubts.delete(look)
        signal.removeEventListener('abort', late)
        resolve(upstreamCall)
      }
      const look = (): void => {
        const upstreamCall = this.#upstreamCall(undefined)
        if (upstreamCall !== 'several') done(upstreamCall)
      }
      const late = (): void => done('several')
      const cancel = this.#port.clock.setTimeout(late, doubtMs, true)
      this.#doubts.add(look)
      signal.addEventListener('abort', late, { once: true })
    })
  }
}
