import { expect, test } from 'vitest'
import { fakeClock } from './clock.ts'

test('time stands still until it is moved, and then everything due runs in order', () => {
  const clock = fakeClock(1_000)
  const seen: [string, number][] = []
  clock.setTimeout(() => seen.push(['second', clock.now()]), 20)
  clock.setTimeout(() => seen.push(['first', clock.now()]), 10)
  expect(clock.now()).toBe(1_000)
  clock.advance(15)
  expect([seen, clock.now()]).toEqual([[['first', 1_010]], 1_015])
  clock.advance(5)
  expect(seen[1]).toEqual(['second', 1_020])
})

test('a timer that a timer sets falls due in the same move, if its time has come', () => {
  const clock = fakeClock(0)
  const seen: number[] = []
  const again = (): void => {
    seen.push(clock.now())
    clock.setTimeout(again, 10)
  }
  clock.setTimeout(again, 10)
  clock.advance(35)
  expect(seen).toEqual([10, 20, 30])
})

test('a cancelled timer never runs', () => {
  const clock = fakeClock()
  const cancel = clock.setTimeout(() => {
    throw new Error('ran')
  }, 1)
  cancel()
  clock.advance(10)
})
