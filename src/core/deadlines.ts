/**
 * Many deadlines under one timer: a sweep visits what is pending instead of a timer per call.
 * The timer is a background one and exists only while something is (or just was) pending.
 */
import { type Cancel, type Clock, realClock } from './clock.ts'

/** Something that is to happen at a time. Hold it, and give it back to cancel. */
export class Deadline {
  /** When it falls due; may be moved while pending, which costs nothing. */
  at: number
  readonly fn: () => void
  /** Its place among those that are pending; −1 when it is not. */
  place = -1

  constructor(at: number, fn: () => void) {
    this.at = at
    this.fn = fn
  }
}

export interface Deadlines {
  /** `fn` is called once at `at` or up to one sweep later, never sooner; it must not throw. */
  add(at: number, fn: () => void): Deadline
  /** Forgets a deadline; one that has passed or was cancelled before is no matter. */
  cancel(deadline: Deadline): void
  /** How many are pending. */
  readonly size: number
}

export interface DeadlinesOptions {
  readonly clock?: Clock
  /** Milliseconds between sweeps: the most by which a deadline may be late. Default 250. */
  readonly every?: number
}

/**
 * @example
 * const deadlines = createDeadlines()
 * const deadline = deadlines.add(Date.now() + 60_000, () => call.abort())
 * deadlines.cancel(deadline)
 */
export function createDeadlines({ clock = realClock, every = 250 }: DeadlinesOptions = {}): Deadlines {
  return new Sweep(clock, every)
}

class Sweep implements Deadlines {
  readonly #clock: Clock
  readonly #every: number
  /** Not a set: one with much coming and going keeps what has gone alive for a while, through its outgrown tables. */
  readonly #pending: Deadline[] = []
  #next = Number.POSITIVE_INFINITY
  #stop: Cancel | undefined

  constructor(clock: Clock, every: number) {
    this.#clock = clock
    this.#every = every
  }

  get size(): number {
    return this.#pending.length
  }

  add(at: number, fn: () => void): Deadline {
    const deadline = new Deadline(at, fn)
    deadline.place = this.#pending.push(deadline) - 1
    if (at < this.#next) this.#arm(at)
    return deadline
  }

  cancel(deadline: Deadline): void {
    // The timer is left to run out: one call after the other would otherwise set and clear one each.
    this.#remove(deadline)
  }

  /** The last one takes its place. */
  #remove(deadline: Deadline): boolean {
    const { place } = deadline
    if (place === -1) return false
    const last = this.#pending.pop()
    if (last !== undefined && last !== deadline) {
      this.#pending[place] = last
      last.place = place
    }
    deadline.place = -1
    return true
  }

  #arm(at: number): void {
    const now = this.#clock.now()
    const delay = Math.max(0, Math.min(at - now, this.#every))
    if (now + delay >= this.#next) return
    this.#stop?.()
    this.#next = now + delay
    this.#stop = this.#clock.setTimeout(() => this.#sweep(), Math.ceil(delay), true)
  }

  #sweep(): void {
    this.#next = Number.POSITIVE_INFINITY
    this.#stop = undefined
    const now = this.#clock.now()
    const due: Deadline[] = []
    for (const deadline of this.#pending) if (deadline.at <= now) due.push(deadline)
    due.sort((one, other) => one.at - other.at)
    try {
      // One that is due may cancel another; one that throws leaves the rest to the next sweep.
      for (const deadline of due) if (this.#remove(deadline)) deadline.fn()
    } finally {
      if (this.#pending.length > 0) this.#arm(now + this.#every)
    }
  }
}
