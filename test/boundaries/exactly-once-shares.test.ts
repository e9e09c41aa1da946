/** What one caller keeps on the server never pushes out what guards another's effects, on any store. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { JournalCapacity } from '../../src/core/journal/journal.ts'
import { ProcessLeases } from '../../src/core/journal/process-leases.ts'
import { Units } from '../../src/core/journal/units.ts'
import { firstVersion, LargeStates, storeBackedStorage } from '../../src/features/reliability/session-state/versions.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { codeOf, call as keyed, replayOf } from '../reliability/keyed-world.ts'
import { chunksOf, call as streamed, worldsPerTest } from '../reliability/stream-world.ts'
import { errorOf, type Frame, resultOf, speak, textOf, type Wire } from '../spec/wire.ts'
import { type StoreKind, storeKinds, storesUnderTest } from '../stores-under-test.ts'

const stores = storesUnderTest()
const streams = worldsPerTest()
const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

const ids = ['idempotency', 'transactions', 'problem', 'state', 'confirmation', 'data-references', 'events']
const capabilities = { extensions: Object.fromEntries(ids.map(id => [`dev.vivarium/${id}`, {}])) }

function bank(kind: StoreKind | 'none', options: Partial<ServerOptions> = {}) {
  const server = createServer({
    name: 'bank',
    version: '1.0.0',
    log: 'silent',
    secret: 'an only secret of at least 32 characters',
    limits: { rates: false },
    ...(kind === 'none' ? {} : { store: stores.url(kind) }),
    ...options,
  })
  servers.push(server)
  let payments = 0
  const log: string[] = []
  server.tool(
    'pay',
    { input: z.object({ note: z.string().optional() }), undo: { tool: 'refund' } },
    () => `payment ${++payments}`,
  )
  server.tool('refund', { idempotent: true }, () => {
    log.push('refunded')
    return 'refunded'
  })
  server.tool('report', { input: z.object({ size: z.number() }) }, ({ size }) => 'x'.repeat(size))
  server.tool('remember', { input: z.object({ size: z.number() }), state: 'branch' }, async ({ size }, ctx) => {
    await ctx.state.set('x'.repeat(size))
    return 'remembered'
  })
  server.tool('recall', { state: 'branch' }, async (_, ctx) => String((await ctx.state.get<string>())?.length))
  server.tool('export', { input: z.object({ size: z.number() }) }, ({ size }, ctx) => ctx.reference('x'.repeat(size)))
  server.tool('wire', { input: z.object({ to: z.string() }), confirm: { channel: 'queue', message: 'Wire?' } }, () => 'wired')
  const as = (principal: string): Promise<Wire> => speak(server, '2026-07-28', { principal, capabilities })
  return { server, as, log, payments: () => payments }
}

/** What a store has beside `commit`. */
const bound = (inner: Store): Omit<Store, 'commit'> => ({
  ...(inner.capacity !== undefined && { capacity: inner.capacity }),
  get: key => inner.get(key),
  scan: (prefix, options) => inner.scan(prefix, options),
  read: (log, options) => inner.read(log, options),
  watch: (prefixes, signal) => inner.watch(prefixes, signal),
  close: () => inner.close(),
})

/** Calls until it is refused; gives how often it was not, and the refusal. */
async function flood(ask: (n: number) => Promise<Frame>, most = 200): Promise<{ done: number; refusal: Frame | undefined }> {
  for (let done = 0; done < most; done++) {
    const answer = await ask(done)
    if (answer['error'] !== undefined || resultOf(answer)['isError'] === true) return { done, refusal: answer }
  }
  return { done: most, refusal: undefined }
}

const problemOf = (frame: Frame): Frame =>
  (frame['error'] === undefined
    ? (resultOf(frame)['_meta'] as Frame)['dev.vivarium/problem']
    : errorOf(frame).data) as unknown as Frame

