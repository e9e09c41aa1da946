/** Callers that take turns on a pipe on which nothing says whose a question is. Until that matters nobody waits. */
import type { Clock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import { quoted } from '../../core/why.ts'
import type { Flight } from './flight.ts'

/** How long a caller waits for its turn. */
const patienceMs = 30_000
const mostWaiting = 1_000

interface Waiter {
  readonly owner: object
  readonly go: () => void
}

export class Turns {
  readonly #upstream: string
  readonly #clock: Clock
  /** By caller, its calls under way. Undefined: nobody takes turns here. */
  #busy: Map<object, number> | undefined = undefined
  readonly #waiting: Waiter[] = []

  constructor(upstream: string, clock: Clock) {
    this.#upstream = upstream
    this.#clock = clock
  }

  /** From now on only one caller at a time has calls under way. */
  begin(flights: Iterable<Flight>): void {
    if (this.#busy !== undefined) return
    this.#busy = new Map()
    for (const { owner } of flights) this.#busy.set(owner, (this.#busy.get(owner) ?? 0) + 1)
  }

  /** Undefined: it is this caller's turn. */
  enter(owner: object, call: { readonly signal: AbortSignal }): Promise<void> | undefined {
    const busy = this.#busy
    if (busy === undefined) return undefined
    if (this.#waiting.length === 0 && (busy.size === 0 || (busy.size === 1 && busy.has(owner)))) return this.#take(busy, owner)
    return this.#wait(busy, owner, call.signal)
  }

  leave(owner: object): void {
    const busy = this.#busy
    if (busy === undefined) return
    const count = (busy.get(owner) ?? 1) - 1
    if (count > 0) busy.set(owner, count)
    else busy.delete(owner)
    if (busy.size > 0) return
    // All that the next caller waits with is let in together.
    const next = this.#waiting[0]?.owner
    const turn = this.#waiting.filter(waiter => waiter.owner === next)
    for (const { go } of turn) go()
  }

  #take(busy: Map<object, number>, owner: object): undefined {
    busy.set(owner, (busy.get(owner) ?? 0) + 1)
  }

  #wait(busy: Map<object, number>, owner: object, signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= mostWaiting) return Promise.reject(this.#refusal())
    return new Promise((resolve, reject) => {
      const over = (): void => {
        const at = this.#waiting.indexOf(waiter)
        if (at >= 0) this.#waiting.splice(at, 1)
        cancel()
        signal.removeEventListener('abort', aborted)
      }
      const aborted = (): void => {
        over()
        reject(signal.reason)
      }
      const waiter: Waiter = {
        owner,
        go: () => {
          over()
          this.#take(busy, owner)
          resolve()
        },
      }
      const late = (): void => {
        over()
        reject(this.#refusal())
      }
      const cancel = this.#clock.setTimeout(late, patienceMs, true)
      this.#waiting.push(waiter)
      signal.addEventListener('abort', aborted, { once: true })
    })
  }

  #refusal(): Error {
    return problem(
      'SERVER_UNAVAILABLE',
      `The server ${quoted(this.#upstream)} asks its callers questions, and works for one caller at a time`,
      {
        retryAfter: 5_000,
        suggestion: 'Try again when the other caller has answered; over HTTP the server could serve both at once',
        details: { upstream: this.#upstream },
      },
    )
  }
}
