import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { put, type Store, trim } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Feed, type FeedOptions, type FeedPage, lastPosition } from './feed.ts'

type Limits = Pick<FeedOptions, 'keep' | 'keepMs' | 'bytes'>

/** Processes that read and write one feed. */
function world(limits: Limits = {}) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  let ids = 0
  const start = (name = 'ann/transactions') => new Feed({ store, clock, id: () => `e${++ids}`, name, ...limits })
  return { clock, store, start }
}

const names = (page: FeedPage) => page.occurrences.map(({ name }) => name)

test('what was published is read in order after any cursor, in every process', async () => {
  const { start, clock } = world()
  const [one, two] = [start(), start()]
  for (const name of ['begun', 'step', 'committed']) await one.publish({ name, data: { name }, origin: 'tickets' })
  const page = await two.read(undefined)
  expect(names(page)).toEqual(['begun', 'step', 'committed'])
  expect(page.occurrences[1]).toEqual({
    id: 'e2',
    name: 'step',
    at: clock.now(),
    data: { name: 'step' },
    origin: 'tickets',
    cursor: 2,
  })
  expect(names(await two.read(page.occurrences[0]?.cursor))).toEqual(['step', 'committed'])
  expect(await two.read(page.cursor)).toEqual({ occurrences: [], cursor: 3, truncated: false, more: false })
})

test('feeds have names of their own, and an occurrence is told in the one it belongs to', async () => {
  const { start } = world()
  await start('ann/transactions').publish({ name: 'x' })
  expect(names(await start('ann/transaction').read(undefined))).toEqual([])
})

test('E15-1: the filter leaves out, and the cursor passes what it left out', async () => {
  const feed = world().start()
  for (const name of ['a', 'b', 'a', 'b']) await feed.publish({ name })
  const page = await feed.read(0, { filter: ({ name }) => name === 'a', limit: 3 })
  expect([names(page), page.cursor, page.more]).toEqual([['a', 'a'], 3, true])
})

test('what happened and that it is told is one commit', async () => {
  const { start, store } = world()
  const feed = start()
  await store.commit([put('unit', 'rolled back'), feed.publishing({ name: 'transaction_rolled_back' })])
  expect(names(await feed.read(0))).toEqual(['transaction_rolled_back'])
  expect(await feed.publish({ name: 'again' }, [put('unit', '', { ifAbsent: true })])).toBeUndefined()
  expect(names(await feed.read(0))).toEqual(['transaction_rolled_back'])
})

test('E15-3, E15-6: whoever reads gets everything once and in order, or is told that something is missing', async () => {
  const act = fc.oneof(
    fc.record({ publish: fc.integer({ min: 1, max: 8 }), by: fc.nat(1) }),
    fc.record({ read: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ wait: fc.integer({ min: 1, max: 700 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 20 }), async acts => {
      const { start, clock } = world({ keep: 10, keepMs: 1_000 })
      const writers = [start(), start()]
      const reader = start()
      let [published, next, cursor] = [0, 1, 0]
      const read = async (limit: number): Promise<FeedPage> => {
        const page = await reader.read(cursor, { limit })
        const first = Number(page.occurrences[0]?.name ?? next)
        expect(first === next || (first > next && page.truncated)).toBe(true)
        expect(page.occurrences.map(({ name }) => Number(name))).toEqual(page.occurrences.map((_, i) => first + i))
        cursor = page.cursor
        next = page.occurrences.length > 0 ? first + page.occurrences.length : Math.max(next, cursor + 1)
        return page
      }
      for (const one of acts) {
        if ('wait' in one) clock.advance(one.wait)
        else if ('read' in one) await read(one.read)
        else for (let i = 0; i < one.publish; i++) await (writers[one.by] as Feed).publish({ name: String(++published) })
      }
      while ((await read(3)).more);
      expect(cursor).toBe(published)
    }),
  )
})

test('X10: a feed keeps the newest so many, for so long, and never forgets where it was', async () => {
  const { start, store, clock } = world({ keep: 20, keepMs: 10_000 })
  const feed = start()
  for (let i = 0; i < 100; i++) await feed.publish({ name: `n${i}` })
  expect((await store.read(feed.log)).length).toBeLessThanOrEqual(22)
  clock.advance(10_000)
  expect(await feed.read(99)).toMatchObject({ occurrences: [], truncated: true, cursor: 100 })
  expect(await store.read(feed.log)).toHaveLength(1)
  expect(await feed.read(100)).toMatchObject({ truncated: false, cursor: 100 })
})

test('X10: what is only ever written along with other things is kept in by tidying', async () => {
  const { start, store } = world({ keep: 20 })
  const [writer, sweeper] = [start(), start()]
  for (let i = 0; i < 100; i++) await store.commit([writer.publishing({ name: 'n' })])
  await sweeper.tidy()
  expect(await store.read(sweeper.log)).toHaveLength(20)
  await expect(async () =>
    world({ bytes: 50 })
      .start()
      .publish({ name: 'x'.repeat(50) }),
  ).rejects.toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
  })
})

