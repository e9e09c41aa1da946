import { afterEach, describe, expect, it } from 'vitest'
import { McpError } from '../../../jsonrpc/error.ts'
import { memoryStore } from '../../../stores/memory.ts'
import { add, put, type Store } from '../../../stores/store.ts'
import { fakeClock } from '../../../testing/clock.ts'
import { SelectedSets } from '../feature-sets/server.ts'
import type { LiveHost } from '../hosts/messages.ts'
import { EventStore } from './event-store.ts'
import { Outbox } from './outbox.ts'
import { type OutgoingPush, outgoing } from './server.ts'

const boxes: Outbox[] = []
afterEach(async () => {
  for (const box of boxes.splice(0)) await box.close()
})

/** A host that answers as it is told to, and writes down what it got. */
function host(answer: (event: OutgoingPush) => unknown = () => ({ accepted: true }), principal?: string) {
  const got: string[] = []
  const selection = new SelectedSets()
  selection.apply({ enabled: ['a'] }, ['a'], 'whole')
  const one = {
    got,
    selection,
    selected: selection,
    dialect: { label: '0.2', arrays: false, source: true } as const,
    principal,
    reachable: true,
    gone: false,
    notify: () => true,
    request: async (_: unknown, params: unknown) => {
      const event = params as OutgoingPush
      got.push(event.eventId)
      return answer(event) as never
    },
  } satisfies LiveHost & Record<string, unknown>
  return one
}

function world(store: Store = memoryStore(), most = 100, keepMs = 1_000_000) {
  const clock = fakeClock()
  const traced: string[] = []
  const hosts: LiveHost[] = []
  const make = async (): Promise<Outbox> => {
    const eventStore = new EventStore({ store, clock, most })
    const trace = (event: string): void => void traced.push(event)
    const options = {
      eventStore,
      clock,
      trace,
      hosts: () => hosts,
      offered: () => true,
      keepMs,
      timeoutMs: 1000,
      changed: () => {},
    }
    const box = new Outbox({ ...options, random: () => 0.5 })
    await box.open()
    boxes.push(box)
    return box
  }
  return { clock, hosts, traced, make, store }
}

