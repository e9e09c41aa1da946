import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createBuckets } from './bucket.ts'
import type { Clock } from './clock.ts'

function at(time: { now: number }): Clock {
  return { now: () => time.now, setTimeout: () => () => {} }
}

it('a full bucket gives its burst at once, and then says how long to wait', () => {
  const time = { now: 1_000 }
  const buckets = createBuckets({ perSecond: 2, burst: 3, clock: at(time) })
  expect([1, 2, 3].map(() => buckets.take('a'))).toEqual([0, 0, 0])
  expect(buckets.take('a')).toBe(500)
  time.now += 500
  expect(buckets.take('a')).toBe(0)
})

it('each key, text or object, has a bucket of its own', () => {
  const buckets = createBuckets({ perSecond: 1, clock: at({ now: 0 }) })
  const [one, other] = [{}, {}]
  expect(buckets.take(one)).toBe(0)
  expect(buckets.take(one)).toBe(1_000)
  expect(buckets.take(other)).toBe(0)
  expect(buckets.take('constructor')).toBe(0)
})

it('what can never be had is said to take for ever, and takes nothing', () => {
  const buckets = createBuckets({ perSecond: 1, burst: 5, clock: at({ now: 0 }) })
  expect(buckets.take('a', 6)).toBe(Number.POSITIVE_INFINITY)
  expect(buckets.take('a', 5)).toBe(0)
})

it('a clock that is set back neither gives nor takes', () => {
  const time = { now: 10_000 }
  const buckets = createBuckets({ perSecond: 1, burst: 2, clock: at(time) })
  buckets.take('a')
  time.now = 0
  expect(buckets.take('a')).toBe(0)
  expect(buckets.take('a')).toBe(1_000)
  time.now = 1_000
  expect(buckets.take('a')).toBe(0)
})

it('among more keys than it may remember, one in steady use keeps its bucket', () => {
  const buckets = createBuckets({ perSecond: 0.001, burst: 1, clock: at({ now: 0 }), maxKeys: 10 })
  buckets.take('steady')
  for (let count = 0; count < 1_000; count++) {
    expect(buckets.take(`passing ${count}`)).toBe(0)
    expect(buckets.take('steady')).toBeGreaterThan(0)
  }
  expect(buckets.take('passing 0')).toBe(0)
})

it('never gives more than burst plus rate times time, and always gives after the wait it named', () => {
  const takes = fc.array(fc.record({ pause: fc.integer({ min: 0, max: 3_000 }), n: fc.integer({ min: 1, max: 4 }) }))
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 4, max: 20 }), takes, (perSecond, burst, sequence) => {
      const time = { now: 1_700_000_000_000 }
      const buckets = createBuckets({ perSecond, burst, clock: at(time) })
      const start = time.now
      let given = 0
      for (const { pause, n } of sequence) {
        time.now += pause
        const wait = buckets.take('a', n)
        time.now += wait
        if (wait > 0) expect(buckets.take('a', n)).toBe(0)
        given += n
        expect(given).toBeLessThanOrEqual(burst + ((time.now - start) * perSecond) / 1_000 + 1e-6)
      }
    }),
  )
})

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a rate of %d is refused', perSecond => {
  expect(() => createBuckets({ perSecond })).toThrow(/perSecond is .*: give a finite number above 0/)
})

it('tells what is left, and when all will be, without taking any of it', () => {
  const time = { now: 1_000 }
  const buckets = createBuckets({ perSecond: 2, burst: 4, clock: at(time) })
  const key = {}
  expect(buckets.left('nobody yet')).toEqual({ tokens: 4, fullInMs: 0 })
  for (const who of ['a', key]) {
    buckets.take(who, 3)
    expect([buckets.left(who), buckets.left(who)]).toEqual([
      { tokens: 1, fullInMs: 1_500 },
      { tokens: 1, fullInMs: 1_500 },
    ])
  }
  time.now += 500
  expect(buckets.left('a')).toEqual({ tokens: 2, fullInMs: 1_000 })
  time.now -= 2_000
  expect(buckets.left('a')).toEqual({ tokens: 1, fullInMs: 1_500 })
})
