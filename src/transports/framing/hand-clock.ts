/** A clock for tests that moves only by hand. */
import type { Clock } from '../../core/clock.ts'

export interface HandClock extends Clock {
  /** Moves time on and calls what falls due, in its order. */
  advance(ms: number): void
  /** How many timers run. */
  readonly running: number
}

export function handClock(): HandClock {
  let now = 0
  const timers = new Set<{ at: number; fn: () => void }>()
  return {
    now: () => now,
    get running() {
      return timers.size
    },
    setTimeout(fn, ms) {
      const timer = { at: now + ms, fn }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance(ms) {
      const end = now + ms
      for (;;) {
        const [next] = [...timers].filter(timer => timer.at <= end).sort((a, b) => a.at - b.at)
        if (next === undefined) break
        timers.delete(next)
        now = next.at
        next.fn()
      }
      now = end
    },
  }
}
