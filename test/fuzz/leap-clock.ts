/** A clock that leaps, as that of a machine that slept: what fell due meanwhile is called once, late. Cheap however far it leaps. */
import type { FakeClock } from '../../src/testing/index.ts'

interface Timer {
  readonly at: number
  readonly fn: () => void
}

export function leapClock(start = 1_700_000_000_000): FakeClock {
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
      now += ms
      const due = [...timers].filter(timer => timer.at <= now).sort((one, other) => one.at - other.at)
      for (const timer of due) if (timers.delete(timer)) timer.fn()
    },
  }
}
