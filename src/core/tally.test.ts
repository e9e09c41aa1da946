import { expect, it } from 'vitest'
import { Tally } from './occupancy.ts'

it('counts each key by itself, and forgets the one that is back at nothing', () => {
  const tally = new Tally<string>()
  tally.add('ada', 2)
  tally.add('bob', 1)
  tally.add('ada', -1)
  expect([tally.of('ada'), tally.of('bob'), tally.of('constructor'), tally.size]).toEqual([1, 1, 0, 2])
  tally.add('bob', -1)
  expect([tally.of('bob'), tally.size]).toEqual([0, 1])
})
