/**
 * Places for calls at one server, shared by clients. Many quick calls at once are no flood: one that goes beyond its client's share
 * waits a moment for a place, and is refused when none becomes free.
 */
import type { Clock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import { quoted } from '../../core/why.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { type ShareOptions, type Sharer, SlotShares, sharerOf } from '../shares.ts'

/** How long a call waits for a place. */
const momentMs = 1_000

interface Waiter {
  readonly sharer: Sharer
  readonly go: () => void
}

export class UpstreamSlots {
  readonly #upstream: string
  readonly #clock: Clock
  readonly #taken: SlotShares
  readonly #queued: SlotShares
  readonly #waiting: Waiter[] = []

  constructor(upstream: string, clock: Clock, { calls, waiting }: Required<ShareOptions>) {
    this.#upstream = upstream
    this.#clock = clock
    this.#taken = new SlotShares(calls)
    this.#queued = new SlotShares(waiting)
  }

  /** Undefined: it has its place. Rejects where there is none for it. */
  enter(call: Pick<Exchange, 'caller' | 'signal'>): Promise<void> | undefined {
    const sharer = sharerOf(call.caller)
    if (this.#taken.take(sharer)) return undefined
    // A signal is made when it is first asked for: most calls need none.
    return this.#queued.take(sharer) ? this.#wait(sharer, call.signal) : Promise.reject(this.#refusal(sharer))
  }

  leave(sharer: Sharer): void {
    this.#taken.leave(sharer)
    if (this.#waiting.length === 0) return
    const next = this.#waiting.find(waiter => this.#taken.take(waiter.sharer))
    next?.go()
  }

  #wait(sharer: Sharer, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        this.#queued.leave(sharer)
        cancel()
        signal.removeEventListener('abort', gone)
      }
      const waiter: Waiter = {
        sharer,
        go: () => {
          over()
          resolve()
        },
      }
      const gone = (): void => {
        over()
        reject(signal.reason)
      }
      const late = (): void => {
        over()
        reject(this.#refusal(sharer))
      }
      const cancel = this.#clock.setTimeout(late, momentMs, true)
      this.#waiting.push(waiter)
      signal.addEventListener('abort', gone, { once: true })
    })
  }

  #refusal(sharer: Sharer): Error {
    const { most } = this.#taken
    const held = this.#taken.of(sharer)
    const where = `at the server ${quoted(this.#upstream)}`
    const details = { upstream: this.#upstream, held, limit: most }
    if (held === 0)
      return problem('SERVER_UNAVAILABLE', `All ${most} places for calls ${where} are taken (shares.calls)`, {
        retryAfter: 1_000,
        suggestion: 'Try again soon; whoever runs the gateway can raise shares.calls',
        details,
      })
    const message = `You have ${held} calls under way ${where}, which is your share: all clients together may have ${most} (shares.calls)`
    return problem('RATE_LIMIT_EXCEEDED', message, {
      retryAfter: 1_000,
      suggestion: 'Wait until some of them have ended, or ask whoever runs the gateway to raise shares.calls',
      details,
    })
  }
}
