/** The page of limits against the code: what can be set is named there with its default, and what it names can be set. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { serverLimits } from '../../src/engine/limits.ts'
import { defaultRates } from '../../src/features/reliability/cost/rates.ts'

const page = await readFile(join(import.meta.dirname, '../../docs/limits.md'), 'utf8')
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
