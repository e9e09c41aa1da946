/** The page of limits and the comments on them against the code: what can be set is named there with its default. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { membersOf } from '../../scripts/docs/members.ts'
import { findStatements, sourceFile } from '../../scripts/schemas/declarations.ts'
import { serverLimits } from '../../src/engine/limits.ts'
import { defaultRates } from '../../src/features/reliability/cost/rates.ts'
import { loopLimits } from '../../src/host/loop/limits.ts'
import { httpLimits } from '../../src/transports/http/limits.ts'

const page = await readFile(join(import.meta.dirname, '../../docs/reference/limits.md'), 'utf8')
const rows = page.split('\n').filter(line => line.startsWith('|'))
const rowsOf = (option: string): readonly string[] => rows.filter(row => row.includes(`\`${option}\``))

it.each(Object.keys(serverLimits))('limits.%s has a row', name => {
  expect(rowsOf(name)).not.toEqual([])
})

it.each(Object.entries(serverLimits).filter(([name, value]) => !/Ms$|Bytes$/.test(name) && value < 1e9))(
  'the row of limits.%s says its default, %i',
  (name, value) => {
    expect(rowsOf(name).join('\n')).toContain(value.toLocaleString('en'))
  },
)

it.each(Object.entries(defaultRates))('the row of rates.%s says its default', (name, { perSecond, burst }) => {
  expect(rowsOf(name).join('\n')).toContain(`${perSecond.toLocaleString('en')} / ${burst.toLocaleString('en')}`)
})

it('does not claim an option for limits that have none', () => {
  const fixed = rows.filter(row => /\|\s*\|$/.test(row.trimEnd()))
  expect(fixed.length > 0 && /every limit[^.]*\boption\b/i.test(page)).toBe(false)
})

/** The default that the comment on a member names first, in its base unit: `4 MiB` is 4194304. */
function commented(type: string, file: string): ReadonlyMap<string, number> {
  const units: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2 }
  const members = membersOf(findStatements(type, sourceFile(join(import.meta.dirname, '../../src', file))), () => undefined)
  return new Map(
    members.map(({ name, comment = '' }) => {
      const [, count = '', unit = ''] = /Default ([\d,]+)(?: (KiB|MiB))?/.exec(comment.replace(/\s+/g, ' ')) ?? []
      return [name, Number(count.replaceAll(',', '')) * (units[unit] ?? 1)]
    }),
  )
}

it.each([
  ['Limits', 'engine/limits.ts', serverLimits],
  ['HttpLimits', 'transports/http/limits.ts', httpLimits],
  ['LoopLimits', 'host/loop/limits.ts', loopLimits],
])('the comments on %s name their defaults', (type, file, limits) => {
  expect(Object.fromEntries(commented(type, file))).toEqual(limits)
})
