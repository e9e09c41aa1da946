import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { type StoreKind, storeKinds, storesUnderTest } from '../../../test/stores-under-test.ts'
import { put, type Store } from '../../stores/store.ts'
import { type Claim, type ClaimRequest, Claims } from './claims.ts'
import { createJournal, JournalCapacity } from './journal.ts'
import { OutcomeRetryQueue, type Ticket } from './operation.ts'
import { ProcessLeases } from './process-leases.ts'

const wanted: ClaimRequest = { target: 'create', fingerprint: 'f1', ttlMs: 60_000 }

const stores = storesUnderTest()
const opened: Store[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

/** Processes on one store and one clock; each is a Claims of its own. */
async function world(kind: StoreKind, records?: number, length?: number) {
  const clock = stores.clock()
  const store = await stores.open(kind, clock)
  opened.push(store)
  let processes = 0
  let ids = 0
  const leases = new Map<Claims, ProcessLeases>()
  const start = (): Claims => {
    const runners = new ProcessLeases({ store, clock, id: `process-${++processes}` })
    const capacity = new JournalCapacity({ store, clock, runners, records, length })
    const unsettled = new OutcomeRetryQueue({ store, clock })
    const claims = new Claims({ store, clock, runners, capacity, unsettled, id: () => `op-${++ids}` })
    leases.set(claims, runners)
    return claims
  }
  /** A process stands still, or is dead: its lease is no longer renewed, and runs out. */
  const silence = async (claims: Claims): Promise<void> => {
    leases.get(claims)?.close()
    await clock.advance(6_001)
  }
  return { clock, store, start, silence }
}

function ticketOf(claim: Claim): Ticket {
  if (claim.kind !== 'fresh') throw new Error(`expected a fresh claim, got ${claim.kind}`)
  return claim.ticket
}

describe.each(storeKinds)('claims on %s', kind => {
  test('E5-2: a key that was done gives the same outcome again, in every process', async () => {
    const { start } = await world(kind)
    const [one, two] = [start(), start()]
    await ticketOf(await one.claim('ann', 'k', wanted)).settle('done', { text: 'created 1' })
    for (const claims of [one, two]) {
      expect(await claims.claim('ann', 'k', wanted)).toMatchObject({
        kind: 'replay',
        operation: { status: 'done', outcome: { text: 'created 1' } },
      })
    }
  })

  test('E5-1, E5-3: the same key with another fingerprint is a conflict, and another principal has keys of their own', async () => {
    const claims = (await world(kind)).start()
    await ticketOf(await claims.claim('ann', 'k', wanted)).settle('done', 1)
    expect(await claims.claim('ann', 'k', { ...wanted, fingerprint: 'f2' })).toMatchObject({ kind: 'conflict' })
    expect(await claims.claim('bob', 'k', { ...wanted, fingerprint: 'f2' })).toMatchObject({ kind: 'fresh' })
  })

  test('E5-4: who comes while it runs waits for its end, here and in another process', async () => {
    const { start } = await world(kind)
    const [one, two] = [start(), start()]
    const ticket = ticketOf(await one.claim('ann', 'k', wanted))
    const joined = await Promise.all([one.claim('ann', 'k', wanted), two.claim('ann', 'k', wanted)])
    const waits = joined.map(claim => (claim.kind === 'running' ? claim.settled(10_000) : Promise.reject(new Error(claim.kind))))
    await ticket.settle('done', 1)
    expect(await Promise.all(waits)).toEqual([true, true])
    expect(await two.claim('ann', 'k', wanted)).toMatchObject({ kind: 'replay' })
  })

  test('E5-4: who joins does not wait longer than they said', async () => {
    const { start, clock } = await world(kind)
    const claims = start()
    ticketOf(await claims.claim('ann', 'k', wanted))
    const claim = await claims.claim('ann', 'k', wanted)
    if (claim.kind !== 'running') throw new Error(claim.kind)
    const wait = claim.settled(1000)
    await clock.advance(1000)
    expect(await wait).toBe(false)
  })

  test('E5-4: of many who claim a key at once, in two processes, exactly one runs it', async () => {
    const { start } = await world(kind)
    const processes = [start(), start()]
    const claims = await Promise.all(Array.from({ length: 20 }, (_, i) => (processes[i % 2] as Claims).claim('ann', 'k', wanted)))
    expect(claims.filter(claim => claim.kind === 'fresh')).toHaveLength(1)
    expect(claims.filter(claim => claim.kind === 'running')).toHaveLength(19)
  })

  test('E5-5: what was released can be claimed anew', async () => {
    const claims = (await world(kind)).start()
    await ticketOf(await claims.claim('ann', 'k', wanted)).release()
    expect(await claims.claim('ann', 'k', { ...wanted, fingerprint: 'f2' })).toMatchObject({ kind: 'fresh' })
  })

  test('E5-5: a failure that was stored is given again', async () => {
    const claims = (await world(kind)).start()
    await ticketOf(await claims.claim('ann', 'k', wanted)).settle('failed', { isError: true })
    expect(await claims.claim('ann', 'k', wanted)).toMatchObject({ kind: 'replay', operation: { status: 'failed' } })
  })

  test('E5-6: what a process left running when it died is indeterminate, and one of many may take it up', async () => {
    const { start, silence } = await world(kind)
    const [one, two, three] = [start(), start(), start()]
    ticketOf(await one.claim('ann', 'k', wanted))
    expect(await two.claim('ann', 'k', wanted)).toMatchObject({ kind: 'running' })
    await silence(one)
    const found = await Promise.all([two.claim('ann', 'k', wanted), three.claim('ann', 'k', wanted)])
    expect(found.map(claim => claim.kind)).toEqual(['indeterminate', 'indeterminate'])
    const taken = await Promise.all(found.map(claim => (claim.kind === 'indeterminate' ? claim.retake() : undefined)))
    expect(taken.filter(ticket => ticket !== undefined)).toHaveLength(1)
  })

  test('E5-6: a process that was only slow corrects what others wrote of it, unless one of them began anew', async () => {
    const { start, silence } = await world(kind)
    const [slow, other] = [start(), start()]
    const first = ticketOf(await slow.claim('ann', 'a', wanted))
    const second = ticketOf(await slow.claim('ann', 'b', wanted))
    await silence(slow)
    expect(await other.claim('ann', 'a', wanted)).toMatchObject({ kind: 'indeterminate' })
    const taken = await other.claim('ann', 'b', wanted)
    await (taken.kind === 'indeterminate' ? taken.retake() : undefined)
    expect(await first.settle('done', 1)).toMatchObject({ status: 'done' })
    expect(await second.settle('done', 2)).toBeUndefined()
    expect(await other.claim('ann', 'a', wanted)).toMatchObject({ kind: 'replay', operation: { outcome: 1 } })
    expect(await other.claim('ann', 'b', wanted)).toMatchObject({ kind: 'running' })
  })

  test('E5-7: a key is fresh again once its time is over, but never while it runs', async () => {
    const { start, clock } = await world(kind)
    const claims = start()
    const ticket = ticketOf(await claims.claim('ann', 'k', { ...wanted, ttlMs: 1000 }))
    await clock.advance(5_000)
    expect(await claims.claim('ann', 'k', wanted)).toMatchObject({ kind: 'running' })
    await ticket.settle('done', 1)
    await clock.advance(999)
    expect(await claims.claim('ann', 'k', wanted)).toMatchObject({ kind: 'replay' })
    await clock.advance(1)
    expect(await claims.claim('ann', 'k', wanted)).toMatchObject({ kind: 'fresh' })
  })

  test('E5-7, X10: whoever has a share of the journal full is refused with the wait, and nothing is forgotten before its time', async () => {
    const { start, clock } = await world(kind, 8)
    const claims = start()
    for (const key of ['old', 'young', 'last']) {
      await ticketOf(await claims.claim('ann', key, wanted)).settle('done', key)
      await clock.advance(10_000)
    }
    await expect(claims.claim('ann', 'more', wanted)).rejects.toMatchObject({ code: 'QUOTA_EXHAUSTED', retryAfter: 30_000 })
    for (const key of ['old', 'young', 'last'])
      expect(await claims.claim('ann', key, wanted)).toMatchObject({ kind: 'replay', operation: { outcome: key } })
    expect(await claims.claim('bob', 'k', wanted)).toMatchObject({ kind: 'fresh' })
    await clock.advance(30_000)
    expect(await claims.claim('ann', 'more', wanted)).toMatchObject({ kind: 'fresh' })
  })

  test('E5-7, X10: a journal full of what runs refuses more until something has ended', async () => {
    const { start } = await world(kind, 4)
    const claims = start()
    const running = [await claims.claim('ann', 'one', wanted), await claims.claim('ann', 'two', wanted)].map(ticketOf)
    const busy = { code: 'SERVER_UNAVAILABLE', category: 'transient' }
    await expect(claims.claim('ann', 'three', wanted)).rejects.toMatchObject(busy)
    await running[0]?.release()
    expect(await claims.claim('ann', 'three', wanted)).toMatchObject({ kind: 'fresh' })
  })

  test('E5-7, X10: the length of what is remembered is shared as their number is, and a process that starts finds it so', async () => {
    const { start } = await world(kind, undefined, 2_000)
    const [one, two] = [start(), start()]
    const first = ticketOf(await one.claim('ann', 'a', wanted))
    await first.settle('done', 'x'.repeat(800))
    const full = { code: 'QUOTA_EXHAUSTED', retryAfter: 60_000 }
    await expect(one.claim('ann', 'b', wanted)).rejects.toMatchObject(full)
    // It has not looked yet, and does so with its first claim.
    const tried = async (): Promise<unknown> => {
      const claim = await two.claim('ann', 'b', wanted).catch((error: unknown) => error as Error)
      if (!('kind' in claim)) return claim
      await ticketOf(claim).release()
      return claim.kind
    }
    await expect.poll(tried).toMatchObject(full)
  })

  test('X2: what waits for an answer is gone on with by whoever brings it, as the same operation, until its time is over', async () => {
    const { start, clock } = await world(kind)
    const [one, two] = [start(), start()]
    const first = ticketOf(await one.claim('ann', 'k', wanted))
    await first.pause(1_000)
    expect(await two.claim('ann', 'k', { ...wanted, fingerprint: 'f2' })).toMatchObject({ kind: 'conflict' })
    const second = ticketOf(await two.claim('ann', 'k', wanted))
    expect(second.operation).toMatchObject({ id: first.operation.id, startedAt: first.operation.startedAt })
    expect(await one.claim('ann', 'k', wanted)).toMatchObject({ kind: 'running' })
    await second.pause(1_000)
    await clock.advance(1_000)
    expect(ticketOf(await one.claim('ann', 'k', wanted)).operation.id).not.toBe(first.operation.id)
  })

  test('X3: the key of what was undone stays taken', async () => {
    const { start, store } = await world(kind)
    const claims = start()
    await ticketOf(await claims.claim('ann', 'k', wanted)).settle('done', 1)
    const undo = await claims.undo('ann', 'k')
    await store.commit(undo === undefined ? [] : [undo])
    expect(await claims.claim('ann', 'k', wanted)).toMatchObject({ kind: 'conflict', operation: { status: 'undone' } })
  })

  test('what is written with a claim or its end is written with it or not at all', async () => {
    const { start, store } = await world(kind)
    const claims = start()
    const ticket = ticketOf(await claims.claim('ann', 'k', { ...wanted, also: [put('step', 'begun')] }))
    expect(await store.get('step')).toMatchObject({ value: 'begun' })
    await ticket.settle('done', 1, [put('step', 'ended')])
    expect(await store.get('step')).toMatchObject({ value: 'ended' })
    const refused = claims.claim('ann', 'other', { ...wanted, also: [put('step', 'again', { ifAbsent: true })] })
    await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect(await claims.find('ann', 'other')).toBeUndefined()
  })

  test('a ticket is brought to an end once', async () => {
    const ticket = ticketOf(await (await world(kind)).start().claim('ann', 'k', wanted))
    await ticket.settle('done', 1)
    await expect(ticket.settle('done', 2)).rejects.toThrow('already')
  })
})

test('E5-4: a claim that the store has taken before its answer is here runs, for all who come meanwhile', async () => {
  const { clock, store } = await world('memory')
  const answers: (() => void)[] = []
  // Its answers come when they are let go, as those of a database may.
  const slow: Store = {
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    read: (log, options) => store.read(log, options),
    commit: async ops => {
      const outcome = await store.commit(ops)
      if (outcome.ok && ops.some(op => 'key' in op && op.key.startsWith('done/'))) await new Promise<void>(go => answers.push(go))
      return outcome
    },
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
  }
  const { claims } = createJournal({ store: slow, clock })
  const first = claims.claim('ann', 'k', wanted)
  while (answers.length === 0) await Promise.resolve()
  expect(await claims.claim('ann', 'k', wanted)).toMatchObject({ kind: 'running' })
  for (const go of answers) go()
  expect(await first).toMatchObject({ kind: 'fresh' })
})

test('whatever happens, no key runs twice at once and no outcome changes once it was given', async () => {
  const step = fc.record({
    process: fc.constantFrom(0, 1),
    key: fc.constantFrom('a', 'b'),
    act: fc.constantFrom('claim', 'settle', 'release', 'wait'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const { start, clock } = await world('memory')
      const processes = [start(), start()]
      const open = new Map<string, Ticket>()
      const given = new Map<string, unknown>()
      let effects = 0
      for (const { process, key, act } of steps) {
        const ticket = open.get(key)
        if (act === 'wait') clock.advance(100)
        else if (act === 'claim') {
          const claim = await (processes[process] as Claims).claim('ann', key, wanted)
          if (claim.kind === 'fresh') {
            expect(ticket).toBeUndefined()
            expect(given.has(key)).toBe(false)
            open.set(key, claim.ticket)
          } else if (claim.kind === 'replay') expect(claim.operation.outcome).toBe(given.get(key))
          else expect(claim.kind === 'running' && ticket !== undefined).toBe(true)
        } else if (ticket !== undefined) {
          open.delete(key)
          if (act === 'release') await ticket.release()
          else {
            given.set(key, ++effects)
            await ticket.settle('done', effects)
          }
        }
      }
    }),
    { numRuns: 100 },
  )
})
