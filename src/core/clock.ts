/** Time and chance as something given, so that tests move the clock by hand, repeat a seed, and nothing sleeps. */

/** Takes a timer back. */
export interface Cancel {
  (): void
  /** Whether the timer keeps the process alive from here on. Absent on clocks that keep nothing alive. */
  hold?(alive: boolean): void
}

/** Where time comes from. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `fn` once after `ms`. A background timer does not keep the process alive. */
  setTimeout(fn: () => void, ms: number, background?: boolean): Cancel
}

/** The machine's own clock. */
export const realClock: Clock = {
  now: Date.now,
  setTimeout(fn, ms, background = false) {
    const timer: unknown = setTimeout(fn, ms)
    const cancel: Cancel = () => clearTimeout(timer as number)
    if (!isHeld(timer)) return cancel
    if (background) timer.unref()
    cancel.hold = alive => {
      if (alive) timer.ref()
      else timer.unref()
    }
    return cancel
  },
}

/** Timers are plain numbers on some runtimes, and those never keep anything alive. */
function isHeld(timer: unknown): timer is { ref(): void; unref(): void } {
  return typeof timer === 'object' && timer !== null && 'unref' in timer && 'ref' in timer
}

/** Numbers from 0 up to 1, the same for the same seed: mulberry32, which is small, quick and the same everywhere. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Waits so long. Ends early, with the reason of the signal, when that aborts. */
export function pauseFor(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
