import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { cursorText, Feed, readCursor } from './feed.ts'
import { Tail } from './tail.ts'

function world(size?: number, wrap: (store: Store) => Store = store => store) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  let ids = 0
  const feed = (over = store): Feed => new Feed({ store: over, clock, id: () => `e${++ids}`, name: 'x' })
  const told: string[] = []
  const failures: unknown[] = []
  const tail = new Tail({
    feed: feed(wrap(store)),
    tell: occurrences => told.push(...occurrences.map(({ name }) => name)),
    failed: error => failures.push(error),
    ...(size === undefined ? {} : { size }),
  })
  return { clock, store, feed, tail, told, failures }
}

test('a tail tells what is published after its start, by anybody, once for all', async () => {
  const { feed, tail, told } = world()
  await feed().publish({ name: 'before' })
  await tail.start()
  for (const name of ['a', 'b', 'c']) await feed().publish({ name })
  await expect.poll(() => told).toEqual(['a', 'b', 'c'])
  expect(tail.after(2, 10)?.map(({ name }) => name)).toEqual(['b', 'c'])
  expect(tail.after(1, 1)?.map(({ name }) => name)).toEqual(['a'])
  expect([tail.after(4, 10), tail.after(0, 10), tail.end]).toEqual([[], undefined, 4])
  tail.stop()
  await feed().publish({ name: 'd' })
  expect([tail.running, told.length, tail.after(4, 10)]).toEqual([false, 3, undefined])
})

test('a tail holds the newest so many, and knows what it no longer holds', async () => {
  const { feed, tail, told } = world(10)
  await tail.start()
  const writer = feed()
  for (let i = 1; i <= 100; i++) await writer.publish({ name: String(i) })
  await expect.poll(() => told.length).toBe(100)
  for (let after = 0; after <= 100; after++) {
    const held = tail.after(after, 5)
    if (after < 80) expect(held).toBeUndefined()
    else if (held !== undefined)
      expect(held.map(({ cursor }) => cursor)).toEqual([1, 2, 3, 4, 5].map(i => after + i).filter(i => i <= 100))
  }
  expect(tail.after(90, 100)).toHaveLength(10)
  tail.stop()
})

test('a tail whose store fails for a while goes on where it was', async () => {
  let broken = false
  const { clock, feed, tail, told, failures } = world(undefined, store => ({
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    commit: ops => store.commit(ops),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
    read: async (log, options) => {
      if (broken) throw new Error('The disk is gone')
      return store.read(log, options)
    },
  }))
  await tail.start()
  broken = true
  await feed().publish({ name: 'a' })
  await expect.poll(() => failures.length).toBe(1)
  broken = false
  await feed().publish({ name: 'b' })
  clock.advance(1_000)
  await expect.poll(() => told).toEqual(['a', 'b'])
  tail.stop()
})

test('a cursor leads back to its position, and only in its own feed', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{1,12}$/), fc.maxSafeNat(), (era, position) => {
      const text = cursorText(era, position)
      expect(readCursor(era, text)).toBe(position)
      expect(readCursor(`${era}x`, text)).toBe('lost')
    }),
  )
})

test('what is no cursor is none, whatever it is', () => {
  for (const text of ['', '.', 'a.', '.1', 'a.-1', 'a.01', `a.${'z'.repeat(11)}`, 'a.1.1', 'a b.1', 'a.1\n'])
    expect(readCursor('a', text)).toBeUndefined()
  fc.assert(fc.property(fc.string(), text => void readCursor('a', text)))
})

test('the era of a feed is the same for all on one store, and another one on another', async () => {
  const [here, there] = [world(), world()]
  const era = await here.feed().era()
  expect(await here.feed().era()).toBe(era)
  there.feed()
  await there.store.commit([{ op: 'put', key: 'feed-era/x', value: 'other' }])
  expect(await there.feed().era()).toBe('other')
})
