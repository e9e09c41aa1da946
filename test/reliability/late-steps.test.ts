import { afterEach, describe, expect, test } from 'vitest'
import { connectInMemory, fakeClock } from '../../src/testing/index.ts'
import { places } from '../spec/consent.ts'
import { storesUnderTest } from '../stores-under-test.ts'
import { newWorld, tracker } from './tracker.ts'

const stores = storesUnderTest()
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

describe.each(places)('a step that ends after its transaction, at %s on %s', (revision, kind) => {
  /** Begins a step that does not stop when it is told to, rolls back without it, then lets it have its effect. */
  const begin = async (tool: string, args: Record<string, string>) => {
    const world = newWorld()
    const clock = fakeClock()
    const server = tracker(world, { store: stores.url(kind), clock })
    const mcp = await connectInMemory(server, { revision, retry: false })
    cleanups.push(
      () => server.close(),
      () => mcp.close(),
    )
    const entered = Promise.withResolvers<AbortSignal>()
    const gate = Promise.withResolvers<void>()
    let first = true
    world.on = (name, _, signal) => {
      if (name !== tool || !first) return undefined
      first = false
      entered.resolve(signal)
      return gate.promise
    }
    const tx = await mcp.transaction()
    first = false
    await tx.callTool('rename', { id: 'T-9', title: 'kept', before: 'none' })
    first = true
    const late = tx.callTool(tool, args, { step: 'slow' })
    const signal = await entered.promise
    const rolling = tx.rollback('enough')
    while (!signal.aborted) await new Promise(setImmediate)
    let over = false
    void rolling.finally(() => {
      over = true
    })
    // Until it is no longer waited for. Each look is answered after what the store was told before: leases last.
    while (!over) {
      clock.advance(500)
      for (let i = 0; i < 5; i++) await server.transactions.stuck()
      // What is worked out on other threads, digests above all, takes real turns.
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    return { world, server, tx, late, gate, report: await rolling }
  }

  test('E5-16: is taken back by what its result gives, and the report is put right', async () => {
    const { world, server, tx, late, gate, report } = await begin('create', { title: 'x' })
    expect(report).toMatchObject({
      status: 'partially_rolled_back',
      steps: [{ status: 'compensated' }, { id: 'slow', status: 'compensation_failed', error: { code: 'OUTCOME_UNKNOWN' } }],
    })
    expect(await server.transactions.stuck()).toHaveLength(1)
    gate.resolve()
    expect((await late).problem).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect([...world.tickets.keys()]).toEqual(['T-9'])
    expect(world.log.slice(-2)).toEqual(['create T-2', 'delete T-2'])
    expect(await tx.status()).toMatchObject({
      status: 'rolled_back',
      steps: [{ status: 'compensated' }, { status: 'compensated' }],
    })
    expect(await server.transactions.stuck()).toEqual([])
    const lines = (await server.audit.read()).filter(({ event }) => event === 'step_undone')
    expect(lines.map(({ outcome }) => outcome)).toEqual(['compensation_failed', 'compensated', 'compensated'])
  })

  test('E5-16: is taken back once more where that was done before its effect', async () => {
    const { world, tx, late, gate, report } = await begin('rename', { id: 'T-1', title: 'new', before: 'old' })
    expect(report.status).toBe('rolled_back')
    gate.resolve()
    expect((await late).problem).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect(world.log.slice(-2)).toEqual(['rename T-1 new', 'rename T-1 old'])
    expect(world.tickets.get('T-1')).toBe('old')
    expect(await tx.status()).toMatchObject({ status: 'rolled_back' })
  })

  test('E5-14: that cannot be taken back either is on the list of what is stuck', async () => {
    const { world, server, late, gate } = await begin('create', { title: 'x' })
    const { on } = world
    world.on = (name, args, signal) => {
      if (name === 'delete') throw new Error('It is locked')
      return on(name, args, signal)
    }
    gate.resolve()
    expect((await late).problem).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect(await server.transactions.stuck()).toMatchObject([
      { status: 'partially_rolled_back', steps: [{}, { status: 'compensation_failed', error: { message: 'It is locked' } }] },
    ])
    expect(world.tickets.has('T-2')).toBe(true)
  })
})
