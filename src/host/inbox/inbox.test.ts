import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { mortal } from '../../../test/mortal-store.ts'
import { type StoreKind, storeKinds, storesUnderTest } from '../../../test/stores-under-test.ts'
import type { Why } from '../../core/suggestion.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import { append, put, type Store } from '../../stores/store.ts'
import { Inbox } from './inbox.ts'
import type { InboxEntry, InboxOptions } from './options.ts'

const stores = storesUnderTest()
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function event(eventId: string, more: Partial<PushEvent> = {}): PushEvent {
  return { featureSet: 'notes', eventId, timestamp: '2026-01-23T10:30:00Z', content: [{ type: 'text', text: eventId }], ...more }
}

/** Processes on one store and one clock. */
async function world(kind: StoreKind) {
  const clock = stores.clock()
  const store = await stores.open(kind, clock)
  closing.push(() => store.close())
  let ids = 0
  const told: Why[] = []
  const start = (options: Partial<InboxOptions> = {}, on: Store = store): Inbox => {
    const onDiagnostic = (_: string, what: Why) => void told.push(what)
    const inbox = new Inbox({ store: on, clock, id: () => `i${++ids}`, random: () => 1, onDiagnostic, ...options })
    closing.push(() => inbox.close())
    return inbox
  }
  return { clock, store, start, told }
}

/** Runs that write down what they did, in the commit that marks it done. */
function recorder(store: Store) {
  const order: string[] = []
  const waiting = new Map<number, () => void>()
  const run = async (entry: InboxEntry): Promise<void> => {
    const outcome = await store.commit([append('turns', entry.inferenceId), ...entry.done])
    if (!outcome.ok) throw new Error('This turn is not ours')
    order.push(...entry.events.map(({ eventId }) => eventId))
    for (const [count, resolve] of waiting) if (order.length >= count) resolve()
  }
  const until = (count: number): Promise<void> =>
    order.length >= count ? Promise.resolve() : new Promise(resolve => waiting.set(count, resolve))
  return { order, run, until }
}

async function accepted(answer: Promise<PushAnswer>): Promise<string> {
  const given = await answer
  if (!given.accepted || given.inferenceId === undefined) throw new Error(JSON.stringify(given))
  return given.inferenceId
}

/** Until it holds; what is waited for happens on a store that takes its time. */
async function eventually<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise(resolve => setImmediate(resolve))
  }
}

const stateOf = async (inbox: Inbox, eventId: string, state: string) =>
  eventually(async () => {
    const record = await inbox.get('s', eventId)
    return record?.state === state ? record : undefined
  })

