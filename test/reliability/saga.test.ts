import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Client, saga } from '../../src/client/index.ts'
import { createServer, problem, type RevisionId } from '../../src/server/index.ts'
import type { Store } from '../../src/stores/index.ts'
import { connectInMemory } from '../../src/testing/index.ts'
import { type StoreClock, type StoreKind, storeKinds, storesUnderTest } from '../stores-under-test.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const eras: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const cases = eras.flatMap(revision => storeKinds.map(kind => ({ revision, kind })))

const stores = storesUnderTest()

async function storeOf(kind: StoreKind, clock?: StoreClock): Promise<Store> {
  const store = await stores.open(kind, clock)
  cleanups.push(() => store.close())
  return store
}

/** A server that knows nothing of transactions: things are put and taken away. */
async function plain(
  revision: RevisionId,
  name: string,
  log: string[],
  fails: (tool: string) => boolean = () => false,
): Promise<Client> {
  const server = createServer({ name, version: '1.0.0', log: 'silent' })
  const input = z.object({ id: z.string() })
  for (const tool of ['put', 'take'])
    server.tool(tool, { input }, ({ id }) => {
      if (fails(tool)) throw new Error(`${name} is out of order`)
      log.push(`${name} ${tool} ${id}`)
      return { id: `${name}-${id}` }
    })
  const mcp = await connectInMemory(server, { revision, retry: false })
  cleanups.push(() => server.close())
  cleanups.push(() => mcp.close())
  return mcp
}

const undo = { tool: 'take', arguments: ({ result }: { result: unknown }) => ({ id: (result as { id: string }).id }) }

