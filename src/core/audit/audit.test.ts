import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { type Op, put, type Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Audit, type AuditLogOptions } from './audit.ts'

function world(options: Partial<AuditLogOptions> = {}) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const start = (on: Store = store) => new Audit({ store: on, clock, ...options })
  return { clock, store, start }
}

const facts = (target: string) => ({ event: 'call_settled', correlation: 'c1', owner: 'ann', target, outcome: 'done' }) as const

/** The same store, of which somebody changed what is read. */
function forged(store: Store, log: string, forge: (value: string, position: number) => string | undefined): Store {
  return {
    ...{ get: k => store.get(k), scan: (p, o) => store.scan(p, o), commit: ops => store.commit(ops), close: () => store.close() },
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    read: async (name, options) => {
      const entries = await store.read(name, options)
      if (name !== log) return entries
      return entries.flatMap(({ position, value }) => {
        const now = forge(value, position)
        return now === undefined ? [] : [{ position, value: now }]
      })
    },
  }
}

test('X8: a line is written in the commit of what it tells, or not at all', async () => {
  const { store, start } = world()
  const audit = start()
  await store.commit([put('unit', 'rolled back'), audit.line(facts('tx'))])
  await store.commit([put('unit', '', { ifAbsent: true }), audit.line(facts('never'))])
  expect(await audit.read()).toMatchObject([{ ...facts('tx'), position: 1, at: expect.any(Number) }])
})

test('X8: lines of several processes are one chain, whoever makes its links', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ by: fc.nat(1), chain: fc.boolean() }), { maxLength: 30 }), async acts => {
      const { start } = world()
      const processes = [start(), start()]
      await Promise.all(
        acts.map(async ({ by, chain }) => {
          await processes[by]?.write(facts('x'))
          if (chain) await processes[by]?.chain()
        }),
      )
      expect(await start().verify()).toMatchObject({ ok: true, lines: acts.length, chained: acts.length })
    }),
    { numRuns: 50 },
  )
})

test('X8: a line that is changed, dropped or put in later is found, and so is a link', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 9 }), fc.boolean(), async (at, drop) => {
      const { store, start } = world()
      const audit = start()
      for (let i = 0; i < 9; i++) {
        await audit.write(facts(`t${i}`))
        if (i % 4 === 3) await audit.chain()
      }
      expect((await audit.verify()).ok).toBe(true)
      const forge = (value: string, position: number) =>
        position !== at ? value : drop ? undefined : value.replace('ann', 'eve')
      const found = await start(forged(store, 'audit', forge)).verify()
      expect(found).toMatchObject({ ok: false, after: at <= 4 ? 0 : at <= 8 ? 4 : 8 })
      const link = (value: string, position: number) => (position === 2 ? value.replace(/"hash":"./, '"hash":"~') : value)
      expect(await start(forged(store, 'audit-chain', link)).verify()).toMatchObject({ ok: false, after: 4 })
    }),
  )
})

test('X10: the audit log keeps so many lines, for so long, and what is kept can still be proven', async () => {
  const { clock, store, start } = world({ keep: 20, keepMs: 10_000 })
  const audit = start()
  for (let i = 0; i < 100; i++) {
    await audit.write(facts(`t${i}`))
    if (i % 5 === 4) await audit.chain()
  }
  expect((await store.read('audit')).length).toBeLessThanOrEqual(25)
  expect(await audit.verify()).toMatchObject({ ok: true, chained: 100 })
  clock.advance(10_001)
  await audit.write(facts('late'))
  await audit.chain()
  expect((await audit.read()).map(({ target }) => target)).toEqual(['late'])
  expect(await audit.verify()).toMatchObject({ ok: true, lines: 1, chained: 101 })
})

test('X8: what was written is chained within a second, and when the process ends', async () => {
  const { clock, store, start } = world()
  const audit = start()
  await audit.write(facts('a'))
  expect(await store.read('audit-chain')).toHaveLength(0)
  clock.advance(1_000)
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  expect(await store.read('audit-chain')).toHaveLength(1)
  await audit.write(facts('b'))
  await audit.close()
  expect(await store.read('audit-chain')).toHaveLength(2)
})

test('X8: while lines keep coming, a chaining covers those that were there and ends', async () => {
  const { store, start } = world()
  const commits: (readonly Op[])[] = []
  const writer = start()
  // Whenever a link is written, there is one line more.
  const restless: Store = {
    ...{ get: k => store.get(k), scan: (p, o) => store.scan(p, o), read: (l, o) => store.read(l, o), close: () => store.close() },
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    commit: async ops => {
      commits.push(ops)
      if (commits.length < 100) await writer.write(facts(`more ${commits.length}`))
      return store.commit(ops)
    },
  }
  await writer.write(facts('a'))
  const audit = start(restless)
  await audit.chain()
  expect(commits).toHaveLength(1)
  await Promise.all([audit.chain(), audit.chain()])
  expect(await writer.verify()).toMatchObject({ ok: true, lines: 4, chained: 4 })
})

test('X10: a line is short, whatever it is told', async () => {
  const { start } = world()
  const audit = start()
  await audit.write({ ...facts('x'.repeat(100_000)), more: { reason: 'y'.repeat(100_000) } })
  expect(JSON.stringify(await audit.read()).length).toBeLessThan(2_000)
})