describe.each(storeKinds)('the inbox on %s', kind => {
  it('L9.3-1: an event that was accepted has its inference at once, and lasts', async () => {
    const { start, store } = await world(kind)
    const id = await accepted(start().accept('s', event('e1')))
    const { order, run, until } = recorder(store)
    const next = start()
    await next.open(run)
    await until(1)
    expect(order).toEqual(['e1'])
    expect(await stateOf(next, 'e1', 'done')).toMatchObject({
      inferenceId: id,
      attempts: [{ n: 1, outcome: 'done' }],
    })
    expect(await store.read('turns')).toMatchObject([{ value: id }])
  })

  it('L9.4-1: a repeated event triggers nothing and gets the first answer again, also after a restart and after it was done', async () => {
    const { start, store } = await world(kind)
    const { order, run, until } = recorder(store)
    const one = start()
    const answers = await Promise.all([one.accept('s', event('e1')), one.accept('s', event('e1'))])
    expect(answers[1]).toEqual(answers[0])
    const two = start()
    expect(await two.accept('s', event('e1', { timestamp: '2026-01-24T10:30:00Z' }))).toEqual(answers[0])
    await two.open(run)
    await until(1)
    expect(await start().accept('s', event('e1'))).toEqual(answers[0])
    await two.accept('s', event('e2'))
    await until(2)
    expect(order).toEqual(['e1', 'e2'])
  })

  it('A15: an id is one per server; another body under it is refused and told, and the first one counts', async () => {
    const { start, told } = await world(kind)
    const inbox = start()
    const first = await accepted(inbox.accept('s', event('e1')))
    const other = event('e1', { content: [{ type: 'text', text: 'other' }] })
    expect(await accepted(inbox.accept('t', other))).not.toBe(first)
    expect(told).toEqual([])
    const conflict = { accepted: false, reason: 'conflict', data: { code: 'EVENT_CONFLICT', rule: 'inbox.dedupe' } }
    expect([await inbox.accept('s', other), await start().accept('s', other)]).toMatchObject([conflict, conflict])
    expect(told).toMatchObject([{ code: 'EVENT_CONFLICT' }, { code: 'EVENT_CONFLICT' }])
    expect(await accepted(inbox.accept('s', event('e1')))).toBe(first)
  })

  it('runs events of one origin one after the other, in the order of acceptance, and others beside them', async () => {
    const { start, store } = await world(kind)
    const { order, run, until } = recorder(store)
    const inbox = start()
    let slow: (() => void) | undefined
    await inbox.open(async entry => {
      if (entry.event.eventId === 'a0') await new Promise<void>(resolve => (slow = resolve))
      await run(entry)
    })
    const origins = (n: number) => ['a', 'b'].map(name => event(`${name}${n}`, { origin: { name } }))
    const all = [0, 1, 2].flatMap(origins)
    await Promise.all(all.map(each => inbox.accept('s', each)))
    await until(3)
    expect(order).toEqual(['b0', 'b1', 'b2'])
    slow?.()
    await until(6)
    expect(order.slice(3)).toEqual(['a0', 'a1', 'a2'])
  })

  it('orders by feature set where there is no origin', async () => {
    const { start, store } = await world(kind)
    const { order, run, until } = recorder(store)
    const inbox = start({ concurrency: 4, perServer: 4 })
    await Promise.all(
      Array.from({ length: 12 }, (_, n) => inbox.accept('s', event(`${n % 2}-${n}`, { featureSet: `f${n % 2}` }))),
    )
    await inbox.open(run)
    await until(12)
    const numbers = (set: string) => order.filter(id => id.startsWith(set)).map(id => Number(id.slice(2)))
    expect([numbers('0-'), numbers('1-')]).toEqual([
      [0, 2, 4, 6, 8, 10],
      [1, 3, 5, 7, 9, 11],
    ])
  })

  it('tries again what failed, later each time, and keeps those behind it waiting', async () => {
    const { start, store, clock } = await world(kind)
    const { order, run, until } = recorder(store)
    const inbox = start()
    let failures = 0
    await inbox.open(async entry => {
      if (entry.event.eventId === 'e1' && failures++ < 2) throw new Error(`failure ${failures}`)
      await run(entry)
    })
    await inbox.accept('s', event('e1'))
    await inbox.accept('s', event('e2'))
    const failed = (count: number) =>
      eventually(async () => {
        const record = await inbox.get('s', 'e1')
        return record?.attempts.filter(({ outcome }) => outcome === 'failed').length === count ? record : undefined
      })
    await failed(1)
    await clock.advance(999)
    expect(failures).toBe(1)
    await clock.advance(1)
    await failed(2)
    await clock.advance(2_000)
    await until(2)
    expect(order).toEqual(['e1', 'e2'])
    expect((await stateOf(inbox, 'e1', 'done')).attempts).toMatchObject([
      { n: 1, outcome: 'failed', error: 'failure 1' },
      { n: 2, outcome: 'failed', error: 'failure 2' },
      { n: 3, outcome: 'done' },
    ])
  })

  it('gives up after so many failures, goes on behind it, and tries it again when told to', async () => {
    const { start, store, told } = await world(kind)
    const { order, run, until } = recorder(store)
    const inbox = start({ attempts: 1 })
    let broken = true
    await inbox.open(async entry => {
      if (entry.event.eventId === 'bad' && broken) throw new Error('no')
      await run(entry)
    })
    const id = await accepted(inbox.accept('s', event('bad')))
    await inbox.accept('s', event('good'))
    await until(1)
    expect(order).toEqual(['good'])
    expect(await inbox.dead('s')).toMatchObject([
      {
        eventId: 'bad',
        inferenceId: id,
        why: { code: 'EVENT_DEAD', fix: expect.stringContaining('replay') },
        event: { eventId: 'bad' },
      },
    ])
    expect(told).toMatchObject([{ code: 'EVENT_DEAD' }])
    broken = false
    expect([await inbox.replay('s', 'bad'), await inbox.replay('s', 'bad'), await inbox.replay('s', 'good')]).toEqual([
      true,
      false,
      false,
    ])
    await until(2)
    expect(order).toEqual(['good', 'bad'])
    expect([await inbox.dead('s'), (await stateOf(inbox, 'bad', 'done')).inferenceId]).toEqual([[], id])
  })

  it('lists what there is of a server, by state', async () => {
    const { start, store } = await world(kind)
    const { run, until } = recorder(store)
    const inbox = start()
    for (const id of ['a', 'b', 'c']) await inbox.accept('s', event(id))
    await inbox.accept('t', event('x'))
    const ids = async (more: object) => (await inbox.list({ server: 's', ...more })).map(({ eventId }) => eventId)
    expect([await ids({}), await ids({ limit: 2 }), await ids({ after: 'b' })]).toEqual([['a', 'b', 'c'], ['a', 'b'], ['c']])
    expect(await ids({ state: 'done' })).toEqual([])
    await inbox.open(run)
    await until(4)
    await stateOf(inbox, 'c', 'done')
    expect(await ids({ state: 'done' })).toEqual(['a', 'b', 'c'])
  })

  it('a run that was interrupted is listed as such, and run again by the next process, with one turn', async () => {
    const { start, store, clock } = await world(kind)
    const { order, run, until } = recorder(store)
    const cut = mortal(store)
    const dead = start({}, cut.store)
    await accepted(dead.accept('s', event('e1')))
    const begun = Promise.withResolvers<void>()
    await dead.open(async () => {
      begun.resolve()
      await new Promise(() => {})
    })
    await begun.promise
    cut.die()
    await clock.advance(6_001)
    const next = start()
    await next.open(run)
    await until(1)
    const { attempts } = await stateOf(next, 'e1', 'done')
    expect(attempts).toMatchObject([{ outcome: 'interrupted' }, { outcome: 'done' }])
    expect(attempts[0]?.by).not.toBe(attempts[1]?.by)
    expect([order, await store.read('turns')]).toMatchObject([['e1'], [{}]])
    cut.revive()
  })

  it('a run that writes its beginning itself does so in one commit with its own, and only while the event is its own', async () => {
    const { start, store, clock } = await world(kind)
    const cut = mortal(store)
    const stalled = start({}, cut.store)
    await stalled.accept('s', event('e1'))
    const late = Promise.withResolvers<InboxEntry>()
    await stalled.open(
      async entry => {
        late.resolve(entry)
        await new Promise(() => {})
      },
      { writesBegin: true },
    )
    const entry = await late.promise
    expect(await stalled.get('s', 'e1')).toMatchObject({ attempts: [] })
    cut.die()
    await clock.advance(6_001)
    const next = start()
    const done = Promise.withResolvers<void>()
    await next.open(
      async ({ begin, commit }) => {
        await store.commit([append('turns', 'begun'), ...begin])
        expect(await next.get('s', 'e1')).toMatchObject({ attempts: [{ n: 1, outcome: 'running' }] })
        expect(await store.commit([append('turns', 'late'), ...entry.begin])).toMatchObject({ ok: false })
        await commit([])
        done.resolve()
      },
      { writesBegin: true },
    )
    await done.promise
    expect(await stateOf(next, 'e1', 'done')).toMatchObject({ attempts: [{ n: 1, outcome: 'done' }] })
    expect(await store.read('turns')).toMatchObject([{ value: 'begun' }])
    cut.revive()
  })

  it('what a process still wants to commit after another took over is not written', async () => {
    const { start, store, clock } = await world(kind)
    const { run, until } = recorder(store)
    const cut = mortal(store)
    const stalled = start({}, cut.store)
    await stalled.accept('s', event('e1'))
    const late = Promise.withResolvers<InboxEntry>()
    await stalled.open(async entry => {
      late.resolve(entry)
      await new Promise(() => {})
    })
    const entry = await late.promise
    cut.die()
    await clock.advance(6_001)
    const next = start()
    await next.open(run)
    await until(1)
    cut.revive()
    expect(await entry.commit([put('effect', 'twice')])).toBe(false)
    expect([await store.get('effect'), (await store.read('turns')).length]).toEqual([undefined, 1])
  })

  it('two processes: one runs a server, what the other accepts for it is run there, and handed over when it closes', async () => {
    const { start, store, clock } = await world(kind)
    const { order, run, until } = recorder(store)
    const by: string[] = []
    let writing = 0
    const counted: Store = {
      ...mortal(store).store,
      commit: async ops => {
        writing++
        return store.commit(ops).finally(() => writing--)
      },
    }
    const [one, two] = [start({}, counted), start({}, counted)]
    const as = (name: string) => async (entry: InboxEntry) => {
      by.push(name)
      await run(entry)
    }
    /** Time passes no faster than the store is written, so that whoever lives is seen to live. */
    const passing = (look: () => boolean) =>
      eventually(async () => {
        await clock.advance(1_000)
        await eventually(async () => (writing === 0 ? true : undefined))
        for (let n = 0; n < 3; n++) await store.get('any')
        return look() ? true : undefined
      })
    await one.open(as('one'))
    await two.open(as('two'))
    await one.accept('s', event('e1'))
    await until(1)
    await two.accept('s', event('e2'))
    await passing(() => order.length === 2)
    await stateOf(two, 'e2', 'done')
    await one.close()
    await two.accept('s', event('e3'))
    await passing(() => order.length === 3)
    expect([order, by]).toEqual([
      ['e1', 'e2', 'e3'],
      ['one', 'one', 'two'],
    ])
  })

  it('turns away what is more than may wait, with a hint, and leaves other servers alone', async () => {
    const { start, clock, store } = await world(kind)
    const { run, until } = recorder(store)
    const inbox = start({ waiting: 2 })
    const answers = []
    for (const id of ['a', 'b', 'c']) answers.push(await inbox.accept('s', event(id)))
    expect(answers[2]).toMatchObject({ accepted: false, reason: 'rate', retryAfterMs: 1_000, data: { rule: 'inbox.waiting' } })
    expect(await inbox.accept('t', event('x'))).toMatchObject({ accepted: true })
    expect(await inbox.accept('s', event('a'))).toEqual(answers[0])
    await inbox.open(run)
    await until(3)
    await clock.advance(1_000)
    expect(await inbox.accept('s', event('c'))).toMatchObject({ accepted: true })
  })

  it('an event whose write failed is taken when it comes again, and runs once', async () => {
    const { start, store } = await world(kind)
    const { order, run, until } = recorder(store)
    let fail: 'before' | 'after' | undefined
    const shaky: Store = {
      ...mortal(store).store,
      commit: async ops => {
        const failing = ops.some(op => 'key' in op && op.key.includes('/todo/') && op.op === 'put') ? fail : undefined
        if (failing === 'before') throw new Error('no disk')
        const outcome = await store.commit(ops)
        if (failing === 'after') throw new Error('connection lost')
        return outcome
      },
    }
    const inbox = start({}, shaky)
    await inbox.open(run)
    for (const when of ['before', 'after'] as const) {
      fail = when
      await expect(inbox.accept('s', event(when))).rejects.toThrow()
      fail = undefined
      await accepted(inbox.accept('s', event(when)))
    }
    await until(2)
    await inbox.accept('s', event('last'))
    await until(3)
    expect(order).toEqual(['before', 'after', 'last'])
  })

  it('nothing is left of what is over but what is known of it, and that ends too', async () => {
    const { start, store, clock } = await world(kind)
    const { run, until } = recorder(store)
    const inbox = start({ keep: '1h' })
    await inbox.open(run)
    await Promise.all(Array.from({ length: 5 }, (_, n) => inbox.accept('s', event(`e${n}`))))
    await until(5)
    await stateOf(inbox, 'e4', 'done')
    await inbox.close()
    const keys = async () =>
      (await store.scan('inbox/')).map(({ key, value }) => (key.includes('count') ? `${key}=${value}` : key))
    expect(await keys()).toEqual(['inbox/call/s', 'inbox/count/s=0', ...[0, 1, 2, 3, 4].map(n => `inbox/seen/s/e${n}`)])
    await clock.advance(3_600_000)
    expect(await keys()).toEqual(['inbox/call/s', 'inbox/count/s=0'])
  })
})

