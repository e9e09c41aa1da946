import { afterEach, expect, it } from 'vitest'
import { mortal } from '../../../test/mortal-store.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { memoryStore } from '../../stores/memory.ts'
import { append, put, type Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Inbox } from './inbox.ts'
import type { InboxEntry, InboxOptions } from './options.ts'
import { inboxKeys } from './records.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const event = (eventId: string): PushEvent => ({
  featureSet: 'notes',
  eventId,
  timestamp: '2026-01-23T10:30:00Z',
  content: [{ type: 'text', text: eventId }],
})

function world() {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const start = (options: Partial<InboxOptions> = {}, on: Store = store): Inbox => {
    const inbox = new Inbox({ store: on, clock, random: () => 1, ...options })
    closing.push(() => inbox.close())
    return inbox
  }
  const turns = async () => (await store.read('turns')).map(({ value }) => value)
  return { clock, store, start, turns }
}

const commit = (entry: InboxEntry): Promise<boolean> => entry.commit([append('turns', entry.event.eventId)])

/** Everything that is under way on a store in memory. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
}

it('an attempt that took too long and ends after the next one has committed leaves no second turn', async () => {
  const { clock, start, turns } = world()
  const inbox = start({ runTime: '1m' })
  const entries: InboxEntry[] = []
  await inbox.open(async entry => {
    entries.push(entry)
    if (entry.attempt === 1) await new Promise(() => {})
    await commit(entry)
  })
  await inbox.accept('s', event('e1'))
  await settled()
  clock.advance(60_000)
  await settled()
  clock.advance(1_000)
  await settled()
  expect(entries.map(({ attempt }) => attempt)).toEqual([1, 2])
  expect([await commit(entries[0] as InboxEntry), await turns()]).toEqual([false, ['e1']])
})

it('a process that was taken over commits nothing, also while the other has not yet committed', async () => {
  const { clock, store, start, turns } = world()
  const cut = mortal(store)
  const late = Promise.withResolvers<InboxEntry>()
  const stalled = start({}, cut.store)
  await stalled.open(async entry => {
    late.resolve(entry)
    await new Promise(() => {})
  })
  await stalled.accept('s', event('e1'))
  const entry = await late.promise
  cut.die()
  clock.advance(6_001)
  const going = Promise.withResolvers<void>()
  const next = start()
  await next.open(async taken => {
    await going.promise
    await commit(taken)
  })
  await settled()
  cut.revive()
  expect([await commit(entry), await turns()]).toEqual([false, []])
  going.resolve()
  await settled()
  expect(await turns()).toEqual(['e1'])
})

it('what was read as waiting, and was done before it was put into its lane, is not run again', async () => {
  const { clock, store, start } = world()
  let hold: Promise<void> | undefined
  const reading = Promise.withResolvers<void>()
  const slow: Store = {
    ...mortal(store).store,
    scan: async (prefix, options) => {
      const page = await store.scan(prefix, options)
      if (prefix === 'inbox/todo/s/' && page.length > 0 && hold !== undefined) {
        reading.resolve()
        await hold
      }
      return page
    },
  }
  const ran: string[] = []
  const inbox = start({}, slow)
  const free = Promise.withResolvers<void>()
  await inbox.open(async entry => {
    ran.push(entry.event.eventId)
    if (entry.event.eventId === 'e1') await free.promise
    await commit(entry)
  })
  await inbox.accept('s', event('e1'))
  await settled()
  const read = Promise.withResolvers<void>()
  hold = read.promise
  // Another process accepts: this one reads anew what waits, and finds what it is about to end.
  await start().accept('s', event('e2'))
  clock.advance(1_000)
  await reading.promise
  free.resolve()
  await settled()
  expect(await inbox.get('s', 'e1')).toMatchObject({ state: 'done' })
  read.resolve()
  await settled()
  expect(ran).toEqual(['e1', 'e2'])
})

it('events keep the order in which they came, also where the policy thinks longer about the first', async () => {
  const { start, turns } = world()
  const thought = Promise.withResolvers<void>()
  const policy: NonNullable<InboxOptions['policy']> = {
    decide: async ({ payload }) => {
      if (JSON.stringify(payload).includes('slow')) await thought.promise
      return { do: 'allow', rule: 'any' }
    },
    approve: async () => ({ yes: true }),
    enter: () => () => {},
    explain: () => ({ verdict: { do: 'allow', rule: 'any' }, rules: [] }),
  }
  const inbox = start({ policy })
  await inbox.open(async entry => void (await commit(entry)))
  await inbox.accept('s', event('first'))
  const slow = inbox.accept('s', event('slow'))
  await inbox.accept('s', event('fast'))
  await settled()
  expect(await turns()).toEqual(['first'])
  thought.resolve()
  await slow
  await settled()
  expect(await turns()).toEqual(['first', 'slow', 'fast'])
})

it('a list that is full reads no further page of the store', async () => {
  const { start, store } = world()
  const ids = Array.from({ length: 1_000 }, (_, n) => `e${String(n).padStart(4, '0')}`)
  const facts = { featureSet: 'notes', inferenceId: 'inf_1', digest: 'd', seq: '1', at: 0, state: 'done' }
  await store.commit(ids.map(eventId => put(inboxKeys.seen('s', eventId), JSON.stringify({ eventId, ...facts }))))
  await store.commit([put(inboxKeys.seen('s', 'f'), JSON.stringify({ eventId: 'f', ...facts }))])
  let pages = 0
  const counting = (prefix: string, options?: object) => {
    pages++
    return store.scan(prefix, options)
  }
  const counted = new Proxy(store, {
    get: (of, name) => (name === 'scan' ? counting : Reflect.get(of, name).bind?.(of)),
  })
  const found = await start({}, counted).list({ server: 's', limit: 1_000 })
  expect([found.map(({ eventId }) => eventId), pages]).toEqual([ids, 1])
})
