import { afterEach, describe, expect, it } from 'vitest'
import {
  discovery,
  hello,
  modernServer,
  type ScriptedServer,
  said,
  sessionServer,
  silence,
} from '../../test/client/scripted-server.ts'
import { sessionServer as httpSessionServer } from '../../test/client/session-server.ts'
import { afterTest, cleanUp, json, serve } from '../../test/transports/http-test-server.ts'
import { createServer } from '../server/index.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

const enough = new Error('enough')

/** Everything that a caller may wait for. */
const waits: readonly (readonly [string, string, (mcp: Client, signal: AbortSignal) => Promise<unknown>])[] = [
  ['callTool', 'tools/call', (mcp, signal) => mcp.callTool('t', {}, { signal })],
  ['tools', 'tools/list', (mcp, signal) => mcp.tools({ signal }).next()],
  ['resources', 'resources/list', (mcp, signal) => mcp.resources({ signal }).next()],
  ['resourceTemplates', 'resources/templates/list', (mcp, signal) => mcp.resourceTemplates({ signal }).next()],
  ['prompts', 'prompts/list', (mcp, signal) => mcp.prompts({ signal }).next()],
  ['readResource', 'resources/read', (mcp, signal) => mcp.readResource('x:1', { signal })],
  ['getPrompt', 'prompts/get', (mcp, signal) => mcp.getPrompt('p', {}, { signal })],
  ['complete', 'completion/complete', (mcp, signal) => mcp.complete({ prompt: 'p' }, { name: 'a', value: '' }, { signal })],
]
const older: typeof waits = [
  ['ping', 'ping', (mcp, signal) => mcp.ping({ signal })],
  ['setLogLevel', 'logging/setLevel', (mcp, signal) => mcp.setLogLevel('info', { signal })],
]

const mute = Object.fromEntries([...waits, ...older].map(([, method]) => [method, () => silence]))

async function giveUp(server: ScriptedServer, method: string, wait: (mcp: Client, signal: AbortSignal) => Promise<unknown>) {
  const mcp = await connect(server.connection)
  afterTest(() => mcp.close())
  const stop = new AbortController()
  const waiting = wait(mcp, stop.signal).catch(error => error)
  const { id } = await server.saw(method)
  stop.abort(enough)
  expect(await waiting).toBe(enough)
  return { mcp, id }
}

describe('giving up by a signal', () => {
  it.each([...waits, ...older])(
    '%s ends at once with its reason, and the server is told (legacy, on a pipe)',
    async (_, method, wait) => {
      const server = sessionServer(mute)
      const { id } = await giveUp(server, method, wait)
      expect((await server.saw('notifications/cancelled'))['params']).toMatchObject({ requestId: id })
    },
  )

  it.each(waits)('%s ends at once with its reason, and the server is told (modern, on a pipe)', async (_, method, wait) => {
    const server = modernServer(mute)
    const { id } = await giveUp(server, method, wait)
    expect((await server.saw('notifications/cancelled'))['params']).toMatchObject({ requestId: id })
  })

  it.each([...waits, ...older])('%s with a signal that was aborted before sends nothing', async (_, method, wait) => {
    const server = sessionServer(mute)
    const mcp = await connect(server.connection)
    afterTest(() => mcp.close())
    await expect(wait(mcp, AbortSignal.abort(enough))).rejects.toBe(enough)
    server.send({ id: 'x', method: 'ping' })
    await server.until(() => server.heard.find(({ id }) => id === 'x'))
    expect(server.of(method)).toEqual([])
    expect(server.of('notifications/cancelled')).toEqual([])
  })

  it('after the answer changes nothing', async () => {
    const server = sessionServer({ 'tools/call': () => said('ok') })
    const mcp = await connect(server.connection)
    afterTest(() => mcp.close())
    const stop = new AbortController()
    expect((await mcp.callTool('t', {}, { signal: stop.signal })).text).toBe('ok')
    stop.abort(enough)
    await mcp.callTool('t')
    expect(server.of('notifications/cancelled')).toEqual([])
  })

  it('ends the reading of changes quietly', async () => {
    for (const server of [
      sessionServer({ 'resources/subscribe': () => ({}), 'resources/unsubscribe': () => ({}) }),
      modernServer({ 'subscriptions/listen': () => silence }),
    ]) {
      const mcp = await connect(server.connection)
      afterTest(() => mcp.close())
      const stop = new AbortController()
      const waiting = [
        mcp.changes('tools', { signal: stop.signal }).next(),
        mcp.resourceUpdates('x:1', { signal: stop.signal }).next(),
      ]
      stop.abort(enough)
      expect(await Promise.all(waiting)).toEqual([
        { done: true, value: undefined },
        { done: true, value: undefined },
      ])
      expect(await mcp.changes('tools', { signal: stop.signal }).next()).toEqual({ done: true, value: undefined })
    }
  })
})