describe.each(storeKinds)('on %s', kind => {
  it('E5-7: a caller with large results is refused when its share is used up, and the repeat of another is not run again', async () => {
    const { as, payments } = bank(kind, { idempotency: { length: 4_000_000 } })
    const [ada, bob] = [await as('ada'), await as('bob')]
    expect(textOf(await bob.ask('tools/call', keyed('pay', 'bob-1')))).toBe('payment 1')
    const large = (n: number) => ada.ask('tools/call', keyed('report', `ada-${n}`, { size: 500_000 }))
    const { done, refusal } = await flood(large, 20)
    expect([done > 1, codeOf(refusal ?? {})]).toEqual([true, 'QUOTA_EXHAUSTED'])
    expect(problemOf(refusal ?? {})['retry_after_seconds']).toBeGreaterThan(80_000)
    const again = await bob.ask('tools/call', keyed('pay', 'bob-1'))
    expect([textOf(again), replayOf(again)['was_replay'], payments()]).toEqual(['payment 1', true, 1])
    expect(textOf(await bob.ask('tools/call', keyed('pay', 'bob-2')))).toBe('payment 2')
    // Nothing of the flooder's own is forgotten either: each of its effects is guarded for the time that was promised.
    for (let n = 0; n < done; n++) expect(replayOf(await large(n))['was_replay']).toBe(true)
  })

  it('E5-7: the number of records is shared too, and a share comes back when its records have ended', async () => {
    const clock = stores.clock()
    const { as } = bank(kind, { idempotency: { records: 9 }, clock, store: await stores.open(kind, clock) })
    const [ada, bob] = [await as('ada'), await as('bob')]
    const pay = (n: number) => ada.ask('tools/call', keyed('pay', `ada-${n}`, {}, { idempotency_ttl_seconds: 60 }))
    const { done, refusal } = await flood(pay)
    expect([done, codeOf(refusal ?? {}), problemOf(refusal ?? {})['retry_after_seconds']]).toEqual([4, 'QUOTA_EXHAUSTED', 60])
    expect(codeOf(await bob.ask('tools/call', keyed('pay', 'bob-1')))).toBeUndefined()
    await clock.advance(60_000)
    expect(codeOf(await pay(done))).toBeUndefined()
  })

  it('E5-7: ten who flood it leave room for the next', async () => {
    const { as } = bank(kind, { idempotency: { records: 60 } })
    for (let n = 0; n < 10; n++) {
      const wire = await as(`flooder-${n}`)
      const { done, refusal } = await flood(i => wire.ask('tools/call', keyed('pay', `k-${i}`)))
      expect([done > 0, codeOf(refusal ?? {})]).toEqual([true, 'QUOTA_EXHAUSTED'])
    }
    expect(textOf(await (await as('bob')).ask('tools/call', keyed('pay', 'bob-1')))).toMatch(/^payment/)
  })

  it('E5-11: transactions that were begun and committed count too, and others begin theirs', async () => {
    const { as } = bank(kind, { idempotency: { records: 20 } })
    const [ada, bob] = [await as('ada'), await as('bob')]
    const transact = async (n: number): Promise<Frame> => {
      const begun = await ada.ask('transaction/begin', { transaction_id: `t${n}` })
      if (begun['error'] === undefined) await ada.ask('transaction/commit', { transaction_id: `t${n}` })
      return begun
    }
    const { done, refusal } = await flood(transact)
    expect([done > 1, problemOf(refusal ?? {})['code']]).toEqual([true, 'QUOTA_EXHAUSTED'])
    expect(problemOf(refusal ?? {})['retry_after_seconds']).toBeGreaterThan(80_000)
    expect(resultOf(await bob.ask('transaction/begin', { transaction_id: 'mine' }))['status']).toBe('begun')
    expect(resultOf(await ada.ask('transaction/get', { transaction_id: 't0' }))['status']).toBe('committed')
  })

  it('E5-14: what takes back is never refused, however full the share is', async () => {
    const { as, log } = bank(kind, { idempotency: { records: 8 } })
    const ada = await as('ada')
    await ada.ask('transaction/begin', { transaction_id: 't' })
    const step = { 'dev.vivarium/transactions': { transaction_id: 't' } }
    expect(textOf(await ada.ask('tools/call', { name: 'pay', arguments: {}, _meta: step }))).toMatch(/^payment/)
    expect(codeOf((await flood(n => ada.ask('tools/call', keyed('pay', `k${n}`)))).refusal ?? {})).toBe('QUOTA_EXHAUSTED')
    expect(resultOf(await ada.ask('transaction/rollback', { transaction_id: 't' }))['status']).toBe('rolled_back')
    expect(log).toEqual(['refunded'])
  })

  it('E9-7: contents of one caller leave room for those of another, by number and by bytes', async () => {
    for (const references of [{ most: 6 }, { totalBytes: 800_000 }]) {
      const { as } = bank(kind, { references })
      const [ada, bob] = [await as('ada'), await as('bob')]
      const give = (wire: Wire) => wire.ask('tools/call', { name: 'export', arguments: { size: 100_000 } })
      const { done, refusal } = await flood(() => give(ada))
      expect([done, codeOf(refusal ?? {})]).toEqual([3, 'QUOTA_EXHAUSTED'])
      expect(problemOf(refusal ?? {})['retry_after_seconds']).toBeGreaterThan(100)
      expect(resultOf(await give(bob))['isError']).toBeUndefined()
    }
  })

  it('E6-8: calls of one caller that wait for approval leave the line open for others', async () => {
    const { as } = bank(kind)
    const [ada, bob] = [await as('ada'), await as('bob')]
    const { done, refusal } = await flood(async n => {
      const answer = await ada.ask('tools/call', { name: 'wire', arguments: { to: `account ${n}` } })
      return codeOf(answer) === 'CONFIRMATION_REQUIRED' ? { result: {} } : answer
    })
    expect([done, codeOf(refusal ?? {})]).toEqual([100, 'QUOTA_EXHAUSTED'])
    expect(codeOf(await bob.ask('tools/call', { name: 'wire', arguments: { to: 'me' } }))).toBe('CONFIRMATION_REQUIRED')
  })
})

