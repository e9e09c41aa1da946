import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readGroups } from '../../../scripts/statements.ts'
import { serverStatements } from '../statements.ts'
import { clientScenarios, hostScenarios } from './judge.ts'
import { callerStatements } from './statements.ts'

const all = [...clientScenarios, ...hostScenarios]
const proved = new Set(all.flatMap(({ proves }) => proves))
const groups = readGroups(readFileSync('test/statements.txt', 'utf8'))
/** Rulings on dialects (A and T) are the project's own; what they rule on is shown by the statements. */
const ids = groups.filter(({ name }) => name !== 'conformance kit').flatMap(group => group.ids.filter(id => /^[ELX]/.test(id)))

it('E12-3: every statement that a client or a host shows to the outside has a scenario, and no other has one', () => {
  const shown = [...callerStatements].filter(([, how]) => how === 'seen').map(([id]) => id)
  expect(shown.filter(id => !proved.has(id))).toEqual([])
  expect([...proved].filter(id => /^[ELX]\d/.test(id) && callerStatements.get(id) !== 'seen')).toEqual([])
})

it('E12-3: every statement is shown by a server, a client or a host, or is known to be hidden for a reason', () => {
  expect(ids.filter(id => !serverStatements.has(id) && !callerStatements.has(id))).toEqual([])
  expect([...callerStatements.keys()].filter(id => !ids.includes(id))).toEqual([])
  const reasons = [...callerStatements.values()].flatMap(how => (how === 'seen' ? [] : [how.hidden]))
  expect(reasons.every(why => why.length > 20)).toBe(true)
})

it('scenarios have ids of their own and sentences, and plays of one name are one play', () => {
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  expect(all.filter(({ title }) => title.length < 15 || title.endsWith('.'))).toEqual([])
  const plays = new Set(all.map(({ play }) => play))
  expect(new Set([...plays].map(({ name }) => name)).size).toBe(plays.size)
})
