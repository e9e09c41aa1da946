/**
 * Spares turns the wait for a hook that keeps being slow: after some failures in a row it is left out for a while, then tried once. Each
 * hook of a server stands for itself: one that works says nothing of the other.
 */
import type { Clock } from '../../core/clock.ts'
import { durationText } from '../../core/duration.ts'
import { type Why, why } from '../../core/why.ts'

export interface Breaker {
  /** Undefined: go on. */
  refuses(server: string, hook: Hook): Why | undefined
  succeeded(server: string, hook: Hook): void
  failed(server: string, hook: Hook): void
}

export type Hook = 'before' | 'after'

interface Standing {
  failures: number
  until: number
}

const standardFailures = 3
const standardRestMs = 30_000

export function createBreaker(clock: Clock, failures = standardFailures, restMs = standardRestMs): Breaker {
  const hooks = new Map<string, Standing>()
  return {
    refuses: (server, hook) => {
      const standing = hooks.get(`${hook} ${server}`)
      if (standing === undefined || standing.failures < failures) return undefined
      const left = standing.until - clock.now()
      if (left > 0) return resting(server, hook, standing.failures, left)
      // One trial: whoever comes meanwhile is still sent away.
      standing.until = clock.now() + restMs
      return undefined
    },
    succeeded: (server, hook) => void hooks.delete(`${hook} ${server}`),
    failed: (server, hook) => {
      const standing = hooks.get(`${hook} ${server}`) ?? { failures: 0, until: 0 }
      standing.failures += 1
      standing.until = clock.now() + restMs
      hooks.set(`${hook} ${server}`, standing)
    },
  }
}

function resting(server: string, hook: Hook, failures: number, left: number): Why {
  return why(
    'HOOKS_RESTING',
    'hooks.breaker',
    `${hook}Inference of ${server} failed ${failures} times in a row: it is left out for ${durationText(left)}`,
    `Look at why ${server} is slow, or disable its hooks`,
  )
}
