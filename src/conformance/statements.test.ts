import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { extensionScenarios, liveScenarios } from './registry.ts'
import { hiddenParts, serverStatements } from './statements.ts'

const all = [...extensionScenarios, ...liveScenarios]
const proved = new Set(all.flatMap(({ proves }) => proves))

it('E12-3: every statement that a server shows to the outside has a scenario', () => {
  const seen = [...serverStatements].filter(([, how]) => how === 'seen').map(([id]) => id)
  expect(seen.filter(id => !proved.has(id))).toEqual([])
})

it('E12-3: what is said to be hidden has a reason, and no scenario', () => {
  const hidden = [...serverStatements].flatMap(([id, how]) => (how === 'seen' ? [] : [[id, how.hidden] as const]))
  expect(hidden.filter(([id, why]) => why.length < 20 || proved.has(id))).toEqual([])
})

it('E12-3: what is hidden of a statement belongs to one that is seen', () => {
  expect([...hiddenParts.keys()].filter(id => serverStatements.get(id) !== 'seen')).toEqual([])
})

it('E12-3: what is listed are statements that there are', () => {
  const known = readFileSync('test/statements.txt', 'utf8')
  const strange = [...serverStatements.keys()].filter(id => !known.split(/\s+/).includes(id) && !['LA-1', 'LB-1'].includes(id))
  expect(strange).toEqual([])
})

it('scenarios have ids of their own, and sentences', () => {
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  expect(all.filter(({ title }) => title.length < 15 || title.endsWith('.'))).toEqual([])
})
