import type http from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { discovery, hello } from '../../test/client/scripted-server.ts'
import { cleanUp, events, json, type Seen, serve, type TestServer } from '../../test/transports/http-test-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

type React = (method: string, seen: Seen, response: http.ServerResponse) => void

/** A server that reacts to each POST by its method, and to other verbs with 405 unless `other` does. */
function serveBy(react: React, other: React = (_, __, response) => response.writeHead(405).end()): Promise<TestServer> {
  return serve((seen, response) => {
    if (seen.method !== 'POST') return other(seen.method, seen, response)
    react(JSON.parse(seen.body).method, seen, response)
  })
}

const result = (response: http.ServerResponse, { id }: Seen, value: unknown, headers = {}) =>
  json(response, 200, { jsonrpc: '2.0', id, result: value }, headers)
const error = (response: http.ServerResponse, { id }: Seen, status: number, code: number, data?: unknown) =>
  json(response, status, { jsonrpc: '2.0', id, error: { code, message: `code ${code}`, data } })

/** Answers the handshake and takes what follows. */
const older: React = (method, seen, response) => {
  if (method === 'initialize') result(response, seen, hello({}, '2025-06-18'), { 'mcp-session-id': 's-1' })
  else if (method.startsWith('notifications/')) response.writeHead(202).end()
  else response.writeHead(400).end()
}

/** What is learned of a server is remembered by its address, and the system gives ports out again: no two tests share a path. */
let paths = 0
afterEach(() => {
  paths++
})

async function settle(server: TestServer, options: ConnectOptions = {}) {
  const [outcome] = await Promise.allSettled([connect(`${server.origin}/mcp/${paths}`, options)])
  if (outcome.status === 'fulfilled') await outcome.value.close()
  return outcome.status === 'fulfilled' ? outcome.value.revision : outcome.reason
}

const methods = (server: TestServer) => server.seen.map(({ method, body }) => (body === '' ? method : JSON.parse(body).method))

