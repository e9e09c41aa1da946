/** What whoever runs a gateway relies on: an audit log that is whole, pages that say how it is, an end in good order. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import type { GatewayNotice } from '../../src/gateway/trust/approvals.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { clientOf, gatewayBefore, toolNames, upstreamOf } from './world.ts'

/** A store that can be taken away. */
function mortal() {
  const store = memoryStore()
  const state = { down: false }
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (state.down) throw new StoreError('failed', 'The store is away')
    return work()
  }
  const reached: Store = {
    get: key => guarded(() => store.get(key)),
    scan: (prefix, options) => guarded(() => store.scan(prefix, options)),
    read: (log, options) => guarded(() => store.read(log, options)),
    commit: ops => guarded(() => store.commit(ops)),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
  }
  return { state, store: reached }
}

const toldOf = () => {
  const told: GatewayNotice[] = []
  return { told, kinds: () => told.map(({ kind }) => kind), onNotice: (notice: GatewayNotice) => void told.push(notice) }
}

test('a line says who called what, where, and with which arguments, found by any of it', async () => {
  const bank = upstreamOf()
  const gateway = await gatewayBefore(
    { bank, other: upstreamOf('other') },
    {
      auth: { tokens: { ann: 'a'.repeat(32), bob: 'b'.repeat(32) } },
      clients: { ann: {}, bob: {} },
      audit: { arguments: true },
    },
  )
  const { url, port } = await gateway.listen()
  const as = (token: string) => connect(url, { headers: { authorization: `Bearer ${token.repeat(32)}` } })
  await using ann = await as('a')
  await using bob = await as('b')
  await ann.callTool('bank_pay', { to: 'eve', password: 'hunter2hunter2' })
  await bob.callTool('other_read')
  const [line, ...more] = await gateway.audit.read({ client: 'ann', tool: 'pay', since: Date.now() - 60_000 })
  expect(more).toEqual([])
  expect(line).toMatchObject({
    event: 'call_ended',
    target: 'bank_pay',
    outcome: 'success',
    more: { client: 'ann', subject: 'ann', server: 'bank', tool: 'pay', input_digest: expect.stringMatching(/^sha256:/) },
  })
  expect(line?.more?.['arguments']).toBe('{"to":"eve","password":"[redacted]"}')
  expect(await gateway.audit.read({ until: Date.now() - 60_000 })).toEqual([])
  expect((await gateway.audit.read({ server: 'other' })).map(({ target }) => target)).toEqual(['other_read'])

  const denied = () => fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers: { authorization: 'Bearer wrong' } })
  for (let i = 0; i < 5; i++) expect((await denied()).status).toBe(401)
  const lines = await gateway.audit.read({ outcome: 'refused' })
  expect(lines).toMatchObject([{ event: 'noted', more: { code: 'TOKEN_REFUSED_401', from: '127.0.0.1', times: 1 } }])
})

test('while the store is away lines are kept, and written when it is back; what is lost at the end is told', async () => {
  const { state, store } = mortal()
  const { told, kinds, onNotice } = toldOf()
  const gateway = await gatewayBefore({ bank: upstreamOf() }, { store, onNotice })
  const client = await clientOf(gateway)
  // Who knows that a tool only reads calls it without a key.
  await toolNames(client)
  state.down = true
  expect((await client.callTool('read')).text).toBe('read 1')
  await expect.poll(kinds).toEqual(['audit-behind'])
  expect((await client.callTool('read')).text).toBe('read 2')
  state.down = false
  await expect.poll(kinds).toEqual(['audit-behind', 'audit-caught-up'])
  expect(await gateway.audit.read()).toHaveLength(2)
  expect(await gateway.audit.verify()).toMatchObject({ ok: true, lines: 2 })
  state.down = true
  await client.callTool('read')
  await gateway.close()
  expect(told.at(-1)).toMatchObject({ kind: 'audit-lost', message: expect.stringContaining('1 lines') })
})

