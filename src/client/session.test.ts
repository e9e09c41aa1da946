import type http from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { discovery, said } from '../../test/client/scripted-server.ts'
import { type Posted, type SessionServer, sessionServer } from '../../test/client/session-server.ts'
import { afterTest, cleanUp, json, serve } from '../../test/transports/http-test-server.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

/** Echoes the argument `n`. */
const echo = ({ params }: Posted) => said(String((params['arguments'] as { n: unknown }).n))

async function open(server: SessionServer, options: ConnectOptions = {}): Promise<Client> {
  const mcp = await connect(server.url, { revisions: ['2025-11-25'], ...options })
  afterTest(() => mcp.close())
  return mcp
}

const counts = (server: SessionServer, method: string) => server.of(method).length

describe('a session that the server has forgotten', () => {
  it('is opened anew, without its id, and the call is sent again, once (trap 24)', async () => {
    const server = await sessionServer({ 'tools/call': echo })
    const mcp = await open(server)
    server.sessions.clear()
    expect((await mcp.callTool('echo', { n: 1 })).text).toBe('1')
    const methods = server.posted.slice(2).map(({ method, session }) => [method, session])
    expect(methods).toEqual([
      ['tools/call', 'session-1'],
      ['initialize', undefined],
      ['notifications/initialized', 'session-2'],
      ['tools/call', 'session-2'],
    ])
  })

  it('is opened anew once for many calls, each of which is sent again exactly once', async () => {
    const server = await sessionServer({ 'tools/call': echo })
    const mcp = await open(server)
    server.sessions.clear()
    const numbers = Array.from({ length: 25 }, (_, n) => n)
    const texts = await Promise.all(numbers.map(async n => (await mcp.callTool('echo', { n })).text))
    expect(texts).toEqual(numbers.map(String))
    expect(counts(server, 'initialize')).toBe(2)
    for (const n of numbers) {
      const sent = server.of('tools/call').filter(({ params }) => (params['arguments'] as { n: number }).n === n)
      expect(sent.map(({ session }) => session)).toEqual(['session-1', 'session-2'])
    }
  })

  it('that one call learns of late, when it has been opened anew already, is not opened a third time', async () => {
    const server = await sessionServer({ 'tools/call': echo })
    const mcp = await open(server)
    server.sessions.clear()
    const held = Promise.withResolvers<void>()
    server.beforeRefusal = ({ params }) => ((params['arguments'] as { n: unknown }).n === 'slow' ? held.promise : undefined)
    const slow = mcp.callTool('echo', { n: 'slow' })
    expect((await mcp.callTool('echo', { n: 'quick' })).text).toBe('quick')
    held.resolve()
    expect((await slow).text).toBe('slow')
    expect(counts(server, 'initialize')).toBe(2)
  })

  it('holds back calls that are made while it is opened anew', async () => {
    const gate = Promise.withResolvers<void>()
    const server = await sessionServer({
      'tools/call': echo,
      // The second handshake stands still at its announcement.
      'notifications/initialized': async ({ session }, response) => {
        if (session !== 'session-1') await gate.promise
        response.writeHead(202).end()
      },
    })
    const mcp = await open(server)
    server.sessions.clear()
    const first = mcp.callTool('echo', { n: 1 })
    await expect.poll(() => counts(server, 'notifications/initialized')).toBe(2)
    const second = mcp.callTool('echo', { n: 2 })
    gate.resolve()
    expect((await Promise.all([first, second])).map(({ text }) => text)).toEqual(['1', '2'])
    const sent = server.of('tools/call').map(({ params, session }) => [(params['arguments'] as { n: number }).n, session])
    expect(sent.sort()).toEqual([
      [1, 'session-1'],
      [1, 'session-2'],
      [2, 'session-2'],
    ])
  })

  it('that is forgotten again before the call comes is not chased: the call fails, and the next one tries anew', async () => {
    const server = await sessionServer({ 'tools/call': echo })
    const mcp = await open(server)
    server.sessions.clear()
    server.forgetful = true
    await expect(mcp.callTool('echo', { n: 1 })).rejects.toMatchObject({ kind: 'session' })
    expect(counts(server, 'tools/call')).toBe(2)
    server.forgetful = false
    expect((await mcp.callTool('echo', { n: 2 })).text).toBe('2')
  })

  it('whose re-opening fails fails the call; the next call tries it again', async () => {
    const server = await sessionServer({ 'tools/call': echo })
    const mcp = await open(server)
    server.sessions.clear()
    server.overloaded = true
    await expect(mcp.callTool('echo', { n: 1 })).rejects.toMatchObject({ status: 503 })
    expect(counts(server, 'tools/call')).toBe(1)
    server.overloaded = false
    expect((await mcp.callTool('echo', { n: 2 })).text).toBe('2')
  })

  it('whose re-opening takes long does not hold who gives up', async () => {
    const server = await sessionServer({
      'notifications/initialized': ({ session }, response) => void (session === 'session-1' && response.writeHead(202).end()),
    })
    const mcp = await open(server)
    server.sessions.clear()
    const stop = new AbortController()
    const call = mcp.callTool('echo', { n: 1 }, { signal: stop.signal }).catch(error => error)
    await expect.poll(() => counts(server, 'notifications/initialized')).toBe(2)
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
  })
})

