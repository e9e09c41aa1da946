import { describe, expect, it } from 'vitest'
import { cacheHint, noCache, withoutCacheHint } from './messages.ts'

describe('what is stamped on a result that may be kept', () => {
  it('is nothing to keep, and for the caller alone, unless the author says otherwise', () => {
    expect(cacheHint(undefined)).toEqual({ ttlMs: 0, cacheScope: 'private' })
  })

  it('is a whole number of milliseconds, because the wire takes no fractions', () => {
    expect(cacheHint({ ttl: '1.5s', scope: 'public' })).toEqual({ ttlMs: 1500, cacheScope: 'public' })
    expect(cacheHint({ ttl: 0.4 }).ttlMs).toBe(0)
  })

  it('is the standard in whatever the author leaves out', () => {
    expect(cacheHint({ scope: 'public' }, { ttlMs: 7, cacheScope: 'private' })).toEqual({ ttlMs: 7, cacheScope: 'public' })
    expect(cacheHint({ ttl: 9 }, { ttlMs: 7, cacheScope: 'public' })).toEqual({ ttlMs: 9, cacheScope: 'public' })
  })

  it('is taken off for wires that have no caching', () => {
    expect(withoutCacheHint({ contents: [], ...noCache })).toEqual({ contents: [] })
  })
})
