import { describe, expect, it } from 'vitest'
import { leftOf, quotaExhausted, Shares } from './occupancy.ts'

/** Takes one after the other until nothing is left; gives how many. */
function fill(shares: Shares, account: string): number {
  let taken = 0
  while (shares.fits(account, { records: 1, length: 0 })) {
    shares.add(account, 1, 0)
    taken++
  }
  return taken
}

describe('shares', () => {
  it('one alone gets three eighths of a table', () => {
    expect(fill(new Shares({ records: 1_000, length: 0 }), 'ada')).toBe(375)
  })

  it('whoever comes after any number of floods still gets a little', () => {
    const shares = new Shares({ records: 1_000, length: 0 })
    const taken = Array.from({ length: 40 }, (_, n) => fill(shares, `flooder ${n}`))
    expect(Math.min(...taken)).toBeGreaterThanOrEqual(4)
    expect(fill(shares, 'bob')).toBeGreaterThanOrEqual(4)
    expect(shares.held.records).toBeLessThanOrEqual(1_000)
  })

  it('a table is never more than full', () => {
    expect(leftOf(10, 10, 0)).toBe(0)
    expect(leftOf(1, 0, 0)).toBe(1)
    expect(leftOf(1, 1, 1)).toBe(0)
  })

  it('what is given back may be taken again, and what was never counted is not counted off', () => {
    const shares = new Shares({ records: 8, length: 100 })
    shares.add('ada', 1, 40)
    shares.add('ada', -1, -40)
    shares.add('bob', -1, -40)
    expect([shares.held, shares.entries()]).toEqual([{ records: 0, length: 0 }, []])
  })

  it('a refusal says how long to wait, at least a second', () => {
    expect(quotaExhausted('it', 90_000, 'Wait')).toMatchObject({
      code: 'QUOTA_EXHAUSTED',
      retryAfter: 90_000,
      category: 'rate_limited',
    })
    expect(quotaExhausted('it', -5, 'Wait').retryAfter).toBe(1_000)
  })
})