describe('a task whose session was forgotten', () => {
  it('is looked after in the new one', async () => {
    const now = '2026-01-01T00:00:00Z'
    const task = (status: string) => ({ taskId: 't', status, createdAt: now, lastUpdatedAt: now, ttl: 60_000, pollInterval: 50 })
    const server = await sessionServer(
      {
        'tools/list': () => ({
          tools: [{ name: 'work', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }],
        }),
        'tools/call': () => {
          server.sessions.clear()
          return { task: task('working') }
        },
        'tasks/get': () => task('completed'),
        'tasks/result': () => said('done'),
      },
      { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    )
    const mcp = await open(server)
    for await (const _ of mcp.tools());
    expect((await mcp.callTool('work')).text).toBe('done')
    expect(server.of('tasks/get').map(({ session }) => session)).toEqual(['session-1', 'session-2'])
  })
})

describe('what was set up in a forgotten session', () => {
  it('is set up again: subscriptions, the log level, the stream for what is said unasked', async () => {
    const server = await sessionServer({ 'tools/call': echo }, { logging: {}, resources: { subscribe: true } })
    const mcp = await open(server)
    await mcp.setLogLevel('warning')
    const updates = mcp.resourceUpdates('file:///a')
    const first = updates.next()
    await expect.poll(() => counts(server, 'resources/subscribe')).toBe(1)
    server.sessions.clear()
    await mcp.callTool('echo', { n: 1 })
    await expect.poll(() => server.streams.has('session-2')).toBe(true)
    expect(server.of('resources/subscribe').map(({ params, session }) => [params, session])).toEqual([
      [{ uri: 'file:///a' }, 'session-1'],
      [{ uri: 'file:///a' }, 'session-2'],
    ])
    expect(server.of('logging/setLevel').map(({ params, session }) => [params, session])).toEqual([
      [{ level: 'warning' }, 'session-1'],
      [{ level: 'warning' }, 'session-2'],
    ])
    // What happened in between went unheard, so the reader is told to look.
    expect(await first).toEqual({ done: false, value: 'file:///a' })
    const second = updates.next()
    server.tell('notifications/resources/updated', { uri: 'file:///a' })
    expect(await second).toEqual({ done: false, value: 'file:///a' })
    await updates.return()
  })

  it('is not set up again once nobody wants it any more', async () => {
    const server = await sessionServer({ 'tools/call': echo }, { resources: { subscribe: true } })
    const mcp = await open(server)
    const stop = new AbortController()
    const updates = mcp.resourceUpdates('file:///a', { signal: stop.signal })
    const first = updates.next()
    await expect.poll(() => counts(server, 'resources/subscribe')).toBe(1)
    stop.abort()
    expect(await first).toEqual({ done: true, value: undefined })
    await expect.poll(() => counts(server, 'resources/unsubscribe')).toBe(1)
    server.sessions.clear()
    await mcp.callTool('echo', { n: 1 })
    expect(counts(server, 'resources/subscribe')).toBe(1)
  })

  it('wakes those who follow a list', async () => {
    const server = await sessionServer({ 'tools/call': echo })
    const mcp = await open(server)
    const changed = mcp.changes('tools').next()
    server.sessions.clear()
    await mcp.callTool('echo', { n: 1 })
    expect((await changed).done).toBe(false)
  })
})

describe('nothing else is ever sent twice', () => {
  it.each([
    ['a cut connection', (_: Posted, response: http.ServerResponse) => void response.socket?.destroy()],
    ['500', (_: Posted, response: http.ServerResponse) => void response.writeHead(500).end()],
    [
      '503 with Retry-After',
      (_: Posted, response: http.ServerResponse) => void response.writeHead(503, { 'retry-after': '0' }).end(),
    ],
    ['429', (_: Posted, response: http.ServerResponse) => void response.writeHead(429, { 'retry-after': '0' }).end()],
    ['400', (_: Posted, response: http.ServerResponse) => void response.writeHead(400).end()],
    ['202', (_: Posted, response: http.ServerResponse) => void response.writeHead(202).end()],
    [
      'an answer that breaks off',
      (_: Posted, response: http.ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' }).write('{"jsonrpc"')
        setImmediate(() => response.socket?.destroy())
      },
    ],
    [
      'a stream that ends before the answer',
      (_: Posted, response: http.ServerResponse) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(':\n\n'),
    ],
  ])('not after %s', async (_, answer) => {
    const server = await sessionServer({ 'tools/call': answer })
    const mcp = await open(server)
    await expect(mcp.callTool('once')).rejects.toBeInstanceOf(ConnectionError)
    expect(counts(server, 'tools/call')).toBe(1)
    expect(counts(server, 'initialize')).toBe(1)
  })

  it('not after 404 where there is no session: on a stateless wire it means something else', async () => {
    const server = await serve(({ id, body }, response) => {
      if (body.includes('server/discover')) return json(response, 200, { jsonrpc: '2.0', id, result: discovery() })
      response.writeHead(404).end()
    })
    const mcp = await connect(server.url)
    afterTest(() => mcp.close())
    await expect(mcp.callTool('once')).rejects.toMatchObject({ kind: 'status', status: 404 })
    expect(server.seen).toHaveLength(2)
  })
})

describe('closing', () => {
  it('ends the session with DELETE, what is under way and what is followed', async () => {
    const server = await sessionServer({ 'tools/call': () => undefined })
    const mcp = await open(server)
    const call = mcp.callTool('never').catch(error => error)
    const changed = mcp.changes('tools').next()
    await expect.poll(() => counts(server, 'tools/call')).toBe(1)
    await Promise.all([mcp.close(), mcp.close()])
    expect(await call).toBeInstanceOf(ConnectionError)
    expect(await changed).toEqual({ done: true, value: undefined })
    expect(server.seen.filter(({ method }) => method === 'DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual([
      'session-1',
    ])
    await expect(mcp.callTool('late')).rejects.toBeInstanceOf(ConnectionError)
  })
})
