import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Client, classify, connect, type EventReader, type Problem } from '../../src/client/index.ts'
import { createServer, type Principal, type RevisionId, type Server, type ServerOptions } from '../../src/server/index.ts'
import { connectInMemory, memoryPair } from '../../src/testing/index.ts'
import { expectFits } from '../extension-schemas.ts'
import { type StoreClock, type StoreKind, storeKinds, storesUnderTest } from '../stores-under-test.ts'
import { newWorld, tracker, type World } from './tracker.ts'

const eras: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const stores = storesUnderTest()
const cases = eras.flatMap(revision => storeKinds.map(kind => ({ revision, kind })))

async function begin(
  revision: RevisionId,
  kind: StoreKind = 'memory',
  options: Partial<ServerOptions> = {},
): Promise<{ mcp: Client; world: World; server: ReturnType<typeof tracker> }> {
  const world = newWorld()
  const server = tracker(world, { store: stores.url(kind), ...options })
  const mcp = await connectInMemory(server, { revision, retry: false })
  cleanups.push(
    () => server.close(),
    () => mcp.close(),
  )
  return { mcp, world, server }
}

/** Somebody who is known, on a connection of his own. */
async function connectAs(server: Server, revision: RevisionId, principal: Principal): Promise<Client> {
  const [near, far] = memoryPair()
  server.acceptor.accept({
    carrier: far.carrier,
    caller: { carrier: 'websocket', connection: {}, principal },
    start: sink => far.start(sink),
    send: (frame, outgoing) => far.send(frame, outgoing),
    close: () => far.close(),
  })
  const mcp = await connect(near, { revisions: [revision], retry: false })
  cleanups.push(() => mcp.close())
  return mcp
}

/** Lets time pass until it is rolled back. */
async function until(clock: StoreClock, status: () => Promise<{ readonly status: string }>): Promise<void> {
  let now = ''
  for (let tries = 0; now !== 'rolled_back'; tries++) {
    if (tries === 1_000) throw new Error(`It is still ${now}`)
    await clock.advance(500)
    // A sweep that seems to take long, since time passes meanwhile, is followed by a longer rest.
    await wait(10)
    now = (await status()).status
  }
}

async function refusal(work: Promise<unknown>): Promise<Problem> {
  return work.then(
    () => Promise.reject(new Error('It was not refused')),
    error => classify(error),
  )
}

