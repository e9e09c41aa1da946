/** Calls whose callers are away with questions: kept until they come back, and given up when they do not. */
import type { Clock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/context.ts'
import { Shares, sharerOf } from '../shares.ts'
import type { Desk, Flight } from './flight.ts'
import type { SharedDesk } from './shared-desk.ts'
import { read } from './written.ts'

/** How long the outcome of a call that was parked is kept for a caller whose connection broke over it. */
const keptMs = 60_000
const mostParked = 10_000

export interface DeskOptions {
  readonly clock: Clock
  /** How long a caller may take over its answers. */
  readonly askMs: number
  /** Where callers may come back to another process. */
  readonly shared?: SharedDesk | undefined
}

export class Parking implements Desk {
  readonly #options: DeskOptions
  readonly #flights = new Map<string, Flight>()
  readonly #ends = new Map<string, () => void>()
  readonly #places = new Shares(mostParked)

  constructor(options: DeskOptions) {
    this.#options = options
    options.shared?.answered(({ flight, key, said }) => {
      const question = this.#flights.get(flight)?.open.get(key)
      try {
        question?.resolve(read(said))
      } catch (error) {
        question?.reject(error)
      }
    })
  }

  name(): string {
    return this.#options.shared?.name() ?? crypto.randomUUID()
  }

  /** The caller is back with its answers, here or at another process than the one that made the call. */
  rejoin(name: string, ctx: Context): Promise<unknown> {
    const flight = this.#flights.get(name)
    if (flight !== undefined) return flight.join(ctx)
    const { shared } = this.#options
    return shared === undefined ? Promise.reject(lost()) : shared.join(name, ctx)
  }

  park(flight: Flight): Awaitable<void> {
    const { name } = flight
    if (name === undefined) return
    if (!this.#flights.has(name)) {
      if (!this.#places.take(sharerOf(flight.first.caller))) return this.#refuse(flight)
      this.#flights.set(name, flight)
    }
    this.#within(name, this.#options.askMs, () => flight.stop('The caller did not come back with its answers'))
    return this.#options.shared?.save(flight, this.#options.askMs)
  }

  /** It is given up, and its caller hears why instead of what it is asked. */
  #refuse(flight: Flight): Promise<void> {
    const held = this.#places.of(sharerOf(flight.first.caller))
    const message = `${held} of your calls wait for your answers, which is your share: ${mostParked} may wait in all`
    flight.stop(message)
    return Promise.reject(problem('RATE_LIMIT_EXCEEDED', message, { retryAfter: 5_000, suggestion: 'Answer some of them first' }))
  }

  joined({ name = '' }: Flight): void {
    this.#ends.get(name)?.()
    this.#ends.delete(name)
  }

  changed(flight: Flight): void {
    const { name } = flight
    if (name === undefined || !this.#flights.has(name)) return
    this.#options.shared?.save(flight, flight.ended === undefined ? this.#options.askMs : keptMs).catch(() => {})
    if (flight.ended !== undefined) this.#within(name, keptMs, () => {})
  }

  ended({ name }: Flight): void {
    if (name === undefined || !this.#flights.has(name)) return
    this.#within(name, keptMs, () => {})
    this.#options.shared?.drop(name).catch(() => {})
  }

  /** Their callers may not go on with them: what their upstreams asked is never answered. */
  withdraw(isOver: (first: Exchange) => boolean): void {
    for (const [name, flight] of this.#flights) {
      if (!isOver(flight.first)) continue
      this.#ends.get(name)?.()
      this.#ends.delete(name)
      this.#flights.delete(name)
      this.#places.leave(sharerOf(flight.first.caller))
      flight.stop('The caller may not make this call any more')
      this.#options.shared?.drop(name).catch(() => {})
    }
  }

  async close(): Promise<void> {
    for (const cancel of this.#ends.values()) cancel()
    for (const flight of this.#flights.values()) flight.stop('The gateway is closed')
    this.#flights.clear()
    await this.#options.shared?.close()
  }

  #within(name: string, ms: number, then: () => void): void {
    this.#ends.get(name)?.()
    const over = (): void => {
      this.#ends.delete(name)
      const flight = this.#flights.get(name)
      if (flight !== undefined) this.#places.leave(sharerOf(flight.first.caller))
      this.#flights.delete(name)
      then()
    }
    this.#ends.set(name, this.#options.clock.setTimeout(over, ms, true))
  }
}

/** What was parked is gone: with its process, or because nobody came for so long. */
export function lost(): Error {
  return problem('OUTCOME_UNKNOWN', 'The call that this answers is no longer waited for; what came of it is not known', {
    suggestion: 'Look whether it was done before you call again',
  })
}