it('E5-7: on a store that is nearly as small as what one caller would keep, the calls of others go on', async () => {
  const { as, payments } = bank('none', { store: memoryStore({ bytes: 32 * 1024 * 1024 }) })
  const [ada, bob] = [await as('ada'), await as('bob')]
  await bob.ask('tools/call', keyed('pay', 'bob-1'))
  const report = (n: number) => ada.ask('tools/call', keyed('report', `ada-${n}`, { size: 1_000_000 }))
  for (let n = 0; n < 40; n++) await report(n)
  expect(replayOf(await report(0))['was_replay']).toBe(true)
  // What does not fit into the share is not kept, but that it was done is: it is not done again.
  expect(['PAYLOAD_TOO_LARGE', 'QUOTA_EXHAUSTED']).toContain(codeOf(await report(39)))
  expect(textOf(await bob.ask('tools/call', keyed('pay', 'bob-1')))).toBe('payment 1')
  expect(textOf(await bob.ask('tools/call', keyed('pay', 'bob-2')))).toBe('payment 2')
  expect(payments()).toBe(2)
})

it.each([70_000, 60_000])(
  'E14-2: states of %i characters of one caller push out its own oldest, and no state of another',
  async size => {
    const { as } = bank('none', { store: memoryStore({ bytes: 8 * 1024 * 1024 }) })
    const [ada, bob] = [await as('ada'), await as('bob')]
    const remember = async (wire: Wire): Promise<unknown> => {
      const answer = resultOf(await wire.ask('tools/call', { name: 'remember', arguments: { size } }))
      return ((answer['_meta'] as Frame)['dev.vivarium/state'] as Frame)['session_state']
    }
    const recall = (wire: Wire, session_state: unknown): Promise<Frame> =>
      wire.ask('tools/call', { name: 'recall', arguments: {}, _meta: { 'dev.vivarium/state': { session_state } } })
    const kept = await remember(bob)
    const tokens: unknown[] = []
    for (let n = 0; n < 5_000_000 / size; n++) tokens.push(await remember(ada))
    expect(textOf(await recall(bob, kept))).toBe(String(size))
    expect(textOf(await recall(ada, tokens.at(-1)))).toBe(String(size))
    expect(codeOf(await recall(ada, tokens[0]))).toBe('STATE_EXPIRED')
  },
)

it('E14-2: states of sessions count for whoever opens them, one session after the other', async () => {
  const store = memoryStore({ bytes: 8 * 1024 * 1024 })
  const large = new LargeStates(store, stores.clock())
  const write = (owner: string, account: string): Promise<boolean> => {
    const keeper = storeBackedStorage({ store, large, owner, account, ofUser: false, ttlMs: 60_000 })
    return keeper.write({ ...firstVersion(), data: 'x'.repeat(60_000) }, undefined)
  }
  await write('of-bob', 'bob')
  for (let n = 0; n < 40; n++) expect(await write(`session-${n}`, 'ada')).toBe(true)
  const kept = (await store.scan('session-state/of/')).map(({ key }) => key.slice('session-state/of/'.length))
  expect([kept.length < 10, kept.includes('of-bob'), kept.includes('session-39')]).toEqual([true, true, true])
})

