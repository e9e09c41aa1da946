/**
 * One connection to an upstream, and the calls that are on their way through it. What the upstream asks or logs goes to the caller
 * whose call brought it about: by the stream on which it came, where each call has its own. On a pipe that all share nothing says
 * whose it is. It goes to the only caller that has calls in flight; where there are several it waits for a while until the others
 * are done, and is refused by name where they are not. From then on callers take turns on that pipe.
 */
import type { Client } from '../../client/client.ts'
import type { AskedFrom, Relaying } from '../../client/relaying.ts'
import type { Clock } from '../../core/clock.ts'
import { quoted } from '../../core/why.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Method } from '../../engine/method.ts'
import { type LogLevel, levels } from '../../features/mcp/logging/messages.ts'
import { listRoots } from '../../features/mcp/roots/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Id, Params } from '../../jsonrpc/message.ts'
import { type ShareOptions, sharerOf } from '../shares.ts'
import type { Flight } from './flight.ts'
import type { Pages } from './pages.ts'
import { Places } from './places.ts'
import { Turns } from './turns.ts'

/** How long a question whose caller is not certain waits to become so. */
const doubtMs = 10_000
/** How long a server may take to withdraw what it asks for a call that was given up. */
const withdrawMs = 5_000

export interface LinePort {
  readonly clock: Clock
  readonly shares: Required<ShareOptions>
  trace(event: string, detail: unknown): void
  /** Some caller is sent to a page, and the page has done its work. */
  readonly pages: Pages
  /** The upstream works with the folders of this caller. */
  rooted(upstream: string, flight: Flight): void
  /** Nothing of the upstream is kept from this caller. */
  seesAll(upstream: string, caller: Caller): boolean
}

export class Line {
  readonly upstream: string
  readonly #turns: Turns
  readonly #places: Places
  readonly #port: LinePort
  readonly #flights = new Map<Id, Flight>()
  /** Those of them that nobody waits for any more. */
  readonly #given = new Set<Flight>()
  readonly #doubts = new Set<() => void>()
  /** The least severe level that this upstream was told to send. */
  #level: number = levels.length
  #levelling: Promise<void> | undefined = undefined

  constructor(upstream: string, port: LinePort) {
    this.upstream = upstream
    this.#port = port
    this.#places = new Places(upstream, port.clock, port.shares)
    const giveWay = (owner: object): void => this.#giveWay(owner)
    this.#turns = new Turns({ upstream, clock: port.clock, waiting: port.shares.waiting, giveWay })
  }

  /** For the connection itself. */
  get relaying(): Relaying {
    return {
      ask: (method, params, from) => this.#ask(method, params, from),
      log: ({ level, data, logger }, within) => {
        const flight = this.#flight(within)
        if (typeof flight === 'object' && this.#mayHear(flight, within)) flight.ctx.log(level, data, logger)
        else this.#port.trace('upstream-log', { server: this.upstream, level, data })
      },
      elicitationDone: id => this.#port.pages.done(this.upstream, id),
    }
  }

  /** What nothing ties to a call may be about anything: whoever sees only some of a server does not get it. */
  #mayHear({ first: { caller } }: Flight, within: Id | undefined): boolean {
    return within !== undefined || this.#port.seesAll(this.upstream, caller)
  }

  /** Somebody waits for an answer. */
  get busy(): boolean {
    for (const flight of this.#flights.values()) if (!this.#given.has(flight)) return true
    return false
  }

  /** A call is to be made. Undefined: at once. Rejects where there is no place for it, or its turn does not come. */
  enter(exchange: Exchange): Promise<void> | undefined {
    const place = this.#places.enter(exchange)
    return place === undefined ? this.#turn(exchange) : place.then(() => this.#turn(exchange))
  }

  #turn(exchange: Exchange): Promise<void> | undefined {
    return this.#turns.enter(exchange)?.catch(error => {
      this.#places.leave(sharerOf(exchange.caller))
      throw error
    })
  }

  /** Others have waited for long, and this caller was asked something. */
  #giveWay(owner: object): void {
    for (const flight of this.#flights.values())
      if (flight.owner === owner && flight.open.size > 0)
        flight.stop('Other callers waited for this server while the question was not answered; call again')
  }

  add(id: Id, flight: Flight): void {
    if (flight.id !== undefined) this.#flights.delete(flight.id)
    flight.id = id
    this.#flights.set(id, flight)
  }

  /**
   * Its call has ended. One that its server did not answer was given up: what that asks for it before it knows so must not come to
   * somebody else.
   */
  over(flight: Flight, answered: boolean): void {
    if (answered) this.#forget(flight)
    else {
      this.#given.add(flight)
      this.#port.clock.setTimeout(() => this.#forget(flight), withdrawMs, true)
    }
    this.#turns.leave(flight.owner)
  }

  #forget(flight: Flight): void {
    this.#given.delete(flight)
    this.#places.leave(sharerOf(flight.first.caller))
    if (flight.id !== undefined) this.#flights.delete(flight.id)
    if (this.#doubts.size > 0) for (const look of this.#doubts) look()
  }

  /** Its caller is sent to pages by a refusal. */
  sent(flight: Flight, pages: readonly Params[]): void {
    for (const { elicitationId: id } of pages) if (typeof id === 'string') this.#port.pages.sent(this.upstream, id, flight)
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

  async #ask(method: Method, params: Params, { signal, within, task }: AskedFrom): Promise<unknown> {
    const found = (task === undefined ? undefined : this.#ofTask(task)) ?? this.#flight(within)
    const flight = found === 'several' ? await this.#certain(signal) : found
    if (flight === 'none')
      throw new McpError('invalid-request', `${method.name}: no call is under way for whose caller this could be`)
    if (flight !== 'several') {
      if (typeof params['elicitationId'] === 'string') this.#port.pages.sent(this.upstream, params['elicitationId'], flight)
      if (method.name === listRoots.name) this.#port.rooted(this.upstream, flight)
      return flight.ask(method, params, signal)
    }
    throw new McpError(
      'invalid-request',
      `${method.name}: several callers have calls under way, and nothing says whose this is. Ask again: they take turns from now on`,
    )
  }

  /** A task has no stream of its own: its questions come on that of whoever waits for it, and say whose they are. */
  #ofTask(task: string): Flight | undefined {
    for (const flight of this.#flights.values()) if (flight.task === task) return flight
    return undefined
  }

  #flight(within: Id | undefined): Flight | 'none' | 'several' {
    if (within !== undefined) return this.#flights.get(within) ?? 'none'
    let found: Flight | undefined
    for (const flight of this.#flights.values()) {
      if (found !== undefined && found.owner !== flight.owner) return 'several'
      found = flight
    }
    return found ?? 'none'
  }

  /** A call that ends did not wait for an answer: when one caller is left it is that one's question. */
  #certain(signal: AbortSignal): Promise<Flight | 'none' | 'several'> {
    this.#turns.begin([...this.#flights.values()].filter(flight => !this.#given.has(flight)))
    this.#port.trace('upstream-question', `The server ${quoted(this.upstream)} asks, and several callers wait for it`)
    return new Promise(resolve => {
      const done = (flight: Flight | 'none' | 'several'): void => {
        cancel()
        this.#doubts.delete(look)
        signal.removeEventListener('abort', late)
        resolve(flight)
      }
      const look = (): void => {
        const flight = this.#flight(undefined)
        if (flight !== 'several') done(flight)
      }
      const late = (): void => done('several')
      const cancel = this.#port.clock.setTimeout(late, doubtMs, true)
      this.#doubts.add(look)
      signal.addEventListener('abort', late, { once: true })
    })
  }
}
