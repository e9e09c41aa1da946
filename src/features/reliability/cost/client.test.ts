import { afterEach, describe, expect, it } from 'vitest'
import { modernServer, said, sessionServer, silence, toolList } from '../../../../test/client/scripted-server.ts'
import { eras } from '../../../../test/spec/consent.ts'
import { type Client, type ConnectOptions, type CostQuestion, connect, offeredCost } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/index.ts'
import { fakeClock } from '../../../testing/clock.ts'
import { memoryPair } from '../../../transports/memory.ts'

const operational = 'dev.vivarium/operational'
const open: (Client | Server)[] = []
let ran: string[] = []
afterEach(async () => {
  ran = []
  for (const one of open.splice(0).reverse()) await one.close()
})

async function shop(revision: RevisionId, options: ConnectOptions = {}): Promise<Client> {
  const server = createServer({
    name: 'shop',
    version: '1.0.0',
    log: 'silent',
    cost: { unitLabel: 'credits', quota: { units: 50, per: '1d' } },
  })
  for (const [name, cost] of [
    ['search', { category: 'metered', estimatedUnits: 3 }],
    ['look', { category: 'free' }],
    ['print', { category: 'requires_approval', estimatedUnits: 40 }],
  ] as const)
    server.tool(name, { cost }, () => {
      ran.push(name)
      return name
    })
  server.tool('crunch', { cost: { category: 'metered' } }, (_, ctx) => {
    for (let chunk = 0; chunk < 10; chunk++) ctx.cost.add(1)
  })
  server.tool('plain', {}, () => 'plain')
  const [near, far] = memoryPair()
  server.acceptor.accept(far)
  const mcp = await connect(near, { revisions: [revision], ...options })
  open.push(server, mcp)
  return mcp
}

const codeOf = (call: Promise<unknown>): Promise<unknown> => call.then(undefined, error => error.code)

describe.each(eras)('a client that minds the cost at %s', revision => {
  it('E3-3, E3-4: gets to know what a call cost, and what is left', async () => {
    const mcp = await shop(revision)
    const { cost } = await mcp.callTool('search')
    expect(cost).toMatchObject({ units: 3, unitLabel: 'credits', quota: { remaining: 47, resetsAt: expect.any(Date) } })
    expect((await mcp.callTool('plain')).cost).toBeUndefined()
  })

  it('E3-2: has a call refused that costs more than its budget', async () => {
    const mcp = await shop(revision)
    expect(await codeOf(mcp.callTool('search', {}, { budget: 2 }))).toBe('BUDGET_EXCEEDED')
    expect((await mcp.callTool('search', {}, { budget: { units: 3, time: '1m' } })).cost?.units).toBe(3)
    const stopped = await mcp.callTool('crunch', {}, { budget: 4 })
    expect([stopped.problem?.code, stopped.cost?.units]).toEqual(['BUDGET_EXCEEDED', 5])
    expect(ran).toEqual(['search'])
  })

  it('E3-1: asks its user before a call that needs approval, once, with its price', async () => {
    const asked: string[] = []
    const mcp = await shop(revision, { onConfirm: ({ message }) => asked.push(message) === 1 })
    expect((await mcp.callTool('print')).text).toBe('print')
    expect(asked).toEqual(['shop: print. It costs 40 credits. Allow this call?'])
    expect(await codeOf(mcp.callTool('print'))).toBe('CONFIRMATION_DECLINED')
    expect(ran).toEqual(['print'])
  })

  it('E3-1: asks before what costs more than it may spend unasked; without anybody to ask it is not sent', async () => {
    const asked: CostQuestion[] = []
    const mcp = await shop(revision, { costLimit: 2, onCost: question => asked.push(question) === 1 })
    expect((await mcp.callTool('look')).text).toBe('look')
    expect((await mcp.callTool('search')).text).toBe('search')
    expect(await codeOf(mcp.callTool('search'))).toBe('CONFIRMATION_DECLINED')
    expect(asked[0]).toMatchObject({ message: 'shop: search costs 3 credits. Proceed?', units: 3, category: 'metered' })
    const alone = await shop(revision, { costLimit: 2 })
    expect(await codeOf(alone.callTool('search'))).toBe('BUDGET_EXCEEDED')
    expect(ran).toEqual(['look', 'search'])
  })

  it('E3-6, E3-3: has what takes minutes run in the background where it can, and hears at its end what it cost', async () => {
    const server = createServer({ name: 'shop', version: '1.0.0', log: 'silent' })
    const cost = { category: 'metered', estimatedUnits: 8 } as const
    const seen: unknown[] = []
    server.tool('report', { cost, latency: 'minutes', task: 'optional' }, async (_, ctx) => {
      seen.push(ctx.task !== undefined, await server.budgets.left(budget))
      ctx.cost.add(1)
      return 'written'
    })
    const budget = await server.budgets.give({ units: 10 })
    const [near, far] = memoryPair()
    server.acceptor.accept(far)
    const mcp = await connect(near, { revisions: [revision] })
    open.push(server, mcp)
    const out = await mcp.callTool('report')
    expect([out.text, out.cost?.units]).toEqual(['written', 1])
    expect(seen).toEqual([true, 2])
    await expect.poll(() => server.budgets.left(budget)).toBe(9)
  })

  it('E3-7: takes what a tool does not say for unknown, and never for free', async () => {
    const mcp = await shop(revision, { costLimit: 1000 })
    expect(await codeOf(mcp.callTool('plain'))).toBe('BUDGET_EXCEEDED')
    const plain = await shop(revision)
    expect(await codeOf(plain.callTool('plain', {}, { budget: 1000 }))).toBe('BUDGET_EXCEEDED')
    const asked: CostQuestion[] = []
    const bold = await shop(revision, { onCost: question => asked.push(question) > 0 })
    expect((await bold.callTool('plain', {}, { budget: 1000 })).text).toBe('plain')
    expect(asked[0]).toMatchObject({ units: undefined, message: expect.stringContaining('unknown') })
  })
})

