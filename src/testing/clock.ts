/** A clock moved by hand, so that tests of time need no sleeping. */
import type { Clock } from '../core/clock.ts'

/** A clock that moves only by `advance`. */
export interface FakeClock extends Clock {
  /** Moves the time forward and runs the timers that are due, in order. */
  advance(ms: number): void
}

interface Timer {
  readonly at: number
  readonly fn: () => void
}

/**
 * Creates a clock for tests. It begins at `start` (milliseconds since the epoch) and moves only by `advance`.
 * @example const clock = fakeClock(); clock.advance(1_000)
 */
export function fakeClock(start = 1_700_000_000_000): FakeClock {
  let now = start
  const timers = new Set<Timer>()
  return {
    now: () => now,
    setTimeout: (fn, ms) => {
      const timer = { at: now + ms, fn }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance: ms => {
      const end = now + ms
      for (;;) {
        const due = [...timers].filter(timer => timer.at <= end).sort((a, b) => a.at - b.at)[0]
        if (due === undefined) break
        timers.delete(due)
        now = Math.max(now, due.at)
        due.fn()
      }
      now = end
    },
  }
}
