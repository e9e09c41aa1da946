/**
 * Many deadlines under one timer: a sweep visits what is pending instead of a timer per call. The timer exists only while
 * something is (or just was) pending, and keeps the process alive only while somebody awaits one of them.
 */
import { type Cancel, type Clock, realClock } from './clock.ts'

/** Something that is to happen at a time. Hold it, and give it back to cancel. */
export class Deadline implements LinkedItem {
  /** When it falls due; may be moved while pending, which costs nothing. */
  at: number
  readonly fn: () => void
  /** Somebody waits for what it ends: the process must not end before. */
  readonly awaited: boolean
  /** Among those that are pending. */
  place = -1

  constructor(at: number, fn: () => void, awaited: boolean) {
    this.at = at
    this.fn = fn
    this.awaited = awaited
  }
}

/** Many deadlines on few timers. */
export interface Deadlines {
  /**
   * `fn` is called once at `at` or a little later, up to one sweep where it was moved, never sooner; it must not throw. An awaited one keeps the process
   * alive until it has passed or is cancelled.
   */
  add(at: number, fn: () => void, awaited?: boolean): Deadline
  /** Forgets a deadline; one that has passed or was cancelled before is no matter. */
  cancel(deadline: Deadline): void
  /** How many are pending. */
  readonly size: number
}

interface DeadlinesOptions {
  readonly clock?: Clock
  /** Milliseconds between sweeps: the most by which a deadline may be late. Default 250. */
  readonly every?: number
}

/** Milliseconds between sweeps at least, so that many deadlines close together are seen to by one. */
const shortest = 10

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
  readonly #pending = new LinkedSet<Deadline>()
  #next = Number.POSITIVE_INFINITY
  #stop: Cancel | undefined
  #awaited = 0

  constructor(clock: Clock, every: number) {
    this.#clock = clock
    this.#every = every
  }

  get size(): number {
    return this.#pending.size
  }

  add(at: number, fn: () => void, awaited = false): Deadline {
    const deadline = new Deadline(at, fn, awaited)
    this.#pending.add(deadline)
    if (awaited && ++this.#awaited === 1) this.#stop?.hold?.(true)
    if (at < this.#next) this.#arm(at)
    return deadline
  }

  cancel(deadline: Deadline): void {
    this.#forget(deadline)
  }

  /** The timer is left to run out: one call after the other would otherwise set and clear one each. */
  #forget(deadline: Deadline): boolean {
    if (!this.#pending.delete(deadline)) return false
    if (deadline.awaited && --this.#awaited === 0) this.#stop?.hold?.(false)
    return true
  }

  #arm(at: number): void {
    const now = this.#clock.now()
    const delay = Math.max(0, Math.min(at - now, this.#every))
    if (now + delay >= this.#next) return
    this.#stop?.()
    this.#next = now + delay
    this.#stop = this.#clock.setTimeout(() => this.#sweep(), Math.ceil(delay), true)
    if (this.#awaited > 0) this.#stop.hold?.(true)
  }

  #sweep(): void {
    this.#next = Number.POSITIVE_INFINITY
    this.#stop = undefined
    const now = this.#clock.now()
    const due = this.#pending.all().filter(({ at }) => at <= now)
    due.sort((one, other) => one.at - other.at)
    try {
      // One that is due may cancel another; one that throws leaves the rest to the next sweep.
      for (const deadline of due) if (this.#forget(deadline)) deadline.fn()
    } finally {
      if (this.#pending.size > 0) this.#arm(Math.max(this.#soonest(), now + shortest))
    }
  }

  #soonest(): number {
    let soonest = Number.POSITIVE_INFINITY
    for (const { at } of this.#pending.all()) if (at < soonest) soonest = at
    return soonest
  }
}

// Giving up a wait that cannot be stopped itself: its outcome is then no matter.

/** What `promise` gives, unless the signal aborts first: then its reason is thrown. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    const settle = <V>(give: (value: V) => void) => {
      return (value: V): void => {
        signal.removeEventListener('abort', stop)
        give(value)
      }
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    promise.then(settle(resolve), settle(reject))
  })
}

// Waiting with a deadline.

/** True if the promise settled in time. */
export async function settlesWithin(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  let cancel: Cancel | undefined
  const late = new Promise<boolean>(done => {
    cancel = clock.setTimeout(() => done(false), ms)
  })
  const settled = promise.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    cancel?.()
  }
}

// Things that come and go by the thousand, such as calls under way. A Set would do, but for one thing: its outgrown tables
// keep what has long gone alive until the next full collection, which makes every collection dear. This leaves nothing behind.

/** An object that a `LinkedSet` can hold. */
export interface LinkedItem {
  /** Where it is in its bag; −1 outside. It can be in one only. */
  place: number
}

/** A set that objects can leave without a search, because each one knows its place in it. */
export class LinkedSet<T extends LinkedItem> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    item.place = this.#items.push(item) - 1
  }

  /** The last one takes its place. False if it was not there. */
  delete(item: T): boolean {
    const { place } = item
    if (place === -1) return false
    const last = this.#items.pop()
    if (last !== undefined && last !== item) {
      this.#items[place] = last
      last.place = place
    }
    item.place = -1
    return true
  }

  /** All that are in it now, in no order; what comes or goes meanwhile changes nothing about that. */
  all(): T[] {
    return this.#items.slice()
  }
}