describe.each(eras)('a server that says of its tools what we do not check at %s', revision => {
  const scripted = revision === '2026-07-28' ? modernServer : sessionServer

  it('E3-1: and needs approval without asking for it is not called unasked', async () => {
    const _meta = { [operational]: { cost: { category: 'requires_approval', estimated_units: 4 } } }
    const script = { 'tools/list': () => toolList({ name: 'pay', _meta }), 'tools/call': () => said('paid') }
    const server = scripted(script)
    await using mcp = await connect(server.connection, { revisions: [revision] })
    for await (const _ of mcp.tools());
    expect(await codeOf(mcp.callTool('pay'))).toBe('CONFIRMATION_REQUIRED')
    expect(server.of('tools/call')).toEqual([])
  })

  it.each([
    ['instant', 10_000],
    ['seconds', 60_000],
    ['minutes', 600_000],
    [undefined, 60_000],
  ])('E3-6: is waited for by its latency: %s is %i ms', async (latency, ms) => {
    const clock = fakeClock()
    const _meta = latency === undefined ? {} : { [operational]: { latency } }
    const script = { 'tools/list': () => toolList({ name: 't', _meta }), 'tools/call': () => silence }
    const server = scripted(script)
    const limits = { callTotalMs: 3_600_000 }
    await using mcp = await connect(server.connection, { revisions: [revision], clock, limits, retry: false })
    for await (const _ of mcp.tools());
    let over = false
    const call = mcp.callTool('t').catch(error => {
      over = true
      return error
    })
    await server.saw('tools/call')
    const pass = async (time: number): Promise<void> => {
      for (let left = time; left > 0; left -= 250) clock.advance(Math.min(left, 250))
      await new Promise(setImmediate)
    }
    await pass(ms - 1_000)
    expect(over).toBe(false)
    await pass(1_500)
    expect(await call).toMatchObject({ kind: 'timeout' })
  })

  it('E3-6: but as its caller says, where it does', async () => {
    const clock = fakeClock()
    const _meta = { [operational]: { latency: 'minutes' } }
    const script = { 'tools/list': () => toolList({ name: 't', _meta }), 'tools/call': () => silence }
    const server = scripted(script)
    await using mcp = await connect(server.connection, { revisions: [revision], clock, retry: false })
    for await (const _ of mcp.tools());
    const call = mcp.callTool('t', {}, { timeout: '2s' }).catch(error => error)
    await server.saw('tools/call')
    for (let left = 2_500; left > 0; left -= 250) clock.advance(250)
    expect(await call).toMatchObject({ kind: 'timeout' })
  })
})

describe('what a tool says of its cost', () => {
  it.each<[unknown, object]>([
    [undefined, { category: undefined, units: undefined, latency: undefined }],
    [{ [operational]: 7 }, { category: undefined, units: undefined }],
    [{ [operational]: { cost: { category: 'gratis', estimated_units: '3' } } }, { category: undefined, units: undefined }],
    [{ [operational]: { cost: { category: 'metered' } } }, { category: 'metered', units: undefined }],
    [{ [operational]: { cost: { category: 'free' } } }, { category: 'free', units: 0 }],
    [{ [operational]: { cost: { estimated_units: 2, unit_label: 'credits' } } }, { units: 2, unitLabel: 'credits' }],
  ])('E3-7: %j is read as far as it can be, and no further', (meta, read) => {
    expect(offeredCost(meta)).toMatchObject(read)
  })
})
