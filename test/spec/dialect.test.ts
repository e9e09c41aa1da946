/** The small dialect as a server meets it: how it is told, what it may say, how it ends (§3.1, §3.2). */
import { Agent } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { httpPeer, json, send } from './http.ts'
import { errorOf, everyRevision, type Frame, helloParams, resultOf, speak } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function make(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'dialect', version: '1.0.0', revisions: everyRevision, ...options })
  closers.push(() => server.close())
  server.tool('echo', { description: 'Says it again' }, () => 'here')
  server.tool('steps', {}, (_, ctx) => {
    ctx.progress(1, { total: 2 })
    return 'done'
  })
  server.resource('memo://one', { name: 'one' }, () => 'one')
  return server
}

const dialectHello = { mcpVersion: '2025-06-18', clientCapabilities: { supportsProgress: true, supportsCancellation: true } }
const isDialect = (frame: Frame): boolean => 'serverCapabilities' in resultOf(frame)

describe('told at the first message (§3.2)', () => {
  it.each([
    ['mcpVersion alone', { mcpVersion: '2025-06-18' }],
    ['any mcpVersion', { mcpVersion: 'whatever' }],
    ['clientCapabilities alone', { clientCapabilities: {} }],
    ['a protocolVersion that is no string', { protocolVersion: 7, ...dialectHello }],
  ])('%s is the dialect', async (_name, params) => {
    const wire = await speak(make(), 's3', { hello: false })
    expect(isDialect(await wire.ask('initialize', params))).toBe(true)
  })

  it('both keys: the official wire wins', async () => {
    const wire = await speak(make(), 's3', { hello: false })
    expect(isDialect(await wire.ask('initialize', { ...dialectHello, ...helloParams('2025-06-18') }))).toBe(false)
  })

  it('off unless listed: its handshake is −32602, its methods −32601', async () => {
    const wire = await speak(make({ revisions: ['2025-06-18', '2026-07-28'] }), 's3', { hello: false })
    expect(errorOf(await wire.ask('initialize', dialectHello)).code).toBe(-32602)
    for (const method of ['tools/invoke', 'shutdown']) expect(errorOf(await wire.ask(method, { name: 'echo' })).code).toBe(-32601)
  })

  it('a first tools/invoke without a handshake is served, without state', async () => {
    const wire = await speak(make(), 's3', { hello: false })
    expect(resultOf(await wire.ask('tools/invoke', { name: 'echo' }))).toEqual({ status: 'success', output: 'here' })
  })

  it('pins the connection, and a message of a stateless wire on it is still served as such', async () => {
    const wire = await speak(make(), 's3')
    expect(Array.isArray((await wire.ask('tools/list'))['result'])).toBe(true)
    const { envelope } = await import('./wire.ts')
    expect(resultOf(await wire.ask('tools/list', { _meta: envelope('2026-07-28') }))['resultType']).toBe('complete')
  })
})

describe('what it says and hears', () => {
  it('progress goes to whoever declared it, by the id of the request', async () => {
    const server = make()
    const wire = await speak(server, 's3')
    await wire.ask('tools/invoke', { name: 'steps' }, 'job')
    expect(wire.heard.find(frame => frame['method'] === 'progress')?.['params']).toEqual({ id: 'job', percent: 50 })
    const silent = await speak(server, 's3', { hello: false })
    await silent.ask('initialize', { mcpVersion: '2025-06-18', clientCapabilities: {} })
    await silent.ask('tools/invoke', { name: 'steps' })
    expect(silent.heard.filter(frame => frame['method'] !== undefined)).toEqual([])
  })

  it('official methods it sends are served in the shape of 2025-06-18', async () => {
    const wire = await speak(make(), 's3')
    expect(resultOf(await wire.ask('ping'))).toEqual({})
    expect(resultOf(await wire.ask('resources/read', { uri: 'memo://one' }))).toEqual({
      contents: [{ uri: 'memo://one', text: 'one' }],
    })
    expect(errorOf(await wire.ask('resources/read', { uri: 'memo://two' })).code).toBe(-32002)
  })

  it('tools that come and go are told as differences, once it has listed', async () => {
    const server = make()
    const wire = await speak(server, 's3')
    server.tool('early', {}, () => 'x')
    await wire.quiet()
    await wire.ask('tools/list')
    const late = server.tool('late', { description: 'Late' }, () => 'x')
    const added = await wire.next(frame => frame['method'] === 'tools/changed')
    expect(added['params']).toEqual({ added: [{ name: 'late', description: 'Late' }], removed: [] })
    late.remove()
    expect((await wire.next(frame => frame['method'] === 'tools/changed'))['params']).toEqual({ added: [], removed: ['late'] })
    expect(wire.heard.filter(frame => frame['method'] !== undefined).length).toBe(2)
  })
})