test('with audit.must a call is made only when it is written that it begins', async () => {
  const { state, store } = mortal()
  const bank = upstreamOf()
  const gateway = await gatewayBefore({ bank }, { store, audit: { must: true }, onNotice: () => {} })
  const client = await clientOf(gateway)
  // Who knows that a tool only reads calls it without a key.
  await toolNames(client)
  await client.callTool('read')
  expect(await gateway.audit.read()).toMatchObject([{ event: 'call_begun' }, { event: 'call_ended', outcome: 'success' }])
  state.down = true
  expect(await client.callTool('read')).toMatchObject({
    isError: true,
    text: expect.stringContaining('the audit log could not be written'),
  })
  expect(bank.ran).toHaveLength(1)
  state.down = false
  expect((await client.callTool('read')).text).toBe('read 2')
})

test('a session that cannot be kept is refused like any other request: come again', async () => {
  const { state, store } = mortal()
  const gateway = await gatewayBefore({ bank: upstreamOf() }, { store, secret: 's'.repeat(32), onNotice: () => {} })
  const { url } = await gateway.listen()
  const initialize = () =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      }),
    })
  expect((await initialize()).status).toBe(200)
  state.down = true
  const refused = await initialize()
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await refused.text()).toContain('Sessions cannot be loaded')
})

test('/health says that it lives, /ready whether it should be given work; only who may call is told more', async () => {
  const { state, store } = mortal()
  const gateway = await gatewayBefore(
    { bank: upstreamOf() },
    {
      store,
      auth: { tokens: { ann: 'a'.repeat(32) } },
      onNotice: () => {},
    },
  )
  const { port } = await gateway.listen()
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    return [response.status, await response.json()]
  }
  expect(await get('/health')).toEqual([200, { alive: true }])
  const details = { ready: true, store: true, servers: { up: 1, down: 0 }, upstreams: [{ name: 'bank', status: 'up', tools: 3 }] }
  expect(await get('/ready')).toEqual([200, { ready: true }])
  expect(await get('/ready', { authorization: 'Bearer wrong' })).toEqual([200, { ready: true }])
  const authorization = `Bearer ${'a'.repeat(32)}`
  expect(await get('/ready', { authorization })).toMatchObject([200, details])
  expect(await get('/ready', { origin: 'https://evil.example' })).toEqual([200, { ready: true }])
  state.down = true
  await expect.poll(() => get('/ready')).toEqual([503, { ready: false }])
  expect(await get('/ready', { authorization })).toMatchObject([503, { ready: false, store: false }])
  expect((await fetch(`http://127.0.0.1:${port}/ready`, { method: 'POST' })).status).toBe(405)
})

test('at its end calls that are under way may end; what does not in time is told that its outcome is unknown', async () => {
  const bank = upstreamOf()
  const { promise, resolve } = Promise.withResolvers<void>()
  let hanging = 0
  bank.server.tool('quick', {}, () => {
    hanging++
    return promise.then(() => 'done')
  })
  bank.server.tool('slow', {}, () => {
    hanging++
    return new Promise(() => {})
  })
  const gateway = await gatewayBefore({ bank }, { drain: 300 })
  const { url } = await gateway.listen()
  const client = await connect(url)
  onTestFinished(() => client.close())
  const [quick, slow] = [client.callTool('quick'), client.callTool('slow')]
  await expect.poll(() => hanging).toBe(2)
  const closing = gateway.close()
  await sleep(50)
  resolve()
  expect((await quick).text).toBe('done')
  expect(await slow).toMatchObject({ isError: true, text: expect.stringContaining('disconnected during the call') })
  await closing
})

test('at its end nobody waits for calls that were given up, which a server may still ask about', async () => {
  const bank = upstreamOf()
  const began = Promise.withResolvers<void>()
  bank.server.tool('slow', {}, () => {
    began.resolve()
    return new Promise(() => {})
  })
  const clock = fakeClock()
  const gateway = await gatewayBefore({ bank }, { clock })
  const { url } = await gateway.listen()
  const client = await connect(url)
  const call = new AbortController()
  const slow = client.callTool('slow', {}, { signal: call.signal })
  await began.promise
  call.abort()
  await expect(slow).rejects.toThrow()
  await client.close()
  let closed = false
  const closing = gateway.close().then(() => {
    closed = true
  })
  // Questions of such calls are waited for 5 s, and so long the gateway would wait for its calls to end.
  for (let passedMs = 0; !closed && passedMs < 4_900; passedMs++) {
    clock.advance(1)
    await sleep(1)
  }
  expect(closed).toBe(true)
  await closing
})
