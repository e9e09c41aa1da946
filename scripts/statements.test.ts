import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { proves } from '../test/proves.ts'
import { root } from './lib/files.ts'
import { carrierBlocks, endOf, readEnds } from './lib/live-carriers.ts'
import { claimsOf, gapsIn, leavingEarly, readBonds, roleOf } from './lib/proofs.ts'
import { claims, evading, readGroups, readTitles } from './statements.ts'

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

test('a title claims for the role of its room, on the carrier that its whole name tells', () => {
  expect(roleOf('src/features/reliability/cost/client.test.ts')).toBe('client')
  expect(roleOf('src/features/reliability/cost/server.test.ts')).toBe('server')
  expect(roleOf('src/host/loop/hooks.test.ts')).toBe('host')
  expect(claimsOf('test/live/host-sets.test.ts', 'http 2026-07-28 > L4-1, A2: a sentence')).toEqual([
    { id: 'L4-1', role: 'host', carrier: '2026-07-28' },
    { id: 'A2', role: 'host', carrier: '2026-07-28' },
  ])
  const said = [{ id: 'E2-4', role: 'client' }] as const
  expect(claimsOf('src/server/x.test.ts', 'without an id', said)).toEqual(said)
})

test('a statement needs a proof for each role that it binds', () => {
  const bonds = readBonds('now x\nE1-1 E1-2 E1-3\nserver E1-1 E1-2\nclient E1-1\n')
  const proofs = [
    { id: 'E1-1', role: 'server' },
    { id: 'E1-2', role: 'client' },
  ] as const
  expect(gapsIn(['E1-1', 'E1-2', 'E1-3'], bonds, proofs)).toEqual([
    { id: 'E1-1', role: 'client' },
    { id: 'E1-2', role: 'server' },
    { id: 'E1-3', role: undefined },
  ])
})

test('a way out before the end of a test that names a statement is seen, and a return within a callback is none', () => {
  const source = `
  it('E1-1: leaves', async () => {
    if (stateless) return
    expect(1).toBe(1)
  })
  it('E1-2: leaves later', async () => {
    if (stateless) {
      await something()
      return
    }
    expect(1).toBe(1)
  })
  it('E1-3: stays', async () => {
    world.on = tool => {
      if (tool !== 'create') return
      made()
    }
  })
  it('names nothing', () => {
    if (stateless) return
  })`
  expect(leavingEarly(source)).toEqual(['E1-1: leaves', 'E1-2: leaves later'])
})

test('proves writes into the test that runs, for whoever reports on it', ({ task }) => {
  proves('E12-3', 'kit', 'stdio')
  expect(task.meta.proves).toEqual([{ id: 'E12-3', role: 'kit', carrier: 'stdio' }])
})

test('every statement that is due is claimed for each role that it binds, and no claim has a way out', () => {
  const text = readFileSync(join(root, 'test', 'statements.txt'), 'utf8')
  const due = readGroups(text).filter(({ now }) => now)
  expect(
    gapsIn(
      due.flatMap(({ ids }) => ids),
      readBonds(text),
      claims(),
    ),
  ).toEqual([])
  expect(evading()).toEqual([])
})