describe.each(cases)('a saga at $revision on $kind', ({ revision, kind }) => {
  test('E5-20: over several servers, what was done is taken back in the reverse order, and the report names server and step', async () => {
    const log: string[] = []
    const one = await plain(revision, 'one', log)
    const two = await plain(revision, 'two', log, tool => tool === 'put')
    const store = await storeOf(kind)
    const trip = await saga({ store, clients: { one, two } })
    await trip.step(one, 'put', { id: 'a' }, { undo, step: 'first' })
    await trip.step('one', 'put', { id: 'b' }, { undo })
    expect(await trip.step(two, 'put', { id: 'c' }, { undo })).toMatchObject({ isError: true })
    const report = await trip.rollback()
    expect(log).toEqual(['one put a', 'one put b', 'one take one-b', 'one take one-a'])
    expect(report).toMatchObject({
      status: 'rolled_back',
      steps: [
        { id: 'first', server: 'one', tool: 'put', status: 'compensated' },
        { id: '2', server: 'one', status: 'compensated' },
        { id: '3', server: 'two', status: 'failed', error: { message: 'two is out of order' } },
      ],
    })
    expect(trip.report).toEqual(report)
  })

  test('E5-20: the log has a step before it is made', async () => {
    const store = await storeOf(kind)
    const seen: unknown[] = []
    const server = createServer({ name: 's', version: '1.0.0' })
    server.tool('look', {}, async () => {
      seen.push(...(await store.scan('saga/step/')).map(({ value }) => JSON.parse(value)))
      return 'seen'
    })
    const mcp = await connectInMemory(server, { revision })
    cleanups.push(() => server.close())
    cleanups.push(() => mcp.close())
    await using trip = await saga({ store, clients: { mcp } })
    await trip.step(mcp, 'look', {}, { undo: { tool: 'forget', arguments: { why: 'undone' } } })
    await trip.commit()
    expect(seen).toMatchObject([
      { target: 'look', status: 'running', inverse: { target: 'forget', parameters: { why: 'undone' } } },
    ])
  })

  test('E5-20: a compensation that fails does not stop the others', async () => {
    const log: string[] = []
    const one = await plain(revision, 'one', log)
    const two = await plain(revision, 'two', log, tool => tool === 'take')
    const trip = await saga({ store: await storeOf(kind), clients: { one, two } })
    await trip.step(one, 'put', { id: 'a' }, { undo })
    await trip.step(two, 'put', { id: 'b' }, { undo })
    await trip.step(one, 'put', { id: 'c' })
    const report = await trip.rollback()
    expect(report.status).toBe('partially_rolled_back')
    expect(report.steps.map(({ status, error }) => error?.message ?? status)).toEqual([
      'compensated',
      'two is out of order',
      'put cannot be undone: it has no compensation',
    ])
    expect(log.at(-1)).toBe('one take one-a')
  })

  test('E5-20: steps go back in the reverse order of their beginnings, one at a time, and what may pass is tried again', async () => {
    const log: string[] = []
    const gate = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    let [running, most, refused] = [0, 0, false]
    const server = createServer({ name: 'slow', version: '1.0.0', log: 'silent' })
    const input = z.object({ id: z.string() })
    server.tool('put', { input }, async ({ id }) => {
      if (id === 'early') {
        entered.resolve()
        await gate.promise
      }
      log.push(`put ${id}`)
      return { id }
    })
    server.tool('take', { input }, async ({ id }) => {
      if (id === 'late' && !refused) {
        refused = true
        throw problem('SERVER_UNAVAILABLE', 'Not now')
      }
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      log.push(`take ${id}`)
    })
    const mcp = await connectInMemory(server, { revision, retry: false })
    cleanups.push(
      () => server.close(),
      () => mcp.close(),
    )
    const trip = await saga({ store: await storeOf(kind), clients: { mcp } })
    const early = trip.step(mcp, 'put', { id: 'early' }, { undo })
    await entered.promise
    await trip.step(mcp, 'put', { id: 'late' }, { undo })
    gate.resolve()
    await early
    expect(await trip.rollback()).toMatchObject({ status: 'rolled_back' })
    expect(log).toEqual(['put late', 'put early', 'take late', 'take early'])
    expect([most, refused]).toEqual([1, true])
  })

  test('E5-20: left without a commit it is rolled back; committed it stays', async () => {
    const log: string[] = []
    const one = await plain(revision, 'one', log)
    const store = await storeOf(kind)
    {
      await using trip = await saga({ store, clients: { one } })
      await trip.step(one, 'put', { id: 'a' }, { undo })
    }
    {
      await using trip = await saga({ store, clients: { one } })
      await trip.step(one, 'put', { id: 'b' }, { undo })
      expect(await trip.commit()).toMatchObject({ status: 'committed' })
    }
    expect(log).toEqual(['one put a', 'one take one-a', 'one put b'])
  })
})

describe.each(cases)('a saga whose process is gone, at $revision on $kind', ({ revision, kind }) => {
  test('E5-20: it is taken back by another, once its lease is over, and not before', async () => {
    const clock = stores.clock()
    const store = await storeOf(kind, clock)
    const log: string[] = []
    const one = await plain(revision, 'one', log)
    // Its timers stand still, so that it never says again that it lives.
    const dead = { now: clock.now, setTimeout: () => () => {} }
    const trip = await saga({ store, clients: { one }, clock: dead })
    await trip.step(one, 'put', { id: 'a' }, { undo })
    expect(await saga.resume({ store, clients: { one }, clock })).toEqual([])
    await clock.advance(6_001)
    expect(await saga.resume({ store, clients: { other: one }, clock })).toEqual([])
    expect(await saga.resume({ store, clients: { one }, clock })).toMatchObject([
      { id: trip.id, status: 'rolled_back', steps: [{ server: 'one', status: 'compensated' }] },
    ])
    expect(log).toEqual(['one put a', 'one take one-a'])
    expect(await saga.resume({ store, clients: { one }, clock })).toEqual([])
    await expect(trip.step(one, 'put', { id: 'b' }, { undo })).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect(log).toHaveLength(2)
  })

  test('E5-20: a client that was never given is refused, and named', async () => {
    const one = await plain(revision, 'one', [])
    const trip = await saga({ store: await storeOf(kind), clients: { one } })
    await expect(trip.step('two', 'put')).rejects.toThrow(/not part of the saga. Its clients are one/)
    await trip.commit()
  })
})
