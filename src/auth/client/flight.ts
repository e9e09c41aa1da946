/**
 * One attempt to get tokens that all who need them share: however many requests are refused together, one is made. It is
 * given up when nobody waits for it any more, or when it takes too long.
 */
import { unlessAborted } from '../../core/abort.ts'
import type { Clock } from '../../core/clock.ts'
import { AuthorizationError } from './failure.ts'

interface Attempt {
  readonly done: Promise<void>
  readonly stop: AbortController
  waiting: number
}

export class Flight {
  readonly #clock: Clock
  readonly #limitMs: number
  #current: Attempt | undefined

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock
    this.#limitMs = limitMs
  }

  /** Joins what is under way, or starts it. */
  async join(start: (signal: AbortSignal) => Promise<void>, signal?: AbortSignal): Promise<void> {
    const current = this.#current
    const attempt = current === undefined || current.stop.signal.aborted ? this.#start(start) : current
    attempt.waiting++
    try {
      await unlessAborted(attempt.done, signal)
    } finally {
      if (--attempt.waiting === 0) attempt.stop.abort()
    }
  }

  #start(start: (signal: AbortSignal) => Promise<void>): Attempt {
    const stop = new AbortController()
    const late = (): void =>
      stop.abort(new AuthorizationError('browser', `No token was had within ${this.#limitMs} ms (the option timeout)`))
    const cancel = this.#clock.setTimeout(late, this.#limitMs, true)
    const done = unlessAborted(start(stop.signal), stop.signal).finally(() => {
      cancel()
      if (this.#current === attempt) this.#current = undefined
    })
    const attempt: Attempt = { done, stop, waiting: 0 }
    this.#current = attempt
    return attempt
  }
}
