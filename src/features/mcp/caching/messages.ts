/** How long a result may be kept, and for whom (2026-07-28 server/utilities/caching): servers stamp it, older wires lack it. */
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import type { CacheHint } from '../../../engine/paging.ts'
import type { Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

export interface CacheOptions {
  /** How long a client may use a result without asking again. */
  readonly ttl?: Duration
  /** `public`: the same for every caller, so that a shared cache may serve it too. */
  readonly scope?: 'public' | 'private'
}

/** For what must not be used again: a result that came of questions is for its own call only. */
export const unkept: CacheHint = { ttlMs: 0, cacheScope: 'private' }

/** What is stamped on a result: whole milliseconds, as the wire wants them. */
export function cacheHint(options: CacheOptions | undefined, standard: CacheHint = unkept): CacheHint {
  const { ttl, scope } = options ?? {}
  return {
    ttlMs: ttl === undefined ? standard.ttlMs : Math.round(toMilliseconds(ttl, 'cache.ttl')),
    cacheScope: scope ?? standard.cacheScope,
  }
}

/** The step down to wires that have no caching. */
export function withoutCacheHint(result: Wire): Wire {
  return without(result, 'ttlMs', 'cacheScope')
}
