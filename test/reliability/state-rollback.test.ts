import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Context, createServer, type Server } from '../../src/server/index.ts'
import { connectInMemory } from '../../src/testing/index.ts'
import { called, callParams, peer, post, secret } from '../remembering.ts'
import { places } from '../spec/consent.ts'
import { type Frame, resultOf, speak, textOf } from '../spec/wire.ts'
import { storesUnderTest } from '../stores-under-test.ts'

const under = storesUnderTest()
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const transactions = 'dev.vivarium/transactions'
const state = 'dev.vivarium/state'
const problems = 'dev.vivarium/problem'

/** Notes in a state, and on a wall that the state knows nothing of. */
function notes(store: string, wall: string[] = []): { server: Server; wall: string[] } {
  const server = createServer({ name: 'notes', version: '1.0.0', log: 'silent', secret, store, limits: { rates: false } })
  cleanups.push(() => server.close())
  const input = z.object({ text: z.string() })
  const change = async (ctx: Context, to: (before: string[]) => string[]): Promise<string> => {
    const after = to((await ctx.state.get<string[]>()) ?? [])
    await ctx.state.set(after)
    return after.join(' ')
  }
  server.tool('note', { input, undo: { tool: 'erase' } }, ({ text }, ctx) => {
    wall.push(text)
    return change(ctx, before => [...before, text])
  })
  // As a call of its own it changes the state as well; as a compensation the state goes back by itself.
  server.tool('erase', { input }, ({ text }, ctx) => {
    wall.splice(wall.indexOf(text), 1)
    return change(ctx, before => before.filter(each => each !== text))
  })
  server.tool('read', {}, async (_, ctx) => ((await ctx.state.get<string[]>()) ?? []).join(' '))
  return { server, wall }
}

const inTx = (text: string, token?: string): Frame => {
  const { _meta, ...rest } = callParams('note', text, token)
  return { ...rest, _meta: { ...(_meta as Frame), [transactions]: { transaction_id: 'tx' } } }
}
const extensions = { [transactions]: {}, [problems]: {} }