describe.each(cases)('transactions at $revision on $kind', ({ revision, kind }) => {
  test('E5-11: an id is begun once, also after its end', async () => {
    const { mcp } = await begin(revision, kind)
    const tx = await mcp.transaction({ id: 'tx-1' })
    expect(await refusal(mcp.transaction({ id: 'tx-1' }))).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    await tx.commit()
    expect(await refusal(mcp.transaction({ id: 'tx-1' }))).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  })

  test('E5-12: a step in an unknown or ended transaction is refused before anything happens', async () => {
    const { mcp, world } = await begin(revision, kind)
    const stray = (transaction_id: string) =>
      mcp.callTool('create', { title: 'x' }, { meta: { 'dev.vivarium/transactions': { transaction_id } } })
    expect(await stray('none')).toMatchObject({ isError: true, problem: { code: 'RESOURCE_NOT_FOUND' } })
    const tx = await mcp.transaction({ id: 'tx-1' })
    await tx.commit()
    expect(await stray('tx-1')).toMatchObject({ isError: true, problem: { code: 'TRANSACTION_CONFLICT' } })
    expect(await tx.callTool('count')).toMatchObject({ isError: true, problem: { code: 'TRANSACTION_CONFLICT' } })
    expect(world.log).toEqual([])
  })

  test('E5-13: the step is written down with its inverse before the effect, and completed from the result', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    const seen: unknown[] = []
    world.on = async tool => {
      if (tool === 'create') seen.push((await tx.status()).steps)
    }
    const made = await tx.callTool('create', { title: 'x' }, { step: 'first' })
    expect(seen).toMatchObject([[{ id: 'first', tool: 'create', status: 'running' }]])
    expect(made.meta?.['dev.vivarium/transactions']).toEqual({
      transaction_id: tx.id,
      step_id: 'first',
      status: 'ok',
      compensation: { tool: 'delete', parameters: { id: 'T-1' }, description: 'Deletes it again' },
    })
    const again = await tx.callTool('create', { title: 'x' }, { step: 'first' })
    expect(again).toMatchObject({ isError: true, problem: { code: 'TRANSACTION_CONFLICT' } })
  })

  test('E5-13: tools without inverse are refused, unless the transaction allows them; what only reads is free', async () => {
    const { mcp, world } = await begin(revision, kind)
    const strict = await mcp.transaction()
    expect(await strict.callTool('mail', { to: 'ann' })).toMatchObject({ isError: true, problem: { category: 'invalid_input' } })
    expect(await strict.callTool('count')).toMatchObject({ isError: false, text: '0' })
    expect(world.log).toEqual([])
    const lax = await mcp.transaction({ irreversible: true })
    await lax.callTool('mail', { to: 'ann' })
    expect(await lax.rollback()).toMatchObject({
      status: 'partially_rolled_back',
      steps: [{ tool: 'mail', status: 'compensation_failed', error: { code: 'UNSUPPORTED' } }],
    })
  })

  test('E5-14: what was done is taken back in the reverse order, and every step is in the report', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    await tx.callTool('create', { title: 'a' })
    await tx.callTool('rename', { id: 'T-1', title: 'b', before: 'a' })
    world.on = tool => {
      if (tool === 'create') throw new Error('The disk is full')
    }
    expect(await tx.callTool('create', { title: 'c' })).toMatchObject({ isError: true })
    const report = await tx.rollback('enough')
    expect(world.log).toEqual(['create T-1', 'rename T-1 b', 'rename T-1 a', 'delete T-1'])
    expect(report).toMatchObject({ status: 'rolled_back', reason: 'enough' })
    expect(report.steps.map(({ status }) => status)).toEqual(['compensated', 'compensated', 'failed'])
  })

  test('E5-14: the order is that in which steps were begun, not ended, and one is taken back at a time', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    const [entered, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let [running, most] = [0, 0]
    world.on = async (tool, { title }) => {
      if (title === 'early') {
        entered.resolve()
        await gate.promise
      }
      if (tool !== 'delete') return
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
    }
    const early = tx.callTool('create', { title: 'early' }, { step: 'early' })
    await entered.promise
    await tx.callTool('create', { title: 'late' }, { step: 'late' })
    gate.resolve()
    await early
    const report = await tx.rollback()
    expect(report.steps.map(({ id, status }) => [id, status])).toEqual([
      ['early', 'compensated'],
      ['late', 'compensated'],
    ])
    // T-1 is what the late step made, which ended first.
    expect(world.log).toEqual(['create T-1', 'create T-2', 'delete T-1', 'delete T-2'])
    expect(most).toBe(1)
  })

  test('E5-14: a compensation that fails does not stop the others, and is on the list of what is stuck', async () => {
    const { mcp, world, server } = await begin(revision, kind)
    const tx = await mcp.transaction()
    for (const title of ['a', 'b', 'c']) await tx.callTool('create', { title })
    world.on = (tool, { id }) => {
      if (tool === 'delete' && id === 'T-2') throw new Error('It is locked')
    }
    const report = await tx.rollback()
    expect(report.status).toBe('partially_rolled_back')
    expect(report.steps.map(({ status }) => status)).toEqual(['compensated', 'compensation_failed', 'compensated'])
    expect(report.steps[1]?.error).toEqual({ code: 'SERVER_ERROR', message: 'It is locked' })
    expect([...world.tickets]).toEqual([['T-2', 'b']])
    expect(await server.transactions.stuck()).toMatchObject([
      {
        transaction_id: tx.id,
        status: 'partially_rolled_back',
        steps_compensated: [
          { step_id: '3', status: 'compensated' },
          { step_id: '2', status: 'compensation_failed', error: { message: 'It is locked' } },
          { step_id: '1', status: 'compensated' },
        ],
      },
    ])
  })

  test('E5-15: commit and rollback said again give the same report', async () => {
    const { mcp, world } = await begin(revision, kind)
    const one = await mcp.transaction()
    await one.callTool('create', { title: 'a' })
    expect(await one.commit()).toEqual(await one.commit())
    expect(await refusal(one.rollback())).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    const two = await mcp.transaction()
    await two.callTool('create', { title: 'b' })
    expect(await two.rollback()).toEqual(await two.rollback())
    expect(world.log).toEqual(['create T-1', 'create T-2', 'delete T-2'])
    expect(await refusal(two.commit())).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  })

  test('E5-18: a commit is refused while a step runs, and where one has an unknown end', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    const entered = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    world.on = tool => {
      if (tool !== 'create') return undefined
      entered.resolve()
      return gate.promise
    }
    const step = tx.callTool('create', { title: 'a' })
    await entered.promise
    expect(await refusal(tx.commit())).toMatchObject({ code: 'TRANSACTION_CONFLICT', category: 'transient' })
    gate.resolve()
    await step
    expect(await tx.commit()).toMatchObject({ status: 'committed', steps: [{ status: 'ok' }] })
  })

  test('X3: the key of a step that was taken back stands for something undone', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    await tx.callTool('create', { title: 'a' }, { idempotencyKey: 'op-1' })
    await tx.rollback()
    const again = await tx.callTool('create', { title: 'a' }, { idempotencyKey: 'op-1' })
    expect(again.problem).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', details: { status: 'undone' } })
    expect(world.log).toEqual(['create T-1', 'delete T-1'])
  })

  test('E5-10: a step made again under its key is not enrolled again', async () => {
    const { mcp } = await begin(revision, kind)
    const tx = await mcp.transaction()
    await tx.callTool('create', { title: 'a' }, { idempotencyKey: 'op-1', step: 'one' })
    expect(await tx.callTool('create', { title: 'a' }, { idempotencyKey: 'op-1', step: 'one' })).toMatchObject({ isError: false })
    expect((await tx.status()).steps).toHaveLength(1)
  })

  test('a transaction that is left without a commit is rolled back, and its report can be read', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    await (async () => {
      await using _ = tx
      await tx.callTool('create', { title: 'a' })
    })()
    expect(tx.report).toMatchObject({ status: 'rolled_back', steps: [{ status: 'compensated' }] })
    expect(world.tickets.size).toBe(0)
  })
})