describe('probing over HTTP', () => {
  it('opens a modern server by one discover, with its headers and without a session', async () => {
    const server = await serveBy((_, seen, response) => result(response, seen, discovery(), { 'mcp-session-id': 'ignored' }))
    expect(await settle(server)).toBe('2026-07-28')
    expect(methods(server)).toEqual(['server/discover'])
    expect(server.seen[0]?.headers).toMatchObject({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'server/discover' })
  })

  it('takes 400 with −32022 for modern and asks again in a version that is offered', async () => {
    const server = await serveBy((_, seen, response) => {
      if (seen.headers['mcp-protocol-version'] === 'DRAFT-2026-v1')
        return result(response, seen, discovery({}, ['DRAFT-2026-v1']))
      error(response, seen, 400, -32022, { supported: ['DRAFT-2026-v1'], requested: '2026-07-28' })
    })
    expect(await settle(server, { revisions: ['2026-07-28', 'draft-2026-v1', '2025-11-25'] })).toBe('draft-2026-v1')
    expect(methods(server)).toEqual(['server/discover', 'server/discover'])
  })

  it.each([-32020, -32021])('takes 400 with %i for a modern refusal, and does not shake hands', async code => {
    const server = await serveBy((_, seen, response) => error(response, seen, 400, code))
    expect(await settle(server)).toMatchObject({ code, status: 400 })
    expect(methods(server)).toEqual(['server/discover'])
  })

  it.each([
    ['400 without a body', (response: http.ServerResponse) => response.writeHead(400).end()],
    ['404 with a page', (response: http.ServerResponse) => response.writeHead(404, { 'content-type': 'text/html' }).end('<p>no')],
    ['405', (response: http.ServerResponse) => response.writeHead(405).end()],
    ['406 with a text', (response: http.ServerResponse) => response.writeHead(406).end('Not Acceptable')],
    ['422 with some JSON', (response: http.ServerResponse) => json(response, 422, { detail: 'no' })],
    [
      '400 with −32000 and no id',
      (response: http.ServerResponse) =>
        json(response, 400, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Server not initialized' } }),
    ],
  ])('shakes hands after %s (rev §2.6 HTTP step 2)', async (_, refuse) => {
    const server = await serveBy((method, seen, response) =>
      method === 'server/discover' ? refuse(response) : older(method, seen, response),
    )
    expect(await settle(server)).toBe('2025-06-18')
    expect(methods(server).slice(0, 3)).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
  })

  it.each([
    [200, -32601],
    [404, -32601],
    [400, -32600],
    [400, -32602],
    [200, -32000],
  ])('shakes hands after HTTP %i with error %i', async (status, code) => {
    const server = await serveBy((method, seen, response) => {
      if (method === 'server/discover') return error(response, seen, status, code)
      older(method, seen, response)
    })
    expect(await settle(server)).toBe('2025-06-18')
  })

  it('sends initialize without a version or method header, and what follows with the version and the session (trap 22)', async () => {
    const server = await serveBy(older)
    await settle(server)
    const [, first, second] = server.seen
    expect(first?.headers).not.toHaveProperty('mcp-protocol-version')
    expect(first?.headers).not.toHaveProperty('mcp-method')
    expect(second?.headers).toMatchObject({ 'mcp-protocol-version': '2025-06-18', 'mcp-session-id': 's-1' })
  })

  it.each([401, 403, 407, 408, 429, 500, 502, 503])(
    'takes %i for no evidence: it fails as itself, and nothing more is sent (trap 20)',
    async status => {
      const server = await serveBy((_, __, response) => response.writeHead(status, { 'www-authenticate': 'Bearer' }).end())
      expect(await settle(server)).toMatchObject({ kind: 'status', status })
      expect(methods(server)).toEqual(['server/discover'])
    },
  )

  it('takes an error of the server itself, which happens to be JSON-RPC, for no evidence either', async () => {
    const server = await serveBy((_, seen, response) => error(response, seen, 503, -32603))
    expect(await settle(server)).toMatchObject({ code: -32603, status: 503 })
    expect(methods(server)).toEqual(['server/discover'])
  })

  it('takes a redirect for no evidence, and does not follow it', async () => {
    const server = await serveBy((_, __, response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end())
    expect(await settle(server)).toMatchObject({ kind: 'status', status: 307 })
    expect(methods(server)).toEqual(['server/discover'])
  })

  it('takes a dead network for no evidence', async () => {
    const server = await serveBy(older)
    await server.close()
    expect(await settle(server)).toMatchObject({ kind: 'refused' })
  })

  it('takes a cut connection for no evidence', async () => {
    const server = await serveBy((_, { socket }) => socket.destroy())
    expect(await settle(server)).toMatchObject({ kind: 'lost' })
    expect(methods(server)).toEqual(['server/discover'])
  })

  it('takes silence for no evidence: it ends with the deadline of a call, not with that of a probe', async () => {
    const clock = fakeClock()
    const server = await serveBy(() => {})
    const attempt = settle(server, { clock, probeTimeout: '5s' })
    await server.saw(1)
    clock.advance(30_000)
    clock.advance(31_000)
    expect(await attempt).toMatchObject({ kind: 'timeout' })
    expect(methods(server)).toEqual(['server/discover'])
  })

  it('refuses an older server when only stateless wires are to be spoken', async () => {
    const server = await serveBy(older)
    expect(await settle(server, { revisions: ['2026-07-28'] })).toMatchObject({
      kind: 'version-unsupported',
      cause: { status: 400 },
    })
    expect(methods(server)).toEqual(['server/discover'])
  })

  it('remembers per address what needs a handshake', async () => {
    const server = await serveBy(older)
    await settle(server)
    expect(await settle(server)).toBe('2025-06-18')
    expect(methods(server).filter(method => method === 'server/discover')).toHaveLength(1)
  })

  it('works with a server that refuses the mere announcement of readiness', async () => {
    const server = await serveBy((method, seen, response) => {
      if (method === 'notifications/initialized') return response.writeHead(400).end('no id')
      older(method, seen, response)
    })
    expect(await settle(server)).toBe('2025-06-18')
  })

  it('gives up with the signal, whatever is under way, and leaves no socket', async () => {
    const server = await serveBy((method, seen, response) => {
      if (method !== 'notifications/initialized') older(method, seen, response)
    })
    const stop = new AbortController()
    const attempt = settle(server, { signal: stop.signal })
    await server.saw(3)
    stop.abort(new Error('enough'))
    expect(await attempt).toMatchObject({ message: 'enough' })
    await expect.poll(() => server.seen.every(({ socket }) => socket.destroyed)).toBe(true)
  })
})

describe('probing over HTTP: the old pair', () => {
  /** POST is not allowed at the address itself; GET opens the stream. */
  function pair(status: number): Promise<TestServer> {
    let stream: http.ServerResponse | undefined
    return serve((seen, response) => {
      if (seen.path === '/messages') {
        response.writeHead(202).end()
        const { id, method } = JSON.parse(seen.body)
        if (method === 'initialize')
          stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: hello({}, '2024-11-05') })}\n\n`)
      } else if (seen.method === 'GET') {
        events(response)
        response.write('event: endpoint\ndata: /messages\n\n')
        stream = response
      } else response.writeHead(status).end()
    })
  }

  it.each([400, 404, 405])('is tried when discover and initialize meet %i (rev §2.6 HTTP step 3)', async status => {
    const server = await pair(status)
    expect(await settle(server)).toBe('2024-11-05')
    expect(methods(server)).toEqual(['server/discover', 'initialize', 'GET', 'initialize', 'notifications/initialized'])
  })

  it.each([406, 415])('is not tried after %i', async status => {
    const server = await pair(status)
    expect(await settle(server)).toMatchObject({ status })
    expect(methods(server)).toEqual(['server/discover', 'initialize'])
  })

  it('that is not there either leaves the first answer as the failure, and no socket', async () => {
    const server = await serve((_, response) => response.writeHead(404).end('nothing here'))
    expect(await settle(server)).toMatchObject({ kind: 'status', status: 404, message: expect.stringContaining('nothing here') })
    expect(methods(server)).toEqual(['server/discover', 'initialize', 'GET'])
    await expect.poll(() => server.seen.every(({ socket }) => socket.destroyed)).toBe(true)
  })

  it('whose stream names no endpoint is given up within the time of a call', async () => {
    const server = await serve((seen, response) => {
      if (seen.method === 'GET') events(response)
      else response.writeHead(405).end()
    })
    const stop = new AbortController()
    const attempt = settle(server, { signal: stop.signal })
    await server.saw(3)
    stop.abort(new Error('too long'))
    expect(await attempt).toMatchObject({ message: 'too long' })
    await expect.poll(() => server.seen.every(({ socket }) => socket.destroyed)).toBe(true)
  })
})
