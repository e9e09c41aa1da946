import { once } from 'node:events'
import { connect, type Socket as NetSocket } from 'node:net'
import { setImmediate as nextRound } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type ClientOptions, WebSocket } from 'ws'
import { hear } from '../../../test/transports/contract.ts'
import { type TestServer, testServer } from '../../../test/transports/websocket-server.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { fakeClock } from '../../testing/clock.ts'
import type { WebSocketServerOptions } from './server.ts'

const servers: TestServer[] = []
const clients: WebSocket[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) client.terminate()
  for (const server of servers.splice(0)) await server.close()
})

async function listen(options?: WebSocketServerOptions): Promise<TestServer> {
  const server = await testServer(options)
  servers.push(server)
  return server
}

/** A client that is not ours. */
function dial(server: TestServer, protocols: string[] = ['mcp'], options: ClientOptions = {}): WebSocket {
  const client = new WebSocket(server.url, protocols, options)
  client.on('error', () => {})
  clients.push(client)
  return client
}

async function open(
  options?: WebSocketServerOptions,
  client: ClientOptions = {},
): Promise<{ connection: Connection; client: WebSocket }> {
  const server = await listen(options)
  const socket = dial(server, ['mcp'], client)
  const [connection] = await Promise.all([server.accepted(), once(socket, 'open')])
  return { connection, client: socket }
}

/** Status and body with which the handshake is refused. */
async function refusal(client: WebSocket): Promise<{ status: number | undefined; message: string; headers: object }> {
  const [, response] = await once(client, 'unexpected-response')
  const body = Buffer.concat(await response.toArray()).toString()
  return { status: response.statusCode, message: JSON.parse(body).error.message, headers: response.headers }
}

const isClosed = ({ closes }: { closes: unknown[] }) => closes.length > 0

describe('webSocketUpgrade: letting in', () => {
  it('refuses before the upgrade whom the guard refuses, with its status, headers and reason', async () => {
    const guard = () => ({ status: 401, message: 'Origin is missing', headers: { 'www-authenticate': 'Bearer' } })
    const answer = await refusal(dial(await listen({ guard })))
    expect(answer).toMatchObject({ status: 401, message: 'Origin is missing', headers: { 'www-authenticate': 'Bearer' } })
  })

  it('knows the caller: headers, principal and socket', async () => {
    const guard = async () => ({ principal: { id: 'ada' } })
    const { connection } = await open({ guard }, { headers: { 'x-tenant': 'one', authorization: 'Bearer t' } })
    const { caller } = connection
    expect(caller).toMatchObject({ carrier: 'websocket', principal: { id: 'ada' } })
    expect(['x-tenant', 'authorization', 'absent'].map(name => caller?.header?.(name))).toEqual(['one', 'Bearer t', undefined])
    expect(caller?.connection).toHaveProperty('remoteAddress', '127.0.0.1')
  })

  it('answers 500 to the caller, and lives on, when the guard fails', async () => {
    const server = await listen({ guard: () => Promise.reject(new Error('secret detail')) })
    const { status, message } = await refusal(dial(server))
    expect([status, message]).toEqual([
      500,
      'Internal server error while the connection was checked; the log of the server has the cause',
    ])
  })

  it('answers 503 when the guard does not make up its mind', async () => {
    const clock = fakeClock()
    const server = await listen({ guard: () => new Promise(() => {}), clock })
    let status: number | undefined
    const refused = refusal(dial(server)).then(answer => (status = answer.status))
    while (status === undefined) {
      clock.advance(10_000)
      await nextRound()
    }
    expect(await refused).toBe(503)
  })

  it('takes the subprotocol mcp, or none, and refuses others (S3 ruling: mcp or none)', async () => {
    const server = await listen()
    const named = dial(server, ['other', 'mcp'])
    const unnamed = dial(server, [])
    await Promise.all([once(named, 'open'), once(unnamed, 'open')])
    expect([named.protocol, unnamed.protocol]).toEqual(['mcp', ''])
    const { status, message } = await refusal(dial(server, ['other']))
    expect([status, message]).toEqual([400, expect.stringContaining('Offer mcp')])
  })

  it('does not agree to compression', async () => {
    const { client } = await open({}, { perMessageDeflate: true })
    expect(client.extensions).toBe('')
  })
})

