import { describe, expect, it } from 'vitest'
import { hear } from '../../../test/transports/contract.ts'
import { ask, jsonHeaders, rawSocket, serve, signal } from '../../../test/transports/scripted-acceptor.ts'
import { type Connection, ConnectionError } from '../../jsonrpc/connection.ts'
import type { ListenOptions } from '../http/listening.ts'

const message = '{"jsonrpc":"2.0","id":1,"method":"x"}'
const opening = (extra = '') => `GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n${extra}\r\n`

/** A server with the pair at /sse, one client that has opened it, and the connection that came of it. */
async function connected(options: ListenOptions = {}, extra = '') {
  const accepted = signal<Connection>()
  const { port, close } = await serve({ accept: connection => accepted.give(connection) }, { ssePath: '/sse', ...options })
  const client = await rawSocket(port)
  client.write(opening(extra))
  const connection = await accepted.came
  const address = async () => /event: endpoint\ndata: (\S+)/.exec(await client.until(/data: \S+\n\n/))?.[1] ?? ''
  return { port, close, client, connection, address }
}

describe('the HTTP+SSE pair of 2024-11-05', () => {
  it('names a relative address as its first event, once somebody listens (rev A §1.2)', async () => {
    const { client, connection, address } = await connected()
    await client.until('text/event-stream')
    await connection.start({ frame: () => undefined, fault: () => undefined, closed: () => undefined })
    expect(await address()).toMatch(/^\/sse\/message\?session=[0-9a-f]{48}$/)
    expect(client.text.indexOf('event: endpoint')).toBe(client.text.indexOf('event:'))
  })

  it('feeds the connection with what is posted there, and answers 202', async () => {
    const { port, connection, address } = await connected()
    const heard = await hear(connection)
    expect(await ask(port, { path: await address(), body: message })).toMatchObject({ status: 202, text: '' })
    expect(heard.frames).toEqual([message])
  })

  it('sends frames as message events', async () => {
    const { client, connection } = await connected()
    await hear(connection)
    await connection.send('{"a":1}')
    expect(await client.until('{"a":1}')).toContain('event: message\ndata: {"a":1}\n\n')
  })

  it('gives the connection the facts of the caller that opened it', async () => {
    const { connection } = await connected({ identify: header => ({ id: header('x-who') ?? '' }) }, 'X-Who: ann\r\n')
    expect(connection.carrier).toBe('sse')
    expect(connection.caller).toMatchObject({ carrier: 'sse', principal: { id: 'ann' } })
    expect(connection.caller?.header?.('x-who')).toBe('ann')
  })

  it('each client has an address of its own', async () => {
    const addresses = new Set<string>()
    for (let at = 0; at < 3; at++) {
      const { connection, address } = await connected()
      await hear(connection)
      addresses.add(await address())
    }
    expect(addresses.size).toBe(3)
  })

  it('a post to an unknown address, or to one that is gone, is answered 404', async () => {
    const { port, client, connection, address } = await connected()
    const heard = await hear(connection)
    const path = await address()
    for (const foreign of ['/sse/message', '/sse/message?session=', '/sse/message?session=constructor']) {
      expect((await ask(port, { path: foreign, body: message })).status).toBe(404)
    }
    client.socket.destroy()
    await heard.until(({ closes }) => closes.length > 0)
    expect((await ask(port, { path, body: message })).status).toBe(404)
    expect(heard.frames).toEqual([])
  })

  it("another principal's post is answered like one to an unknown address", async () => {
    const { port, connection, address } = await connected(
      { identify: header => ({ id: header('x-who') ?? '' }) },
      'X-Who: ann\r\n',
    )
    const heard = await hear(connection)
    const path = await address()
    const statuses = ['bob', 'ann'].map(
      async who => (await ask(port, { path, body: message, headers: { ...jsonHeaders, 'x-who': who } })).status,
    )
    expect(await Promise.all(statuses)).toEqual([404, 202])
    expect(heard.frames).toHaveLength(1)
  })

  it('holds posts to the same rules as Streamable HTTP', async () => {
    const { port, connection, address } = await connected({ limits: { frameBytes: 100 } })
    const heard = await hear(connection)
    const path = await address()
    const status = async (question: Parameters<typeof ask>[1]) => (await ask(port, { path, body: message, ...question })).status
    expect(await status({ body: 'x'.repeat(101) })).toBe(413)
    expect(await status({ body: new Uint8Array([0xff]) })).toBe(400)
    expect(await status({ headers: { 'content-type': 'text/plain' } })).toBe(415)
    expect(await status({ headers: { ...jsonHeaders, origin: 'https://evil.com' } })).toBe(403)
    expect(await status({ headers: { ...jsonHeaders, host: 'evil.com' } })).toBe(403)
    expect(heard.frames).toEqual([])
  })

  it('answers 405 with Allow to what an address is not for: a POST to /sse sends new clients to its GET', async () => {
    const { port } = await connected()
    const [post, get, drop] = await Promise.all([
      ask(port, { path: '/sse', body: message }),
      ask(port, { path: '/sse/message', method: 'GET', headers: {} }),
      ask(port, { path: '/sse', method: 'DELETE', headers: {} }),
    ])
    expect([post.status, post.headers.allow]).toEqual([405, 'GET'])
    expect([get.status, get.headers.allow]).toEqual([405, 'POST'])
    expect(drop.status).toBe(405)
  })

  it('counts its streams with all others', async () => {
    const { port } = await connected({ limits: { streams: 1 } })
    const refused = await ask(port, { path: '/sse', method: 'GET', headers: { accept: 'text/event-stream' } })
    expect(refused.status).toBe(503)
  })

  it('tells once that the client is gone, and refuses frames then', async () => {
    const { client, connection } = await connected()
    const heard = await hear(connection)
    client.socket.resetAndDestroy()
    await heard.until(({ closes }) => closes.length > 0)
    await expect(connection.send('{}')).rejects.toBeInstanceOf(ConnectionError)
    await connection.close()
    expect(heard.closes).toEqual([undefined])
  })

  it('closed by the server, sends what it had taken, ends the stream and says so once', async () => {
    const { client, connection } = await connected()
    const heard = await hear(connection)
    for (let at = 0; at < 3; at++) void connection.send(`{"n":${at}}`)
    await connection.close()
    await connection.close()
    await client.until('{"n":2}')
    await client.until('0\r\n\r\n')
    expect(heard.closes).toEqual([undefined])
    await expect(connection.send('{}')).rejects.toBeInstanceOf(ConnectionError)
  })

  it('is not there unless a path is given', async () => {
    const { port } = await serve()
    expect((await ask(port, { path: '/sse', method: 'GET', headers: { accept: 'text/event-stream' } })).status).toBe(404)
  })
})
