/** Spares turns the wait for a server that keeps being slow: after some failures in a row it is left out for a while, then tried once. */
import type { Clock } from '../../core/clock.ts'
import { durationText } from '../../core/duration.ts'
import { type Why, why } from '../../core/why.ts'

export interface Breaker {
  /** Undefined: go on. */
  refuses(server: string): Why | undefined
  succeeded(server: string): void
  failed(server: string): void
}

interface Standing {
  failures: number
  until: number
}

const standardFailures = 3
const standardRestMs = 30_000

export function createBreaker(clock: Clock, failures = standardFailures, restMs = standardRestMs): Breaker {
  const servers = new Map<string, Standing>()
  return {
    refuses: server => {
      const standing = servers.get(server)
      if (standing === undefined || standing.failures < failures) return undefined
      const left = standing.until - clock.now()
      if (left > 0) return resting(server, standing.failures, left)
      // One trial: whoever comes meanwhile is still sent away.
      standing.until = clock.now() + restMs
      return undefined
    },
    succeeded: server => void servers.delete(server),
    failed: server => {
      const standing = servers.get(server) ?? { failures: 0, until: 0 }
      standing.failures += 1
      standing.until = clock.now() + restMs
      servers.set(server, standing)
    },
  }
}

function resting(server: string, failures: number, left: number): Why {
  return why(
    'HOOKS_RESTING',
    'hooks.breaker',
    `The hooks of ${server} failed ${failures} times in a row: they are left out for ${durationText(left)}`,
    `Look at why ${server} is slow, or disable its hooks`,
  )
}
