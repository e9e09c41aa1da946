import { expect, test } from 'vitest'
import { carrierBlocks, endOf, readEnds } from './lib/live-carriers.ts'
import { readGroups, readTitles } from './statements.ts'

test('groups have their ids, and say whether they are due', () => {
  const groups = readGroups('Some words.\n\nnow errors\nE11-1 E11-2\n\nlater live\nL3.1-1\nL3.2-1 L4-1\n')
  expect(groups).toEqual([
    { name: 'errors', now: true, ids: ['E11-1', 'E11-2'] },
    { name: 'live', now: false, ids: ['L3.1-1', 'L3.2-1', 'L4-1'] },
  ])
})

test('titles of tests are found with every id that they name, and other text is not', () => {
  const source = `
    // E1-1 in a comment
    test('E5-1, E5-3: a sentence', () => {})
    test.each([1])("X10: another", () => {})
    describe(\`L6.6-1 it's\`, () => {})
    const text = 'E9-9'`
  expect(readTitles(source).map(([id]) => id)).toEqual(['E5-1', 'E5-3', 'X10', 'L6.6-1'])
})

test('the carriers of a statement are those of the list over which its tests run', () => {
  const source = `
describe.each(carriers)('%s', carrier => {
  test('L3.1-1: one', () => {})
})

describe.each(sessionCarriers)('%s', carrier => {
  test('L4-1: two', () => {})
})

test('L5.1-1: on none', () => {})`
  const found = carrierBlocks(source).map(({ carriers, text }) => [readTitles(text).map(([id]) => id), carriers.length])
  expect(found).toEqual([
    [['L3.1-1'], 4],
    [['L4-1'], 3],
  ])
  expect([endOf('test/live/acts.test.ts'), endOf('test/live/host-sets.test.ts'), endOf('src/host/host.test.ts')]).toEqual([
    'server',
    'host',
    undefined,
  ])
  expect(readEnds('now live\nL4-1\n\nhost L4-1 L5.1-1\nserver L4-1\n')).toEqual(
    new Map([
      ['host', ['L4-1', 'L5.1-1']],
      ['server', ['L4-1']],
    ]),
  )
})