describe('webSocketUpgrade: what comes in', () => {
  it('keeps what comes before it is started', async () => {
    const { connection, client } = await open()
    client.send('{"n":1}')
    const heard = await hear(connection)
    await heard.until(({ frames }) => frames.length === 1)
    expect(heard.frames).toEqual(['{"n":1}'])
  })

  it('refuses a binary message and goes on', async () => {
    const { connection, client } = await open()
    const heard = await hear(connection)
    client.send(Buffer.from('{"n":1}'))
    client.send('{"n":2}')
    await heard.until(({ frames }) => frames.length === 1)
    expect(heard.faults.map(({ kind }) => kind)).toEqual(['not-text'])
    expect(heard.frames).toEqual(['{"n":2}'])
  })

  it('joins the fragments of a message', async () => {
    const { connection, client } = await open()
    const heard = await hear(connection)
    client.send('{"te', { fin: false })
    client.send('xt":1}')
    await heard.until(({ frames }) => frames.length === 1)
    expect(heard.frames).toEqual(['{"text":1}'])
  })

  it('ends with code 1009 after a message that is too long, and says so', async () => {
    const { connection, client } = await open({ limits: { frameBytes: 100 } })
    const heard = await hear(connection)
    client.send('x'.repeat(101))
    const [code] = await once(client, 'close')
    await heard.until(isClosed)
    expect(code).toBe(1009)
    expect(heard.closes).toMatchObject([{ kind: 'too-large', message: expect.stringContaining('100 bytes (frameBytes)') }])
  })

  it('ends with code 1007 after a text message that is not UTF-8, and says so', async () => {
    const { connection, client } = await open()
    const heard = await hear(connection)
    client.send(Buffer.of(0xff), { binary: false })
    const [code] = await once(client, 'close')
    await heard.until(isClosed)
    expect(code).toBe(1007)
    expect(heard.closes).toMatchObject([{ kind: 'protocol' }])
    expect(heard.frames).toEqual([])
  })

  it('an orderly farewell is no failure, a broken connection is', async () => {
    const [orderly, broken] = [await open(), await open()]
    const heard = await Promise.all([hear(orderly.connection), hear(broken.connection)])
    orderly.client.close(1001, 'going away')
    broken.client.terminate()
    await Promise.all(heard.map(end => end.until(isClosed)))
    expect(heard.map(end => end.closes)).toMatchObject([[undefined], [{ kind: 'lost' }]])
  })
})

describe('webSocketUpgrade: slow and dead clients', () => {
  it('cuts a client that reads too slowly', async () => {
    const clock = fakeClock()
    const { connection, client } = await open({ clock })
    const heard = await hear(connection)
    client.pause()
    for (let at = 0; at < 60; at++) void connection.send('x'.repeat(1024 * 1024))
    while (heard.closes.length === 0) {
      clock.advance(10_000)
      await nextRound()
    }
    expect(heard.closes).toMatchObject([{ kind: 'lost', message: expect.stringContaining('reads too slowly') }])
  })

  it('takes nothing more in while a client does not read, and goes on when it does', async () => {
    const { connection, client } = await open({ pingMs: 0 })
    const answer = JSON.stringify('y'.repeat(100_000))
    const heard = await hear(connection, () => void connection.send(answer))
    client.pause()
    const count = 400
    for (let at = 0; at < count; at++) client.send('{"ask":1}')
    let before = -1
    while (heard.frames.length > before) {
      before = heard.frames.length
      for (let round = 0; round < 50; round++) await nextRound()
    }
    expect(before).toBeLessThan(count)
    client.resume()
    let answers = 0
    client.on('message', () => answers++)
    while (answers < count) await once(client, 'message')
    expect(heard.frames).toHaveLength(count)
  })

  it('answers pings, but does not pile up answers for a client that reads none (RFC 6455 §5.5.3)', async () => {
    const server = await listen()
    const { port } = new URL(server.url)
    const raw = connect(Number(port), '127.0.0.1')
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    raw.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`)
    const [connection] = await Promise.all([server.accepted(), once(raw, 'data')])
    await hear(connection)
    const stream = connection.caller?.connection as NetSocket
    const ping = (text: string) => Buffer.concat([Buffer.from([0x89, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])
    const pong = once(raw, 'data')
    raw.write(ping('first'))
    expect(String((await pong)[0]).slice(2)).toBe('first')
    raw.pause()
    const flood = Buffer.concat(Array.from({ length: 1_000 }, () => ping('x'.repeat(125))))
    for (let at = 0; at < 100; at++) await new Promise<void>(done => raw.write(flood, () => done()))
    expect(stream.writableLength).toBeLessThan(2 * stream.writableHighWaterMark)
    let heard = ''
    raw.on('data', data => {
      heard = (heard + data.toString('latin1')).slice(-10)
    })
    raw.resume()
    raw.write(ping('last'))
    while (!heard.endsWith('last')) await once(raw, 'data')
    raw.destroy()
  })

  it('gives up a client that does not answer a ping', async () => {
    const clock = fakeClock()
    const { connection, client } = await open({ clock }, { autoPong: false })
    const heard = await hear(connection)
    clock.advance(30_000)
    await once(client, 'ping')
    expect(heard.closes).toEqual([])
    clock.advance(30_000)
    await heard.until(isClosed)
    expect(heard.closes).toMatchObject([{ kind: 'lost', message: expect.stringContaining('did not answer a ping') }])
  })

  it('keeps a client that answers', async () => {
    const clock = fakeClock()
    const { connection } = await open({ clock })
    const heard = await hear(connection)
    for (let round = 0; round < 3; round++) {
      const pong = once(connection.caller?.connection as NetSocket, 'data')
      clock.advance(30_000)
      await pong
    }
    expect(heard.closes).toEqual([])
    await connection.close()
  })

  it('does not ping when told not to', async () => {
    const clock = fakeClock()
    const timers = vi.spyOn(clock, 'setTimeout')
    await hear((await open({ clock, pingMs: 0 })).connection)
    expect(timers).not.toHaveBeenCalled()
  })

  it('closes in time though the client never says goodbye', async () => {
    const { connection, client } = await open({ lingerMs: 20 })
    const heard = await hear(connection)
    client.pause()
    await connection.close()
    expect(heard.closes).toEqual([undefined])
  })
})