it('E15-12: subscriptions of one caller leave room for those of another', async () => {
  const { server, as } = bank('none', { events: { perCaller: 100, total: 10 } })
  server.event('paid', {})
  const [ada, bob] = [await as('ada'), await as('bob')]
  const listen = async (wire: Wire, n: number): Promise<Frame> => {
    const filter = { 'dev.vivarium/events': [{ subscription_id: `s${n}`, events: ['paid'] }] }
    const before = wire.heard.length
    void wire.ask('subscriptions/listen', { notifications: filter }).catch(() => {})
    await expect.poll(() => wire.heard.length).toBeGreaterThan(before)
    return wire.heard[before] as Frame
  }
  const statuses: string[] = []
  for (let n = 0; n < 8; n++) statuses.push(JSON.stringify(await listen(ada, n)))
  expect(statuses.filter(text => text.includes('"active"'))).toHaveLength(4)
  expect(statuses.at(-1)).toContain('events.total')
  expect(JSON.stringify(await listen(bob, 1))).toContain('"active"')
})

it('E15-12: what a subscription filters by is bounded, because it is kept as long', async () => {
  const { server, as } = bank('none')
  server.event('paid', {})
  const ada = await as('ada')
  const filter = { note: 'x'.repeat(20_000) }
  const wish = { 'dev.vivarium/events': [{ subscription_id: 's', events: ['paid'], filter }] }
  void ada.ask('subscriptions/listen', { notifications: wish }).catch(() => {})
  await expect.poll(() => ada.heard.length).toBeGreaterThan(0)
  expect(JSON.stringify(ada.heard[0])).toContain('filter: it has 200')
})

it('E8-10: streams of one caller leave places for those of another, which can be gone on with', async () => {
  const { speak, allow, done } = streams({ streaming: { operations: 4 }, limits: { rates: false } })
  allow(1)
  const begin = async (principal: string, of: string, effects: number): Promise<boolean> => {
    const wire = await speak('2026-07-28', { principal })
    void wire.ask('tools/call', streamed('steps', { of, count: 2 })).catch(() => {})
    await done(effects)
    await expect.poll(() => chunksOf(wire.heard).length).toBe(1)
    return chunksOf(wire.heard)[0]?.checkpoint_token !== undefined
  }
  const resumable: boolean[] = []
  for (let n = 0; n < 4; n++) resumable.push(await begin('ada', `a${n}`, n + 1))
  expect(resumable).toEqual([true, true, false, false])
  expect(await begin('bob', 'b', 5)).toBe(true)
  allow(2)
})

it('E8-10: streams whose end the store did not take leave the share all the same, after their time', async () => {
  const clock = stores.clock()
  const inner = memoryStore({ bytes: 1024 * 1024, now: clock.now })
  let away = false
  const store: Store = {
    ...bound(inner),
    commit: async ops => {
      if (away && ops.some(op => 'key' in op && op.key.startsWith('stream/')))
        throw new StoreError('failed', 'Connection refused')
      return inner.commit(ops)
    },
  }
  const { server, speak } = streams({ store, clock, streaming: { keep: '1m' }, limits: { rates: false } })
  server.tool('large', {}, async function* () {
    yield 'x'.repeat(20_000)
    away = true
  })
  const wire = await speak('2026-07-28', { principal: 'ada' })
  const resumable = async (): Promise<boolean> => {
    const before = chunksOf(wire.heard).length
    await wire.ask('tools/call', streamed('large'))
    away = false
    await clock.advance(61_000)
    return chunksOf(wire.heard)[before]?.checkpoint_token !== undefined
  }
  for (let n = 0; n < 6; n++) expect([n, await resumable()]).toEqual([n, true])
})

it('E5-11: steps of callers who are not known count against the network that began the transaction, also after a look', async () => {
  const clock = stores.clock()
  const store = memoryStore({ now: clock.now })
  const runners = new ProcessLeases({ store, clock, id: 'here' })
  const open = (): JournalCapacity => new JournalCapacity({ store, clock, runners, records: 40 })
  const units = new Units({ store, clock, runners, capacity: open() })
  const nobody = '~anonymous'
  await units.begin(nobody, 'first', { timeoutMs: 1_000, account: 'flooder' })
  for (let n = 0; n < 14; n++) await units.enrol(nobody, 'first', { target: 'pay', key: `k${n}`, inverse: { target: 'refund' } })
  await units.begin(nobody, 'second', { timeoutMs: 1_000, account: 'neighbour' })
  const capacity = open()
  // What nobody may keep is refused only after a look.
  await expect(capacity.admit('other', Number.MAX_SAFE_INTEGER)).rejects.toThrow()
  await expect(Promise.resolve(capacity.admit('neighbour'))).resolves.toBeUndefined()
  await expect(Promise.resolve(capacity.admit('flooder'))).rejects.toThrow()
})
