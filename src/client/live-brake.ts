/**
 * A server that goes on pushing although it was told to wait: every refusal costs the host something, so it is read no faster than
 * so many refusals a second. What it sends beyond that waits on its own side.
 */
import type { PushAnswer } from '../features/live/push-events/messages.ts'

/** So many refusals take so long, at least. */
const refusals = 64
const atLeastMs = 64

export class PushBrake {
  readonly #now: () => number
  readonly #rest: (ms: number) => void
  #refused = 0
  #since = 0

  /** `rest`: nothing more is to be read for so long. */
  constructor(now: () => number, rest: (ms: number) => void) {
    this.#now = now
    this.#rest = rest
  }

  /** What a push was answered with. */
  heard(answer: PushAnswer): PushAnswer {
    if (!answer.accepted && answer.retryAfterMs !== undefined && ++this.#refused >= refusals) this.#look()
    return answer
  }

  #look(): void {
    const early = atLeastMs - (this.#now() - this.#since)
    this.#refused = 0
    this.#since = this.#now() + Math.max(0, early)
    if (early > 0) this.#rest(early)
  }
}
