/** Something that is wanted once, tried in as many lives as it takes, and judged when all is over. */
import type { Store } from 'vivarium/stores'
import type { Line } from './line.ts'
import type { Seen } from './witness.ts'

/** `broken`: neither lost nor doubled, but not as it must be. */
export interface Finding {
  readonly kind: 'lost' | 'double' | 'broken'
  readonly what: string
}

/** What can be seen when all is over. */
export interface Aftermath {
  readonly seen: Seen
  readonly store: Store
  /** The transactions and sagas that are listed for somebody to look at. */
  readonly stuck: ReadonlySet<string>
}

export interface Operation {
  readonly id: string
  /** One try. Resolves when it is decided; throws `Later`, or whatever the death of a life throws, when it is not. */
  run(line: Line): Promise<void>
  /** Asks again for what was answered. Throws as `run` does. */
  check(line: Line): Promise<readonly Finding[]>
  judge(aftermath: Aftermath): Promise<readonly Finding[]>
  /** In which group it is counted at the end. */
  readonly end: string
}

/** Codes of refusals that pass. */
const passing: ReadonlySet<string> = new Set(['IDEMPOTENCY_IN_PROGRESS', 'SERVER_UNAVAILABLE'])

export function passes(code: string | undefined): boolean {
  return code !== undefined && passing.has(code)
}

export function lost(what: string): Finding {
  return { kind: 'lost', what }
}

export function double(what: string): Finding {
  return { kind: 'double', what }
}

export function broken(what: string): Finding {
  return { kind: 'broken', what }
}