describe('the end (§3.1)', () => {
  it('shutdown is answered null; then everything is −32600 but the goodbye', async () => {
    const wire = await speak(make(), 's3')
    expect(await wire.ask('shutdown', {}, 9)).toEqual({ jsonrpc: '2.0', id: 9, result: null })
    for (const method of ['tools/list', 'tools/invoke', 'ping']) {
      const { code, message } = errorOf(await wire.ask(method, { name: 'echo' }))
      expect([code, message]).toEqual([-32600, expect.stringMatching(/shut ?down|exit/)])
    }
  })

  it('exit closes the connection', async () => {
    const server = make()
    const wire = await speak(server, 's3')
    await wire.ask('shutdown')
    const closed = new Promise<void>(resolve => [...server.engine.connected][0]?.onEnd(resolve))
    wire.tell('exit')
    await closed
    expect(server.engine.connected.size).toBe(0)
  })
})

describe('over HTTP (§3.2)', () => {
  it('gets a session; exit ends it', async () => {
    const server = make()
    const { url } = await server.listen()
    const peer = await httpPeer(url, 's3')
    expect(peer.session).toMatch(/^[\x21-\x7e]{32,}$/)
    expect(Array.isArray((await peer.ask('tools/list')).frame) || (await peer.ask('tools/list')).status === 200).toBe(true)
    expect((await peer.tell('exit')).status).toBe(202)
    expect((await peer.ask('tools/list')).status).toBe(404)
  })

  it('a client that never names its session is served message by message', async () => {
    const server = make()
    const { url } = await server.listen()
    await httpPeer(url, 's3')
    const answer = await send(url, { body: { jsonrpc: '2.0', id: 1, method: 'tools/invoke', params: { name: 'echo' } } })
    expect([answer.status, resultOf(answer.frame)]).toEqual([200, { status: 'success', output: 'here' }])
  })

  const oneSocket = (): Agent => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    closers.push(() => agent.destroy())
    return agent
  }
  const plain = (method: string, params?: Frame): { body: Frame } => ({
    body: { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) },
  })
  const dialectShapes: readonly (readonly [string, Frame | undefined, unknown])[] = [
    ['tools/list', undefined, [{ name: 'echo' }, { name: 'steps' }]],
    ['resources/list', undefined, [{ uri: 'memo://one' }]],
    ['tools/call', { name: 'echo' }, { status: 'success', output: 'here' }],
    ['resources/read', { uri: 'memo://one' }, { contents: [{ text: 'one' }] }],
    ['ping', {}, {}],
    ['shutdown', {}, null],
  ]

  it.each([
    ['no other wire with a handshake', ['s3', '2026-07-28'] as const, () => undefined],
    ['its handshake on the same socket', everyRevision, oneSocket],
  ])('without its session it is served everything that needs none, given %s', async (_given, revisions, agentOf) => {
    const { url } = await make({ revisions }).listen({ closeMs: 10 })
    const agent = agentOf()
    const via = agent === undefined ? {} : { agent }
    expect((await send(url, { ...plain('initialize', dialectHello), ...via })).status).toBe(200)
    for (const [method, params, expected] of dialectShapes) {
      const { status, headers, text } = await send(url, { ...plain(method, params), ...via })
      expect([method, status, headers['content-type']]).toEqual([method, 200, 'application/json'])
      const { result } = JSON.parse(text)
      if (expected === null) expect(result).toBeNull()
      else expect(result).toMatchObject(expected as Frame)
    }
    expect((await send(url, { method: 'GET', headers: { accept: 'text/event-stream' }, ...via })).status).toBe(400)
  })

  it('trap 24 holds beside it: on another socket, with a version header, or after an official handshake it is 400', async () => {
    const { url } = await make().listen({ closeMs: 10 })
    const agent = oneSocket()
    await send(url, { ...plain('initialize', dialectHello), agent })
    const list = plain('tools/list', {})
    const versioned = { ...json, 'mcp-protocol-version': '2025-11-25' }
    expect((await send(url, list)).status).toBe(400)
    expect((await send(url, { ...list, headers: versioned, agent })).status).toBe(400)
    expect((await send(url, { ...list, agent })).status).toBe(200)
    await send(url, { ...plain('initialize', helloParams('2025-03-26')), agent })
    expect((await send(url, { ...list, agent })).status).toBe(400)
  })

  it('is not held to a version header', async () => {
    const server = make()
    const { url } = await server.listen()
    const peer = await httpPeer(url, 's3')
    expect((await peer.ask('tools/list', {}, { headers: { 'mcp-protocol-version': 'strange' } })).status).toBe(200)
  })

  it('modern numbers do not reach it: what has no number there is −32603', async () => {
    const server = make({ limits: { sessions: 1 } })
    const { url } = await server.listen()
    await httpPeer(url, 's3')
    const refused = await send(url, { body: { jsonrpc: '2.0', id: 1, method: 'initialize', params: dialectHello } })
    expect([refused.status, errorOf(refused.frame).code]).toEqual([
      503,
      expect.toSatisfy((code: number) => code === -32603 || code === -32000),
    ])
  })
})