describe.each(cases)('transactions, further, at $revision on $kind', ({ revision, kind }) => {
  test('E5-14: a failure that may pass is tried again', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    await tx.callTool('create', { title: 'a' })
    let failures = 1
    const { problem } = await import('../../src/server/index.ts')
    world.on = tool => {
      if (tool === 'delete' && failures-- > 0) throw problem('SERVER_UNAVAILABLE', 'busy')
    }
    expect(await tx.rollback()).toMatchObject({ status: 'rolled_back' })
  })

  test('E5-16: without activity for its timeout it is rolled back by itself, and somebody is told', async () => {
    const clock = stores.clock()
    const store = await stores.urlOn(kind, clock)
    const told = Promise.withResolvers<unknown>()
    const { mcp, world } = await begin(revision, kind, { store, clock, transactions: { onRolledBack: told.resolve } })
    const tx = await mcp.transaction({ timeout: '10s' })
    await tx.callTool('create', { title: 'a' })
    await clock.advance(9_000)
    await tx.callTool('create', { title: 'b' })
    const from = clock.now()
    await until(clock, () => tx.status())
    expect(clock.now() - from).toBeGreaterThanOrEqual(10_000)
    expect(await told.promise).toMatchObject({
      transaction_id: tx.id,
      status: 'rolled_back',
      reason: 'The transaction timed out: it had no call for 10 s',
    })
    expect(world.tickets.size).toBe(0)
    expect(await tx.callTool('create', { title: 'c' })).toMatchObject({ problem: { code: 'TRANSACTION_CONFLICT' } })
  })

  test('E5-16: who subscribed to it hears on the wire that his was rolled back by itself, and nobody else does', async () => {
    const clock = stores.clock()
    const store = await stores.urlOn(kind, clock)
    const world = newWorld()
    const server = tracker(world, { store, clock, transactions: { events: true } })
    cleanups.push(() => server.close())
    const [ann, bob] = [await connectAs(server, revision, { id: 'ann' }), await connectAs(server, revision, { id: 'bob' })]
    const [hers, his] = [ann, bob].map(mcp => mcp.events(['transaction_rolled_back'])) as [EventReader, EventReader]
    await Promise.all([hers.ready, his.ready])
    const tx = await ann.transaction({ timeout: '10s' })
    await tx.callTool('create', { title: 'a' })
    await until(clock, () => tx.status())
    for await (const { payload } of hers) {
      expect(payload).toEqual({
        transaction_id: tx.id,
        status: 'rolled_back',
        reason: 'The transaction timed out: it had no call for 10 s',
      })
      break
    }
    const own = await bob.transaction()
    await own.rollback('enough')
    for await (const { payload } of his) {
      expect(payload).toEqual({ transaction_id: own.id, status: 'rolled_back', reason: 'enough' })
      break
    }
  })

  test('E5-16: a step that runs when the time is over is told to stop, awaited, and taken back', async () => {
    const clock = stores.clock()
    const store = await stores.urlOn(kind, clock)
    const { mcp, world } = await begin(revision, kind, { store, clock })
    const tx = await mcp.transaction({ timeout: '10s' })
    const entered = Promise.withResolvers<void>()
    world.on = async (tool, _, signal) => {
      if (tool !== 'create') return
      entered.resolve()
      await new Promise(resolve => signal.addEventListener('abort', resolve))
    }
    const step = tx.callTool('create', { title: 'a' }, { timeout: '1h' })
    await entered.promise
    await until(clock, () => tx.status())
    await step.catch(() => undefined)
    expect((await tx.status()).steps).toMatchObject([{ status: 'compensated' }])
    expect(world.log).toEqual(['create T-1', 'delete T-1'])
  })

  test('E5-16: a step that runs when its transaction is rolled back is told to stop, awaited, and taken back', async () => {
    const { mcp, world } = await begin(revision, kind)
    const tx = await mcp.transaction()
    const entered = Promise.withResolvers<void>()
    let waited = false
    world.on = async (tool, _, signal) => {
      if (tool !== 'create') return
      entered.resolve()
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      waited = true
    }
    const step = tx.callTool('create', { title: 'a' })
    await entered.promise
    const report = await tx.rollback()
    expect(waited).toBe(true)
    await step
    expect(report).toMatchObject({ status: 'rolled_back', steps: [{ status: 'compensated' }] })
    expect(world.log).toEqual(['create T-1', 'delete T-1'])
  })

  test('E5-13: an unknown outcome is undone by what was known before, or reported', async () => {
    const world = newWorld()
    const url = stores.url(kind)
    const server = tracker(world, { store: url })
    server.tool(
      'slow',
      { timeout: 20, undo: { tool: 'delete', arguments: ({ key }) => (key === undefined ? undefined : { id: key }) } },
      async (_, ctx) => {
        await new Promise(resolve => ctx.signal.addEventListener('abort', resolve))
        world.tickets.set(ctx.idempotencyKey ?? '', 'slow')
      },
    )
    server.tool(
      'vague',
      { timeout: 20, undo: { tool: 'delete', arguments: ({ result }) => result as never } },
      async (_, ctx) => {
        await new Promise(resolve => ctx.signal.addEventListener('abort', resolve))
      },
    )
    const mcp = await connectInMemory(server, { revision, retry: false })
    cleanups.push(
      () => server.close(),
      () => mcp.close(),
    )
    const tx = await mcp.transaction()
    await tx.callTool('slow', {}, { idempotencyKey: 'op-slow' })
    await tx.callTool('vague')
    expect(await refusal(tx.commit())).toMatchObject({ code: 'TRANSACTION_CONFLICT', category: 'permanent' })
    const report = await tx.rollback()
    expect(report.steps).toMatchObject([
      { status: 'compensated' },
      { status: 'compensation_failed', error: { code: 'OUTCOME_UNKNOWN' } },
    ])
    expect(world.tickets.size).toBe(0)
  })

  test('E5-17: a compensation carries a key of its own, so that it can be looked up', async () => {
    const { mcp } = await begin(revision, kind)
    const tx = await mcp.transaction({ id: 'tx-1' })
    await tx.callTool('create', { title: 'a' }, { step: 'make' })
    await tx.rollback()
    expect(await mcp.callStatus('compensate-tx-1-make')).toMatchObject({ status: 'done', tool: 'delete' })
  })

  test('E5-17: a compensation runs with what its caller was allowed when the step was made, and nobody is asked', async () => {
    const world = newWorld()
    const server = tracker(world, { store: stores.url(kind) })
    const input = z.object({ id: z.string() })
    server.tool('open', { input, undo: { tool: 'close' } }, () => 'opened')
    server.tool('close', { input, scopes: ['doors'] }, ({ id }, ctx) => {
      world.log.push(`close ${id} as ${ctx.principal?.subject}`)
      return 'closed'
    })
    cleanups.push(() => server.close())
    const as = (...scopes: string[]) => connectAs(server, revision, { id: 'issuer ann', subject: 'ann', scopes })
    const [rich, poor] = [await as('doors'), await as()]
    const meta = (transaction_id: string) => ({ meta: { 'dev.vivarium/transactions': { transaction_id } } })
    const tx = await rich.transaction({ id: 'tx-1' })
    await tx.callTool('open', { id: 'a' })
    // The same caller, who has lost the scope since.
    await poor.callTool('open', { id: 'b' }, meta('tx-1'))
    expect((await poor.transactionStatus('tx-1')).steps).toHaveLength(2)
    const report = await rich.transactionStatus('tx-1').then(() => tx.rollback())
    expect(report.steps).toMatchObject([
      { status: 'compensated' },
      { status: 'compensation_failed', error: { code: 'SCOPE_INSUFFICIENT' } },
    ])
    expect(world.log).toEqual(['close a as ann'])
  })

  test('E5-17: what had been granted for a step holds for its compensation, also when the grant is gone', async () => {
    const world = newWorld()
    const permissions = { grant: ({ scopes }: { readonly scopes: readonly string[] }) => scopes }
    const server = tracker(world, { store: stores.url(kind), permissions })
    const input = z.object({ id: z.string() })
    server.tool('open', { input, undo: { tool: 'close' } }, () => 'opened')
    server.tool('close', { input, scopes: ['doors'], confirm: { message: 'Close {id}?' } }, ({ id }) => {
      world.log.push(`close ${id}`)
      return 'closed'
    })
    const mcp = await connectInMemory(server, { revision, retry: false })
    cleanups.push(
      () => server.close(),
      () => mcp.close(),
    )
    const tx = await mcp.transaction()
    await tx.callTool('open', { id: 'before' })
    await mcp.permissions.negotiate(['windows'])
    await tx.callTool('open', { id: 'with windows' })
    await mcp.permissions.negotiate(['doors', 'windows'])
    await tx.callTool('open', { id: 'with doors' })
    for (const { session } of await server.permissions.sessions()) await server.permissions.revoke(session)
    const { steps } = await tx.rollback()
    const lacks = { status: 'compensation_failed', error: { code: 'SCOPE_INSUFFICIENT' } }
    expect(steps).toMatchObject([lacks, lacks, { status: 'compensated' }])
    expect(world.log).toEqual(['close with doors'])
  })

  test('C8: a transaction of somebody else is as unknown as one that never was', async () => {
    const world = newWorld()
    const server = tracker(world, { store: stores.url(kind) })
    cleanups.push(() => server.close())
    const as = (id: string) => connectAs(server, revision, { id })
    const [ann, bob] = [await as('ann'), await as('bob')]
    await ann.transaction({ id: 'tx-1' })
    expect(await refusal(bob.transactionStatus('tx-1'))).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    await bob.transaction({ id: 'tx-1' })
    expect(await refusal(ann.transactionStatus('never'))).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })

  test('what is answered fits the schemas of the extension', async () => {
    const { mcp, world } = await begin(revision, kind)
    const frames: Record<string, unknown>[] = []
    mcp.use(async (call, next) => {
      const result = await next(call)
      frames.push({ method: call.method, params: call.params, result })
      return result
    })
    const tx = await mcp.transaction({ description: 'two', timeout: '1m' })
    await tx.callTool('create', { title: 'a' })
    world.on = tool => {
      if (tool === 'delete') throw new Error('It is locked')
    }
    await tx.rollback('enough')
    const [begun, step, back] = frames
    expectFits(begun?.['params'], 'transactions.schema.json', 'TransactionBegin')
    expect(step?.['result']).toMatchObject({
      _meta: { 'dev.vivarium/transactions': { status: 'ok', compensation: { parameters: { id: 'T-1' } } } },
    })
    expectFits(back?.['params'], 'transactions.schema.json', 'TransactionRollback')
    expect(back?.['result']).toMatchObject({
      steps_compensated: [{ step_id: '1', status: 'compensation_failed', error: { code: 'SERVER_ERROR' } }],
    })
    expectFits(back?.['result'], 'transactions.schema.json', 'TransactionRollbackResult')
  })

  test('a server without undo knows no transactions, and a client is told of sagas', async () => {
    const server = createServer({ name: 'plain', version: '1.0.0' })
    server.tool('create', {}, () => 'created')
    const mcp = await connectInMemory(server, { revision })
    cleanups.push(
      () => server.close(),
      () => mcp.close(),
    )
    expect(await refusal(mcp.transaction())).toMatchObject({ code: 'UNSUPPORTED', suggestion: expect.stringMatching(/saga/) })
    await expect(mcp.transactionStatus('x')).rejects.toMatchObject({ code: -32601 })
    const stray = await mcp.callTool('create', {}, { meta: { 'dev.vivarium/transactions': { transaction_id: 'x' } } })
    expect(stray).toMatchObject({ isError: true, problem: { code: 'RESOURCE_NOT_FOUND' } })
  })

  test('a step that asks something goes on as the same step when the answer comes', async () => {
    const world = newWorld()
    const server = tracker(world, { store: stores.url(kind) })
    server.tool('ask', { undo: { tool: 'delete', arguments: ({ result }) => ({ id: String(result) }) } }, async (_, ctx) => {
      await ctx.confirm('Really?')
      world.log.push('asked')
      return 'T-9'
    })
    const mcp = await connectInMemory(server, {
      revision,
      retry: false,
      onElicit: () => ({ action: 'accept', content: { confirm: true } }),
    })
    cleanups.push(
      () => server.close(),
      () => mcp.close(),
    )
    const tx = await mcp.transaction()
    expect(await tx.callTool('ask')).toMatchObject({ isError: false, text: 'T-9' })
    expect((await tx.status()).steps).toMatchObject([{ id: '1', status: 'ok' }])
    await tx.rollback()
    expect(world.log).toEqual(['asked', 'delete T-9'])
  })

  test('ids that are none are refused, with the rule', async () => {
    const { mcp } = await begin(revision, kind)
    await expect(mcp.transaction({ id: 'a/b' })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringMatching(/1 to 128/),
    })
    await mcp.transaction({ id: 'tx-1' })
    const bad = { meta: { 'dev.vivarium/transactions': { transaction_id: 'tx-1', step_id: '' } } }
    await expect(mcp.callTool('create', { title: 'x' }, bad)).rejects.toMatchObject({ code: -32602 })
  })

  test('E5-19: what a process left half rolled back is ended by the next one, at the first step without outcome', async () => {
    const world = newWorld()
    const clock = stores.clock()
    const store = await stores.open(kind, clock)
    cleanups.push(() => store.close())
    // Its timers stand still, so that it never says again that it lives.
    const first = tracker(world, { store, clock: { now: clock.now, setTimeout: () => () => {} } })
    const mcp = await connectInMemory(first, { revision, retry: false })
    const tx = await mcp.transaction()
    for (const title of ['a', 'b', 'c']) await tx.callTool('create', { title })
    const stuck = Promise.withResolvers<void>()
    world.on = (tool, { id }) => {
      if (tool !== 'delete' || id !== 'T-2') return undefined
      stuck.resolve()
      // As if it died here: the store gets nothing of it any more.
      return new Promise(() => {})
    }
    tx.rollback().catch(() => {})
    await stuck.promise
    await first.close()
    world.on = () => undefined
    const told = Promise.withResolvers<{ status: string }>()
    const second = tracker(world, { store, clock, transactions: { onRolledBack: told.resolve } })
    const other = await connectInMemory(second, { revision })
    cleanups.push(
      () => second.close(),
      () => other.close(),
    )
    // Nobody asks for it: it is found once the lease of the first one is over.
    await until(clock, () => other.transactionStatus(tx.id))
    const report = await told.promise
    expect(report).toMatchObject({ transaction_id: tx.id, status: 'rolled_back' })
    expect(world.log.slice(3)).toEqual(['delete T-3', 'delete T-2', 'delete T-1'])
  })
})
