/**
 * One connection to an upstream, and the calls that are on their way through it. What the upstream asks or logs goes to the caller
 * whose call brought it about: by the stream on which it came, where each call has its own. On a pipe that all share nothing says
 * whose it is. It goes to the only caller that has calls in flight; where there are several it waits for a while until the others
 * are done, and is refused by name where they are not. From then on callers take turns on that pipe.
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

/** How long a question whose caller is not certain waits to become so. */
const doubtMs = 10_000
/** How long a server may take to withdraw what it asks for a call that was given up. */
const withdrawMs = 5_000

/** What a connection to an upstream needs of the gateway. */
export interface UpstreamConnectionPort {
  readonly clock: Clock
  readonly shares: Required<ShareOptions>
  trace(event: string, detail: unknown): void
  /** Some caller is sent to a page, and the page has done its work. */
  readonly pages: Pages
  /** The upstream works with the folders of this caller. */
  rooted(upstream: string, upstreamCall: UpstreamCall): void
  /** Nothing of the upstream is kept from this caller. */
  seesAll(upstream: string, caller: Caller): boolean
}

/** Routes what an upstream asks and logs to the call that it belongs to. */
export class UpstreamConnection {
  readonly upstream: string
  readonly #turns: CallTurns
  readonly #places: UpstreamSlots
  readonly #port: UpstreamConnectionPort
  readonly #upstreamCalls = new Map<Id, UpstreamCall>()
  /** Those of them that nobody waits for any more. */
  readonly #given = new Set<UpstreamCall>()
  readonly #doubts = new Set<() => void>()
  /** The least severe level that this upstream was told to send. */
  #level: number = levels.length
  #levelling: Promise<void> | undefined = undefined

  constructor(upstream: string, port: UpstreamConnectionPort) {
    this.upstream = upstream
    this.#port = port
    this.#places = new UpstreamSlots(upstream, port.clock, port.shares)
    const giveWay = (owner: object): void => this.#giveWay(owner)
    this.#turns = new CallTurns({ upstream, clock: port.clock, waiting: port.shares.waiting, giveWay })
  }

  /** For the connection itself. */
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

  /** What nothing ties to a call may be about anything: whoever sees only some of a server does not get it. */
  #mayHear({ first: { caller } }: UpstreamCall, within: Id | undefined): boolean {
    return within !== undefined || this.#port.seesAll(this.upstream, caller)
  }

  /** Somebody waits for an answer. */
  get busy(): boolean {
    for (const upstreamCall of this.#upstreamCalls.values()) if (!this.#given.has(upstreamCall)) return true
    return false
  }

  /** A call is to be made. Undefined: at once. Rejects where there is no place for it, or its turn does not come. */
  enter(exchange: Exchange): Promise<void> | undefined {
    const place = this.#places.enter(exchange)
    return place === undefined ? this.#turn(exchange) : place.then(() => this.#turn(exchange))
  }

  /** A call that gets no turn gives its slot back. */
  #turn(exchange: Exchange): Promise<void> | undefined {
    return this.#turns.enter(exchange)?.catch(error => {
      this.#places.leave(sharerOf(exchange.caller))
      throw error
    })
  }

  /** Others have waited for long, and this caller was asked something. */
  #giveWay(owner: object): void {
    for (const upstreamCall of this.#upstreamCalls.values())
      if (upstreamCall.owner === owner && upstreamCall.open.size > 0)
        upstreamCall.stop('Other callers waited for this server while the question was not answered; call again')
  }

  /** The call was sent under this id; one that is sent again has another. */
  add(id: Id, upstreamCall: UpstreamCall): void {
    if (upstreamCall.id !== undefined) this.#upstreamCalls.delete(upstreamCall.id)
    upstreamCall.id = id
    this.#upstreamCalls.set(id, upstreamCall)
  }

  /**
   * Its call has ended. One that its server did not answer was given up: what that asks for it before it knows so must not come to
   * somebody else.
   */
  over(upstreamCall: UpstreamCall, answered: boolean): void {
    if (answered) this.#forget(upstreamCall)
    else {
      this.#given.add(upstreamCall)
      this.#port.clock.setTimeout(() => this.#forget(upstreamCall), withdrawMs, true)
    }
    this.#turns.leave(upstreamCall.owner)
  }

  #forget(upstreamCall: UpstreamCall): void {
    this.#given.delete(upstreamCall)
    this.#places.leave(sharerOf(upstreamCall.first.caller))
    if (upstreamCall.id !== undefined) this.#upstreamCalls.delete(upstreamCall.id)
    if (this.#doubts.size > 0) for (const look of this.#doubts) look()
  }

  /** Its caller is sent to pages by a refusal. */
  sent(upstreamCall: UpstreamCall, pages: readonly Params[]): void {
    for (const { elicitationId: id } of pages) if (typeof id === 'string') this.#port.pages.sent(this.upstream, id, upstreamCall)
  }

  /** A session that has a level for all hears the least severe that any caller wants. */
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

  /** Finds the call for which the upstream asks, and asks its caller. */
  async #ask(method: Method, params: Params, { signal, within, task }: AskedFrom): Promise<unknown> {
    const found = (task === undefined ? undefined : this.#ofTask(task)) ?? this.#upstreamCall(within)
    const upstreamCall = found === 'several' ? await this.#certain(signal) : found
    if (upstreamCall === 'none')
      throw new McpError('invalid-request', `${method.name}: no call is under way for whose caller this could be`)
    if (upstreamCall !== 'several') {
      if (typeof params['elicitationId'] === 'string') this.#port.pages.sent(this.upstream, params['elicitationId'], upstreamCall)
      if (method.name === listRoots.name) this.#port.rooted(this.upstream, upstreamCall)
      return upstreamCall.ask(method, params, signal)
    }
    throw new McpError(
      'invalid-request',
      `${method.name}: several callers have calls under way, and nothing says whose this is. Ask again: they take turns from now on`,
    )
  }

  /** A task has no stream of its own: its questions come on that of whoever waits for it, and say whose they are. */
  #ofTask(task: string): UpstreamCall | undefined {
    for (const upstreamCall of this.#upstreamCalls.values()) if (upstreamCall.task === task) return upstreamCall
    return undefined
  }

  /** The call of that stream, or the only caller's where there is no stream. */
  #upstreamCall(within: Id | undefined): UpstreamCall | 'none' | 'several' {
    if (within !== undefined) return this.#upstreamCalls.get(within) ?? 'none'
    let found: UpstreamCall | undefined
    for (const upstreamCall of this.#upstreamCalls.values()) {
      if (found !== undefined && found.owner !== upstreamCall.owner) return 'several'
      found = upstreamCall
    }
    return found ?? 'none'
  }

  /** A call that ends did not wait for an answer: when one caller is left it is that one's question. */
  #certain(signal: AbortSignal): Promise<UpstreamCall | 'none' | 'several'> {
    this.#turns.begin([...this.#upstreamCalls.values()].filter(upstreamCall => !this.#given.has(upstreamCall)))
    this.#port.trace('upstream-question', `The server ${quoted(this.upstream)} asks, and several callers wait for it`)
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
