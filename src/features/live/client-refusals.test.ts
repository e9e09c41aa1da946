import { expect, test } from 'vitest'
import { fakeClock } from '../../testing/clock.ts'
import { PushThrottle } from './client-refusals.ts'

const wait = { accepted: false, reason: 'rate', retryAfterMs: 10 } as const

function world() {
  const clock = fakeClock()
  const rests: number[] = []
  const brake = new PushThrottle(clock.now, ms => {
    rests.push(ms)
    clock.advance(ms)
  })
  return { clock, rests, brake }
}

test('a server that was told to wait and does not is read at most a thousand refusals a second', () => {
  const { clock, rests, brake } = world()
  const began = clock.now()
  for (let n = 0; n < 10_000; n++) {
    brake.heard(wait)
    if (n % 10 === 0) clock.advance(1)
  }
  const seconds = (clock.now() - began) / 1000
  expect(10_000 / seconds).toBeLessThanOrEqual(1_020)
  expect(rests.length).toBeGreaterThan(100)
})

test('one that waits, is accepted, or is refused for good is read as ever', () => {
  const { clock, rests, brake } = world()
  for (let n = 0; n < 1_000; n++) {
    brake.heard({ accepted: true, inferenceId: 'i' })
    brake.heard({ accepted: false, reason: 'no' })
    brake.heard(wait)
    clock.advance(2)
  }
  expect(rests).toEqual([])
})