describe.each(places)('the state that steps wrote, at %s on %s', (revision, kind) => {
  test('X3, E14-8: goes back with them, and the tokens of what was undone are no longer good', async () => {
    const { server, wall } = notes(under.url(kind))
    const wire = await peer(server, revision, { capabilities: { extensions: { ...extensions, [state]: {} } } })
    const first = await wire.call('note', 'a')
    resultOf(await wire.ask('transaction/begin', { transaction_id: 'tx' }))
    const second = called(await wire.ask('tools/call', inTx('b', first.token)))
    const third = called(await wire.ask('tools/call', inTx('c', second.token)))
    expect(third.text).toBe('a b c')
    // Beside the transaction, on what was there before it: none of its business.
    const beside = await wire.call('note', 'd', first.token)
    const report = resultOf(await wire.ask('transaction/rollback', { transaction_id: 'tx' }))
    expect(report).toMatchObject({ status: 'rolled_back', steps: [{ status: 'compensated' }, { status: 'compensated' }] })
    for (const { token } of [second, third])
      expect((await wire.call('read', undefined, token)).problem).toMatchObject({ code: 'STATE_INVALID' })
    expect((await wire.call('read', undefined, first.token)).text).toBe('a')
    expect((await wire.call('read', undefined, beside.token)).text).toBe('a d')
    expect(wall).toEqual(['a', 'd'])
  })

  test('X3: a client of ours has the state of before again, by itself', async () => {
    const { server, wall } = notes(under.url(kind))
    const mcp = await connectInMemory(server, { revision, retry: false })
    cleanups.push(() => mcp.close())
    await mcp.callTool('note', { text: 'a' })
    const tx = await mcp.transaction()
    expect((await tx.callTool('note', { text: 'b' })).text).toBe('a b')
    expect((await tx.callTool('note', { text: 'c' })).text).toBe('a b c')
    expect(await tx.rollback()).toMatchObject({ status: 'rolled_back' })
    expect((await mcp.callTool('read')).text).toBe('a')
    const kept = await mcp.transaction()
    await kept.callTool('note', { text: 'd' })
    await kept.commit()
    expect((await mcp.callTool('read')).text).toBe('a d')
    expect(wall).toEqual(['a', 'd'])
  })

  test('X3: goes back where a connection keeps it, also to nothing', async () => {
    const { server } = notes(under.url(kind))
    const wire = await speak(server, revision, { capabilities: { extensions } })
    const read = async () => textOf(await wire.ask('tools/call', { name: 'read' }))
    for (const before of ['', 'a']) {
      if (before !== '') await wire.ask('tools/call', callParams('note', before))
      const id = `tx${before}`
      resultOf(await wire.ask('transaction/begin', { transaction_id: id }))
      for (const text of ['b', 'c'])
        resultOf(await wire.ask('tools/call', { ...callParams('note', text), _meta: { [transactions]: { transaction_id: id } } }))
      expect(await read()).toBe(`${before} b c`.trim())
      expect(resultOf(await wire.ask('transaction/rollback', { transaction_id: id }))).toMatchObject({ status: 'rolled_back' })
      expect(await read()).toBe(before)
    }
    expect(textOf(await wire.ask('tools/call', callParams('note', 'e')))).toBe('a e')
  })

  test('X3: stays where others have built on it outside of the transaction, and the report says so', async () => {
    const { server, wall } = notes(under.url(kind))
    const wire = await speak(server, revision, { capabilities: { extensions } })
    resultOf(await wire.ask('transaction/begin', { transaction_id: 'tx' }))
    resultOf(await wire.ask('tools/call', inTx('a')))
    expect(textOf(await wire.ask('tools/call', callParams('note', 'b')))).toBe('a b')
    const report = resultOf(await wire.ask('transaction/rollback', { transaction_id: 'tx' }))
    expect(report).toMatchObject({
      status: 'partially_rolled_back',
      steps: [{ status: 'compensation_failed', error: { code: 'STATE_CONFLICT' } }],
    })
    expect(textOf(await wire.ask('tools/call', { name: 'read' }))).toBe('a b')
    expect(wall).toEqual(['b'])
  })

  test('a step whose state could not be kept is taken back all the same, and under its key it is not done again', async () => {
    const { server, wall } = notes(under.url(kind))
    const wire = await peer(server, revision, {
      capabilities: { extensions: { ...extensions, [state]: {}, 'dev.vivarium/idempotency': {} } },
    })
    const { token } = await wire.call('note', 'a')
    server.tool('late', { input: z.object({ text: z.string() }), undo: { tool: 'erase' } }, async ({ text }, ctx) => {
      await ctx.state.set([text])
      wall.push(text)
      const [session] = await sessionsOf(server)
      await server.states.rollback(session ?? '', 0)
      return 'done'
    })
    resultOf(await wire.ask('transaction/begin', { transaction_id: 'tx' }))
    const { _meta, ...rest } = inTx('b', token)
    const late = { ...rest, name: 'late', _meta: { ...(_meta as Frame), 'dev.vivarium/idempotency': { idempotency_key: 'op' } } }
    expect(called(await wire.ask('tools/call', late)).problem).toMatchObject({ code: 'STATE_INVALID' })
    expect(called(await wire.ask('tools/call', late)).problem).toMatchObject({ code: 'STATE_INVALID' })
    expect(wall).toEqual(['a', 'b'])
    expect(resultOf(await wire.ask('transaction/rollback', { transaction_id: 'tx' }))).toMatchObject({ status: 'rolled_back' })
    expect(wall).toEqual(['a'])
  })
})

async function sessionsOf(server: Server): Promise<readonly string[]> {
  for await (const { data } of server.states.follow({ signal: AbortSignal.timeout(10_000) }))
    return [(data as { session_id: string }).session_id]
  return []
}

test('X3: another process takes the state back that one left, for a principal and for a token', async () => {
  const url = under.url('sqlite')
  const { server: one, wall } = notes(url)
  const { server: two } = notes(url, wall)
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bare', version: '1' },
  }
  const ask = async (server: Server, method: string, params: Frame, known: Frame = extensions) => {
    const _meta = { ...meta, 'io.modelcontextprotocol/clientCapabilities': { extensions: known }, ...(params['_meta'] as Frame) }
    const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }
    const name = params['name'] ?? params['transaction_id']
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': String(name) }
    return (await post(server, body, headers, 'ann')).frame
  }
  await ask(one, 'tools/call', callParams('note', 'a'))
  const carried = called(await ask(one, 'tools/call', callParams('note', 'x'), { ...extensions, [state]: {} }))
  resultOf(await ask(one, 'transaction/begin', { transaction_id: 'tx' }))
  expect(textOf(await ask(one, 'tools/call', inTx('b')))).toBe('a b')
  const step = called(await ask(one, 'tools/call', inTx('y', carried.token), { ...extensions, [state]: {} }))
  await one.close()
  expect(resultOf(await ask(two, 'transaction/rollback', { transaction_id: 'tx' }))).toMatchObject({ status: 'rolled_back' })
  expect(textOf(await ask(two, 'tools/call', { name: 'read' }))).toBe('a')
  expect(called(await ask(two, 'tools/call', callParams('read', undefined, step.token))).problem).toMatchObject({
    code: 'STATE_INVALID',
  })
  expect(called(await ask(two, 'tools/call', callParams('read', undefined, carried.token))).text).toBe('x')
  expect(wall).toEqual(['a', 'x'])
})