test('E15-6: a cursor whose own occurrence is gone is good as long as the next one is there', async () => {
  const { start, store } = world()
  const feed = start()
  for (const name of ['a', 'b', 'c', 'd']) await feed.publish({ name })
  await store.commit([trim(feed.log, 3)])
  const pages = await Promise.all([0, 1, 2, 3].map(cursor => feed.read(cursor)))
  expect(pages.map(({ truncated }) => truncated)).toEqual([true, true, false, false])
  expect(pages.map(names)).toEqual([['c', 'd'], ['c', 'd'], ['c', 'd'], ['d']])
})

test('E15-6: a cursor of a feed that was lost gets what there is, and is told so', async () => {
  const feed = world().start()
  expect(await feed.read(7)).toMatchObject({ occurrences: [], truncated: true, cursor: 0 })
  await feed.publish({ name: 'new' })
  const page = await feed.read(7)
  expect([names(page), page.truncated, page.cursor]).toEqual([['new'], true, 1])
})

test('the end of a feed is found from wherever one looks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(70), fc.nat(80), fc.nat(60), async (count, known, trimmed) => {
      const { store } = world()
      for (let i = 0; i < count; i++) await store.commit([{ op: 'append', log: 'l', value: '' }])
      await store.commit([{ op: 'trim', log: 'l', before: Math.min(trimmed, count) }])
      expect(await lastPosition(store, 'l', known)).toBe(count)
    }),
  )
})

test('who follows gets what was there, then what comes from any process, and ends with the signal', async () => {
  const { start } = world()
  const [one, two] = [start(), start()]
  await one.publish({ name: 'before' })
  const ending = new AbortController()
  const got: string[] = []
  for await (const page of one.follow(0, ending.signal)) {
    got.push(...names(page))
    if (got.length < 3) await two.publish({ name: `after ${got.length}` })
    else ending.abort()
  }
  expect(got).toEqual(['before', 'after 1', 'after 2'])
})

test('who follows is woken by a publication', async () => {
  const feed = world().start()
  const ending = new AbortController()
  const woken = feed.follow(0, ending.signal).next()
  await feed.publish({ name: 'one' })
  expect((await woken).value).toMatchObject({ occurrences: [{ name: 'one' }] })
  ending.abort()
})

test('who follows looks again in time, also where every hint gets lost', async () => {
  const { start, store, clock } = world()
  const looked = Promise.withResolvers<void>()
  const deaf: Store = {
    ...{ get: k => store.get(k), scan: (p, o) => store.scan(p, o), commit: ops => store.commit(ops), close: () => store.close() },
    read: (log, options) => store.read(log, options).finally(looked.resolve),
    watch: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }),
  }
  const ending = new AbortController()
  const page = new Feed({ store: deaf, clock, id: () => 'x', name: 'ann/transactions' }).follow(0, ending.signal).next()
  await looked.promise
  await start().publish({ name: 'one' })
  await new Promise(setImmediate)
  clock.advance(1_000)
  expect((await page).value).toMatchObject({ occurrences: [{ name: 'one' }] })
  ending.abort()
})