const event = (eventId: string, more: object = {}): OutgoingPush => outgoing('a', { content: eventId, eventId, ...more }, 0)
/** All that needs no time has happened: the store is in memory, and hosts answer at once. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
}

describe('the outbox', () => {
  it('keeps what nobody took, and gives it to the first who wants it', async () => {
    const { make, hosts } = world()
    const box = await make()
    const { answered } = await box.push(event('1'))
    const one = host()
    hosts.push(one)
    box.retryNow()
    expect(await answered).toEqual({ accepted: true })
    await settled()
    expect([one.got, box.pending]).toEqual([['1'], []])
  })

  it('tries again also what becomes due while it looks', async () => {
    for (let early = 1; early <= 8; early++) {
      const { make, hosts, clock } = world()
      let answers = 0
      hosts.push(
        host(() => {
          if (answers++ === 0) throw new McpError('internal', 'Could not be written')
          return { accepted: true }
        }),
      )
      const box = await make()
      const { answered } = await box.push(event('1'))
      await settled()
      clock.advance(1_000 - early)
      // From here on each look at the clock finds it later than the one before.
      const { now } = clock
      let looks = 0
      Object.assign(clock, { now: () => now() + looks++ })
      box.retryNow()
      Object.assign(clock, { now })
      clock.advance(20)
      await settled()
      expect([early, answers]).toEqual([early, 2])
      expect(await answered).toEqual({ accepted: true })
    }
  })

  it('tries again later and later, until it was answered', async () => {
    const { make, hosts, clock } = world()
    const times: number[] = []
    hosts.push(
      host(() => {
        times.push(clock.now())
        if (times.length < 5) throw new McpError('timeout', 'No answer')
        return { accepted: true }
      }),
    )
    const box = await make()
    const { answered } = await box.push(event('1'))
    await settled()
    for (let step = 0; step < 40; step++) {
      clock.advance(500)
      await settled()
    }
    await answered
    const waits = times.slice(1).map((at, index) => at - (times[index] as number))
    expect(waits).toEqual([1000, 2000, 4000, 8000])
  })

  it('is not stopped by a stored event that cannot be written', async () => {
    const { make, hosts, traced, store, clock } = world()
    const broken = { featureSet: 'a', eventId: '1', timestamp: '', content: [null] }
    const value = JSON.stringify({ event: broken, at: clock.now(), order: 0 })
    await store.commit([put('live/outbox/event/1', value), add('live/outbox/count', 1)])
    const one = host()
    hosts.push(one)
    const box = await make()
    const { answered } = await box.push(event('2', { origin: { other: true } }))
    expect(await answered).toEqual({ accepted: true })
    await settled()
    expect([one.got, box.pending.length, traced]).toEqual([['2'], 1, ['push-retried']])
  })

  it('is bounded: above the limit a push is refused with what can be done', async () => {
    const { make } = world(undefined, 2)
    const box = await make()
    await box.push(event('1'))
    await box.push(event('2'))
    await expect(box.push(event('3'))).rejects.toMatchObject({
      code: 'QUOTA_EXHAUSTED',
      suggestion: expect.stringContaining('live.outbox'),
    })
    expect(box.pending.map(({ eventId }) => eventId)).toEqual(['1', '2'])
  })

  it('has room again when something was answered', async () => {
    const { make, hosts } = world(undefined, 1)
    const box = await make()
    hosts.push(host())
    for (const id of ['1', '2', '3']) {
      await (await box.push(event(id))).answered
      await settled()
    }
    expect(box.pending).toEqual([])
  })

  it('gives up what is too old, and says so', async () => {
    const { make, clock, traced } = world(undefined, 100, 5_000)
    const box = await make()
    const { answered } = await box.push(event('1'))
    clock.advance(6_000)
    box.retryNow()
    await expect(answered).rejects.toMatchObject({ code: 'PUSH_EXPIRED' })
    expect([box.pending, traced]).toEqual([[], ['push-expired']])
  })

  it('puts one event down once, and refuses another one under its id', async () => {
    const { make } = world()
    const box = await make()
    const first = await box.push(event('1'))
    const again = await box.push({ ...event('1'), timestamp: '2030-01-01T00:00:00Z' })
    expect(again.timestamp).toBe(first.timestamp)
    expect(box.pending).toHaveLength(1)
    await expect(box.push(event('1', { content: 'other' }))).rejects.toMatchObject({ code: 'EVENT_CONFLICT' })
  })

  it('is found by a later process, in the order in which it was filled', async () => {
    const { make, store, clock } = world()
    const first = await make()
    for (let n = 0; n < 12; n++) await first.push(event(`${n}`))
    await first.close()
    const later = world(store)
    const one = host()
    later.hosts.push(one)
    later.clock.advance(clock.now() - later.clock.now())
    await later.make()
    for (let n = 0; n < 30 && one.got.length < 12; n++) await settled()
    expect(one.got).toEqual(Array.from({ length: 12 }, (_, n) => `${n}`))
  })

  it('is shared: what one process puts down, the hosts of another hear, and it is gone for both', async () => {
    const { make, store } = world()
    const here = await make()
    const other = world(store)
    const one = host()
    other.hosts.push(one)
    const there = await other.make()
    await here.push(event('1'))
    await expect.poll(() => one.got).toEqual(['1'])
    await expect.poll(() => there.pending).toEqual([])
    expect(await store.scan('live/outbox/event/')).toEqual([])
  })

  it('is answered by the host that is there, and does not wait for one that is away', async () => {
    const { make, hosts, store } = world()
    const [away, here] = [{ ...host(), reachable: false }, host()]
    hosts.push(away, here)
    const box = await make()
    expect(await (await box.push(event('1'))).answered).toEqual({ accepted: true })
    await settled()
    expect([await store.scan('live/outbox/event/'), box.pending]).toEqual([[], []])
    const later = host()
    hosts.push(later)
    box.retryNow()
    await settled()
    expect([here.got, later.got]).toEqual([['1'], []])
  })

  it('gives a host that was away for a moment what another one has answered meanwhile', async () => {
    const { make, hosts, store } = world()
    const away = { ...host(), reachable: false }
    hosts.push(away, host())
    const box = await make()
    await (await box.push(event('1'))).answered
    away.reachable = true
    box.retryNow()
    await settled()
    box.retryNow()
    await settled()
    expect([away.got, await store.scan('live/outbox/event/')]).toEqual([['1'], []])
  })

  it('keeps only so many answered events for a host that is away', async () => {
    const { make, hosts } = world(undefined, 200)
    const away = { ...host(), reachable: false }
    hosts.push(away, host())
    const box = await make()
    for (let n = 0; n < 105; n++) await (await box.push(event(`${n}`))).answered
    await settled()
    away.reachable = true
    for (let turn = 0; turn < 200 && away.got.length < 100; turn++) {
      box.retryNow()
      await settled()
    }
    expect([away.got.length, away.got[0]]).toEqual([100, '5'])
  })

  it('is answered although a second host leaves while the event is on its way to it', async () => {
    const { make, hosts, store } = world()
    const leaving = { ...host(() => new Promise(() => {})) }
    hosts.push(leaving, host())
    const box = await make()
    const { answered } = await box.push(event('1'))
    expect(await answered).toEqual({ accepted: true })
    await settled()
    expect((await store.scan('live/outbox/event/')).length).toBe(1)
    Object.assign(leaving, { reachable: false })
    box.left()
    await settled()
    expect(await store.scan('live/outbox/event/')).toEqual([])
  })

  it('is refused when all hosts that are there have refused', async () => {
    const { make, hosts } = world()
    const no = () => ({ accepted: false, reason: 'no' })
    const [leaving, here] = [host(() => new Promise(() => {})), host(no)]
    hosts.push(leaving, here)
    const box = await make()
    const { answered } = await box.push(event('1'))
    await settled()
    expect(box.pending).toHaveLength(1)
    Object.assign(leaving, { reachable: false })
    box.left()
    expect(await answered).toEqual({ accepted: false, reason: 'no' })
  })

  it('removes an answered event later where the store fails at first, so that no restart repeats it', async () => {
    const store = memoryStore()
    const { commit } = store
    let down = false
    Object.assign(store, {
      commit: (ops: Parameters<Store['commit']>[0]) =>
        down ? Promise.reject(new Error('The store is down')) : commit.call(store, ops),
    })
    const { make, hosts, clock, traced } = world(store)
    hosts.push(
      host(() => {
        down = true
        return { accepted: true }
      }),
    )
    const box = await make()
    await (await box.push(event('1'))).answered
    await settled()
    expect([traced, (await store.scan('live/outbox/event/')).length]).toEqual([['outbox-not-written'], 1])
    down = false
    clock.advance(60_001)
    await settled()
    expect(await store.scan('live/outbox/event/')).toEqual([])
  })

  it('sends an event again that is pushed again after it was answered', async () => {
    const { make, hosts } = world()
    const [away, here] = [{ ...host(), reachable: false }, host()]
    hosts.push(away, here)
    const box = await make()
    await (await box.push(event('1'))).answered
    await settled()
    await (await box.push(event('1'))).answered
    expect(here.got).toEqual(['1', '1'])
  })

  it('sends to those it is for', async () => {
    const { make, hosts } = world()
    const [alice, bob] = [host(undefined, 'alice'), host(undefined, 'bob')]
    hosts.push(alice, bob)
    const box = await make()
    await (await box.push(event('1', { to: 'bob' }))).answered
    expect([alice.got, bob.got]).toEqual([[], ['1']])
  })

  it('waits with an event that one host refused for its set, and goes on when that has changed', async () => {
    const { make, hosts } = world()
    let off = true
    const one = host(() => {
      if (off) throw new McpError('remote', 'Feature set not enabled', { code: -32001, data: { featureSet: 'a' } })
      return { accepted: true }
    })
    hosts.push(one)
    const box = await make()
    const { answered } = await box.push(event('1'))
    await settled()
    await settled()
    expect(one.got).toEqual(['1'])
    off = false
    box.retryNow()
    expect(await answered).toEqual({ accepted: true })
  })
})
