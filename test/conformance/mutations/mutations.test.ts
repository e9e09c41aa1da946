/**
 * E12-6: a kit that cannot fail proves nothing. Each mutation is caught by the scenarios that it names, which pass without it
 * (`without.test.ts`).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { pages } from './document.ts'
import { mutations } from './index.ts'
import { tried } from './run.ts'

const folder = new URL('../../../docs/reference/', import.meta.url)

it('E12-6: there are at least 60 mutations, each with an id of its own', () => {
  expect(mutations.length).toBeGreaterThanOrEqual(60)
  expect(new Set(mutations.map(({ id }) => id)).size).toBe(mutations.length)
})

it('E12-6: each of them is listed on one page, with the scenarios that detect it', () => {
  const rows = [...pages.values()].flatMap(text => text.split('\n').filter(line => line.startsWith('| ')))
  expect(mutations.filter(({ id }) => rows.filter(row => row.startsWith(`| \`${id}\` `)).length !== 1)).toEqual([])
  for (const [file, text] of pages) {
    const path = fileURLToPath(new URL(file, folder))
    if (process.env['VIVARIUM_WRITE'] !== undefined) writeFileSync(path, text)
    expect(
      readFileSync(path, 'utf8'),
      'Write it again: VIVARIUM_WRITE=1 npx vitest run test/conformance/mutations/mutations.test.ts',
    ).toBe(text)
  }
})

describe.concurrent('E12-6: with a mutation its scenarios fail', () => {
  it.each(mutations.map(one => [one.id, one] as const))('%s', { timeout: 300_000 }, async (_, mutation) => {
    const results = await tried(mutation, mutation.caughtBy)
    const seen = Object.fromEntries(results.map(one => [one.test_id, one.status]))
    const wanted = Object.fromEntries(mutation.caughtBy.map(id => [id, 'failed']))
    expect(seen, results.map(one => one.message).join('; ')).toEqual(wanted)
  })
})