describe('giving up over HTTP', () => {
  it('with a session is a message, and the exchange is let go (rev D: hanging up alone is no cancel)', async () => {
    const server = await httpSessionServer({ 'tools/call': () => undefined })
    const mcp = await connect(server.url, { revisions: ['2025-11-25'] })
    afterTest(() => mcp.close())
    const stop = new AbortController()
    const call = mcp.callTool('t', {}, { signal: stop.signal }).catch(error => error)
    await expect.poll(() => server.of('tools/call').length).toBe(1)
    const [sent] = server.of('tools/call')
    stop.abort(enough)
    expect(await call).toBe(enough)
    await expect
      .poll(() => server.of('notifications/cancelled').map(({ params }) => params['requestId']))
      .toEqual([sent?.seen.id])
    await expect.poll(() => sent?.seen.socket.destroyed).toBe(true)
  })

  it('on the stateless wire is hanging up, and nothing else (trap 12)', async () => {
    const server = await serve(({ id, body }, response) => {
      if (body.includes('server/discover')) json(response, 200, { jsonrpc: '2.0', id, result: discovery() })
    })
    const mcp = await connect(server.url)
    afterTest(() => mcp.close())
    const stop = new AbortController()
    const call = mcp.callTool('t', {}, { signal: stop.signal }).catch(error => error)
    await server.saw(2)
    stop.abort(enough)
    expect(await call).toBe(enough)
    await expect.poll(() => server.seen[1]?.socket.destroyed).toBe(true)
    expect(server.seen).toHaveLength(2)
  })
})

describe('a call that is given up', () => {
  /** Waits until it is stopped, and tells. */
  function slowServer() {
    const started = Promise.withResolvers<void>()
    const stopped = Promise.withResolvers<string>()
    const server = createServer({ name: 's', version: '1' })
    server.tool('slow', { description: 'Waits' }, (_, { signal, revision }) => {
      signal.addEventListener('abort', () => stopped.resolve(revision))
      started.resolve()
      return new Promise<string>(() => {})
    })
    afterTest(() => server.close())
    return { server, started, stopped }
  }

  it.each([
    ['http', '2025-11-25'],
    ['http', '2026-07-28'],
    ['sse', '2024-11-05'],
    ['websocket', '2025-11-25'],
    ['websocket', '2026-07-28'],
  ] as const)('over %s at %s is stopped on the server', async (carrier, revision) => {
    const { server, started, stopped } = slowServer()
    const { port } = await server.listen({ ssePath: '/sse', wsPath: '/ws', closeMs: 100 })
    const url = {
      http: `http://127.0.0.1:${port}/mcp`,
      sse: `http://127.0.0.1:${port}/sse`,
      websocket: `ws://127.0.0.1:${port}/ws`,
    }
    const mcp = await connect(url[carrier], { revisions: [revision] })
    afterTest(() => mcp.close())
    const stop = new AbortController()
    const call = mcp.callTool('slow', {}, { signal: stop.signal }).catch(error => error)
    await started.promise
    stop.abort(enough)
    expect(await call).toBe(enough)
    expect(await stopped.promise).toBe(revision)
  })
})

describe('closing while a call is under way', () => {
  it('fails the call and leaves the client closed', async () => {
    const server = sessionServer({ initialize: () => hello(), 'tools/call': () => silence })
    const mcp = await connect(server.connection)
    const call = mcp.callTool('t').catch(error => error)
    await server.saw('tools/call')
    await mcp.close()
    expect(await call).toMatchObject({ name: 'ConnectionError' })
    await expect(mcp.ping()).rejects.toMatchObject({ name: 'ConnectionError' })
  })
})
