import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import {
  discovery,
  hello,
  modernServer,
  Refusal,
  ScriptedServer,
  sessionServer,
  silence,
} from '../../test/client/scripted-server.ts'
import { afterTest, cleanUp, json, serve } from '../../test/transports/http-test-server.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import { version } from '../revisions/revision.ts'
import { createServer } from '../server/index.ts'
import { fakeClock } from '../testing/clock.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

describe('connect', () => {
  it('names this package and its version, unless it is told another name', async () => {
    const server = sessionServer()
    await using _ = await connect(server.connection)
    expect(server.params('initialize')[0]?.['clientInfo']).toEqual({ name: 'vivarium', version })
    const other = modernServer()
    await using __ = await connect(other.connection, { info: { name: 'mine', version: '9', title: 'Mine' } })
    expect(other.heard[0]).toMatchObject({
      params: { _meta: { 'io.modelcontextprotocol/clientInfo': { name: 'mine', version: '9', title: 'Mine' } } },
    })
  })

  it.each([['ftp://example.com'], ['not a url'], [new URL('file:///x')]])(
    'refuses %s, which no carrier leads to',
    async target => {
      await expect(connect(target)).rejects.toBeInstanceOf(TypeError)
    },
  )

  it.each([
    ['./server.js', "Pass { command: 'node', args: ['./server.js'] } to start a program"],
    ['server.py', "{ command: 'python3', args: ['server.py'] }"],
    ['npx my-server --all', "{ command: 'npx', args: ['my-server', '--all'] }"],
    ['my-server', "{ command: 'my-server' }"],
    ['localhost:3000/mcp', 'Write the full URL: http://localhost:3000/mcp'],
    ['ftp://example.com', 'Pass { command, args } to start a program, or a full URL such as http://'],
  ])('says of %s what to give instead', async (target, fix) => {
    await expect(connect(target)).rejects.toThrow(fix)
  })

  it('refuses an object that is nothing to connect to', async () => {
    await expect(connect({ url: 'http://127.0.0.1' } as never)).rejects.toThrow('a URL, a { command, args } or a connection')
  })

  it.each([
    ['http', undefined],
    ['http', fetch],
    ['ws', undefined],
  ])('over %s says where nothing listens, and what to do', async (protocol, own) => {
    const server = await serve(() => {})
    await server.close()
    const host = new URL(server.url).host
    const error = await connect(`${protocol}://${host}/mcp`, own === undefined ? {} : { fetch: own }).catch(thrown => thrown)
    expect(error).toMatchObject({
      kind: 'refused',
      message: `No server listens on ${protocol}://${host} (ECONNREFUSED); start the server, or correct host and port of the address`,
    })
  })

  it('says which host cannot be found', async () => {
    await expect(connect('http://no-such-host.invalid/mcp')).rejects.toThrow('The host no-such-host.invalid cannot be resolved')
  })

  it('refuses to speak nothing, or what there is not', async () => {
    await expect(connect(modernServer().connection, { revisions: [] })).rejects.toThrow('is an empty list')
    await expect(connect(modernServer().connection, { revisions: ['1999-01-01' as never] })).rejects.toThrow(
      'Revision "1999-01-01" does not exist',
    )
  })

  it('sends its headers with every HTTP request, and makes them by another fetch where one is given', async () => {
    const server = await serve(({ id }, response) => json(response, 200, { jsonrpc: '2.0', id, result: discovery() }))
    await using _ = await connect(server.url, { headers: { authorization: 'Bearer t' } })
    expect(server.seen[0]?.headers).toMatchObject({ authorization: 'Bearer t' })
    const urls: string[] = []
    const own: typeof fetch = (input, init) => {
      urls.push(String(input instanceof Request ? input.url : input))
      return fetch(input, init)
    }
    await using __ = await connect(server.url, { fetch: own })
    expect(urls).toEqual([server.url])
  })

  it('opens a WebSocket too', async () => {
    const server = createServer({ name: 's', version: '1' })
    afterTest(() => server.close())
    const { port } = await server.listen({ wsPath: '/ws', closeMs: 100 })
    await using mcp = await connect(`ws://127.0.0.1:${port}/ws`)
    expect([mcp.revision, mcp.server?.name]).toEqual(['2026-07-28', 's'])
  })

  it.each([
    ['refuses it', (response: http.ServerResponse) => void response.writeHead(403).end()],
    ['does not know it', (response: http.ServerResponse) => void response.writeHead(200).end()],
  ])('takes a server that answers a WebSocket with HTTP and %s for no evidence of its era', async (_, answer) => {
    let count = 0
    const server = http.createServer((__, response) => {
      count++
      answer(response)
    })
    server.on('upgrade', (__, socket) => {
      count++
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    afterTest(() => void server.close())
    await expect(connect(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)).rejects.toMatchObject({
      name: 'ConnectionError',
    })
    expect(count).toBe(1)
  })

  it('fails with what made its connection fail', async () => {
    const connection: Connection = {
      carrier: 'stdio',
      start: () => Promise.reject(new Error('no cable')),
      send: () => Promise.reject(new Error('no cable')),
      close: async () => {},
    }
    await expect(connect(connection)).rejects.toThrow('no cable')
  })
})

describe('connect that fails', () => {
  const unspoken = () => hello({}, '1999-01-01')
  const refuse = (): never => {
    throw new Refusal(-32000)
  }

  it.each([
    ['because initialize is refused', { initialize: refuse }],
    ['because the version is not spoken', { initialize: unspoken }],
    ['because nothing is shared', { 'server/discover': () => discovery({}, ['1999-01-01']) }],
    ['because the answer is none', { initialize: () => null }],
  ])('%s, closes its connection', async (_, script) => {
    const server = new ScriptedServer(script)
    await expect(connect(server.connection)).rejects.toThrow()
    expect(server.closed).toBe(true)
  })

  it('by its deadline, closes its connection', async () => {
    const clock = fakeClock()
    const server = new ScriptedServer({ initialize: () => silence })
    const attempt = connect(server.connection, { clock, revisions: ['2025-11-25'] }).catch(error => error)
    await server.saw('initialize')
    clock.advance(61_000)
    expect(await attempt).toMatchObject({ kind: 'timeout' })
    expect(server.closed).toBe(true)
  })

  it.each(['server/discover', 'initialize'])('by its signal at %s, closes its connection', async method => {
    const server = new ScriptedServer({
      'server/discover': method === 'initialize' ? refuse : () => silence,
      initialize: () => silence,
    })
    const stop = new AbortController()
    const attempt = connect(server.connection, { signal: stop.signal }).catch(error => error)
    await server.saw(method)
    stop.abort(new Error('enough'))
    expect(await attempt).toMatchObject({ message: 'enough' })
    expect(server.closed).toBe(true)
    expect(server.of('notifications/cancelled')).toEqual([])
  })

  it('before it began, does not touch its connection', async () => {
    const server = modernServer()
    await expect(connect(server.connection, { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before')
    expect(server.heard).toEqual([])
  })
})

describe('the signal of connect', () => {
  it('has no say once the client is there', async () => {
    const stop = new AbortController()
    const server = sessionServer({ ping: () => ({}) })
    await using mcp = await connect(server.connection, { signal: stop.signal })
    stop.abort()
    await mcp.ping()
  })
})

describe('what a client is told of its server', () => {
  it('may be nonsense: then it is told nothing', async () => {
    const nonsense = { ...hello(), capabilities: 'all', serverInfo: 7, instructions: { a: 1 } }
    await using mcp = await connect(new ScriptedServer({ initialize: () => nonsense }).connection)
    expect([mcp.capabilities, mcp.server, mcp.instructions]).toEqual([{}, undefined, undefined])
    const modern = { ...discovery(), capabilities: null, instructions: 7, _meta: { 'io.modelcontextprotocol/serverInfo': 'me' } }
    await using other = await connect(new ScriptedServer({ 'server/discover': () => modern }).connection)
    expect([other.capabilities, other.server, other.instructions]).toEqual([{}, undefined, undefined])
  })
})