it('ids and origins of any kind keep their order and their place', async () => {
  const { start, store } = await world('memory')
  const { order, run, until } = recorder(store)
  const strange = ['', '/', '../x', '~', '%2f', 'ü', '\u0000', '\ud800', 'x'.repeat(5_000), '__proto__', 'constructor']
  const inbox = start()
  const ids = new Set<string>()
  for (const id of strange)
    ids.add(await accepted(inbox.accept('__proto__', event(id, { origin: JSON.parse('{"__proto__":1}') }))))
  expect(ids.size).toBe(strange.length)
  await inbox.open(run)
  await until(strange.length)
  expect(order).toEqual(strange)
  expect(await inbox.get('__proto__', '/')).toMatchObject({ state: 'done' })
})

it('an event that is too large is refused, and a server without a name is a mistake', async () => {
  const inbox = (await world('memory')).start({ bytes: 1_000 })
  const large = event('e1', { content: [{ type: 'text', text: 'x'.repeat(1_000) }] })
  expect(await inbox.accept('s', large)).toMatchObject({
    accepted: false,
    data: { code: 'EVENT_TOO_LARGE', rule: 'inbox.bytes' },
  })
  await expect(inbox.accept('', event('e1'))).rejects.toThrow('"" is not a valid server name')
})

it('a run that takes too long is told to end, and counts as failed', async () => {
  const { start, clock } = await world('memory')
  const inbox = start({ runTime: '1m', attempts: 1 })
  const signals: AbortSignal[] = []
  await inbox.open(async (_, signal) => {
    signals.push(signal)
    await new Promise(() => {})
  })
  await inbox.accept('s', event('e1'))
  await eventually(async () => signals[0])
  await clock.advance(60_000)
  expect(await stateOf(inbox, 'e1', 'dead')).toMatchObject({
    attempts: [{ outcome: 'failed', error: expect.stringMatching(/^The event took longer than \d+ ms/) }],
  })
  expect(signals[0]?.aborted).toBe(true)
})

