/** Time as something given, so that tests move it by hand and nothing sleeps. */

export type Cancel = () => void

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
    const timer = setTimeout(fn, ms)
    if (background) unref(timer)
    return () => clearTimeout(timer)
  },
}

/** Timers are plain numbers on some runtimes, and those never keep anything alive. */
function unref(timer: unknown): void {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
}
