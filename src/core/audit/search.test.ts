/** Searching the audit log, newest first; and the progress of a proof. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Audit } from './audit.ts'
import type { AuditFacts } from './line.ts'
import type { AuditSearchOptions } from './search.ts'

function world() {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  return { clock, store, audit: new Audit({ store, clock }) }
}

const facts = (target: string, more: AuditFacts['more'] = {}): AuditFacts => ({ event: 'noted', owner: '', target, more })

async function write(store: Store, audit: Audit, count: number, of: (n: number) => AuditFacts): Promise<void> {
  for (let n = 0; n < count; n += 500)
    await store.commit(Array.from({ length: Math.min(500, count - n) }, (_, i) => audit.line(of(n + i))))
}

/** All that a search finds, page after page. */
async function pages(audit: Audit, options: AuditSearchOptions): Promise<string[]> {
  const found: string[] = []
  for (let before: number | undefined; ; ) {
    const { items, next } = await audit.search({ ...options, ...(before !== undefined && { before }) })
    found.push(...items.map(({ target }) => target))
    if (next === undefined) return found
    before = next
  }
}

test('pages of a search hold every line once, newest first, whatever their size', async () => {
  const { store, audit } = world()
  await write(store, audit, 2_345, n => facts(`t${n}`, { rule: n % 3 === 0 ? 'third' : 'other' }))
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 1_000 }), fc.boolean(), async (limit, filtered) => {
      const wanted = Array.from({ length: 2_345 }, (_, n) => `t${2_344 - n}`).filter((_, n) => !filtered || (2_344 - n) % 3 === 0)
      expect(await pages(audit, { limit: Math.max(50, limit), ...(filtered && { rule: 'third' }) })).toEqual(wanted)
    }),
    { numRuns: 10 },
  )
})

test('a search for a rare line ends after a bounded look, and goes on from there', async () => {
  const { store, audit } = world()
  await write(store, audit, 30_000, n => facts(n === 5 ? 'rare' : 'common'))
  const first = await audit.search({ text: 'RARE' })
  expect(first.items).toEqual([])
  expect(first.next).toBeGreaterThan(1)
  expect(await pages(audit, { text: 'RARE' })).toEqual(['rare'])
})

test.each<[string, AuditSearchOptions]>([
  ['rule', { rule: 'careful' }],
  ['code', { code: 'DENIED' }],
  ['who decided', { by: 'ann' }],
  ['correlation', { correlation: 'c7' }],
  ['any text', { text: 'areFU' }],
])('lines are found by %s', async (_, filter) => {
  const { audit } = world()
  await audit.write(facts('other', { rule: 'x', code: 'y', by: 'bob' }))
  await audit.write({ ...facts('wanted', { rule: 'careful', code: 'DENIED', by: 'ann' }), correlation: 'c7' })
  expect((await audit.search(filter)).items.map(({ target }) => target)).toEqual(['wanted'])
})

test('a search says nothing of lines that were dropped, and ends at the oldest that is kept', async () => {
  const { store, audit } = world()
  await write(store, audit, 30, n => facts(`t${n}`))
  await store.commit([{ op: 'trim', log: 'audit', before: 21 }])
  expect(await pages(audit, { limit: 4 })).toEqual(Array.from({ length: 10 }, (_, n) => `t${29 - n}`))
})

test('a proof tells how far it is, and ends when it is told to', async () => {
  const { store, audit } = world()
  await write(store, audit, 1_200, n => facts(`t${n}`))
  const told: [number, number][] = []
  expect(await audit.verify({ onProgress: (done, total) => void told.push([done, total]) })).toMatchObject({ lines: 1_200 })
  expect(told.length).toBeGreaterThan(1)
  expect(told.at(-1)).toEqual([1_200, 1_200])
  expect(told.every(([done, total]) => done <= total)).toBe(true)
  await expect(audit.verify({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
})