it('a run that returns without a commit of its own is done', async () => {
  const { start } = await world('memory')
  const inbox = start()
  await inbox.open(async () => {})
  await inbox.accept('s', event('e1'))
  expect(await stateOf(inbox, 'e1', 'done')).toBeDefined()
})

it('an event amid whose runs the process ended too often is given up', async () => {
  const { start, store, clock } = await world('memory')
  const first = start()
  await first.accept('s', event('poison'))
  for (let life = 0; life < 2; life++) {
    const cut = mortal(store)
    const begun = Promise.withResolvers<void>()
    const inbox = start({ interruptions: 2 }, cut.store)
    await inbox.open(async () => {
      begun.resolve()
      await new Promise(() => {})
    })
    await begun.promise
    cut.die()
    onTestFinished(() => cut.revive())
    await clock.advance(6_001)
  }
  const last = start({ interruptions: 2 })
  await last.open(async () => {})
  expect((await stateOf(last, 'poison', 'dead')).attempts).toMatchObject([{ outcome: 'interrupted' }, { outcome: 'interrupted' }])
})

it('a flood from one server leaves others their turn', async () => {
  const { start, store } = await world('memory')
  const { order, run, until } = recorder(store)
  const inbox = start({ concurrency: 2 })
  for (let n = 0; n < 200; n++) await inbox.accept('flood', event(`f${n}`, { origin: { n } }))
  for (let n = 0; n < 5; n++) await inbox.accept('calm', event(`c${n}`, { origin: { n } }))
  await inbox.open(run)
  await until(205)
  expect(order.findLastIndex(id => id.startsWith('c'))).toBeLessThan(20)
})

it('beyond its rate a server is turned away at once, with the time after which it may come again', async () => {
  const { start, clock } = await world('memory')
  const inbox = start({ rate: { perSecond: 10, burst: 2 } })
  await inbox.accept('s', event('a'))
  await inbox.accept('s', event('b'))
  expect(await inbox.accept('s', event('c'))).toMatchObject({ accepted: false, reason: 'rate', retryAfterMs: 100 })
  expect(await inbox.accept('s', event('a'))).toMatchObject({ accepted: true })
  await clock.advance(100)
  expect(await inbox.accept('s', event('c'))).toMatchObject({ accepted: true })
})
