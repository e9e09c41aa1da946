import type http from 'node:http'
import net from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import {
  afterTest,
  cleanUp,
  failure,
  hear,
  json,
  notice,
  request,
  result,
  serve,
} from '../../../test/transports/http-test-server.ts'
import { httpClientConnection } from './client.ts'

afterEach(cleanUp)

const limits = { frameBytes: 256 * 1024, depth: 128, elements: 1000, names: 1000, batch: 10 }
const chunk = 'x'.repeat(16 * 1024)

const wires = [
  ['node:http', {}],
  ['fetch', { fetch: (url: string, init: RequestInit) => fetch(url, init) }],
] as const

/** Writes for as long as somebody reads; resolves with the number of bytes when the reader has cut it. */
function pour(response: http.ServerResponse): Promise<number> {
  let written = 0
  return new Promise(done => {
    response.on('close', () => done(written))
    const more = (): void => {
      while (!response.destroyed) {
        written += chunk.length
        if (!response.write(chunk)) return void response.once('drain', more)
      }
    }
    more()
  })
}

describe.each(wires)('a hostile server against the client over %s', (_name, options) => {
  it.each([
    ['an event that never ends (H1)', 'text/event-stream', 'data: '],
    ['a JSON answer that never ends (H2)', 'application/json', '"'],
  ])('is cut off at the limit when it sends %s', async (_what, type, begin) => {
    const poured = Promise.withResolvers<number>()
    const server = await serve((_seen, response) => {
      response.writeHead(200, { 'content-type': type }).write(begin)
      poured.resolve(pour(response))
    })
    const connection = httpClientConnection(server.url, { ...options, limits })
    const heard = await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('too-large')
    expect(await poured.promise).toBeLessThan(64 * 1024 * 1024)
    expect(heard.frames).toEqual([])
  })

  it('is cut off when a body goes on where none is expected', async () => {
    const poured: Promise<number>[] = []
    const server = await serve((seen, response) => {
      response.writeHead(seen.id === 1 ? 500 : 202, { 'content-type': 'text/plain' })
      poured.push(pour(response))
    })
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect(await failure(connection.send(request(1), { id: 1 }))).toMatchObject({ kind: 'status', status: 500 })
    await connection.send(notice)
    expect(await Promise.all(poured)).toHaveLength(2)
  })

  it('is refused before a byte is read when it announces too much', async () => {
    const server = await serve((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 256 * 1024 + 1 })
      response.flushHeaders()
    })
    const connection = httpClientConnection(server.url, { ...options, limits })
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('too-large')
  })

  it('may send one byte at a time', async () => {
    const text = result(1, 'ä€🙂')
    const server = await serve((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      for (const byte of Buffer.from(text)) response.write(Buffer.of(byte))
      response.end()
    })
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect(heard.frames[0]?.text).toBe(text)
  })

  it.each(['application/json', 'text/event-stream'])('holds no call beyond its signal by dripping %s', async type => {
    const server = await serve((_seen, response) => {
      response.writeHead(200, { 'content-type': type })
      const drip = setInterval(() => response.write(' '), 5)
      response.on('close', () => clearInterval(drip))
    })
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1, signal: AbortSignal.timeout(40) }))).kind).toBe('aborted')
  })

  it.each([
    ['accept the message', { deliverTimeoutMs: 30 }, notice, {}],
    ['answer', { answerTimeoutMs: 30 }, request(1), { id: 1 }],
  ])('holds no message for ever by not caring to %s', async (what, deadline, message, outgoing) => {
    const server = await serve(() => undefined)
    const connection = httpClientConnection(server.url, { ...options, ...deadline })
    await hear(connection)
    const error = await failure(connection.send(message, outgoing))
    expect(error.kind).toBe('lost')
    expect(error.message).toContain(what)
  })

  it.each([
    ['a stream open after its answer', 200, 'text/event-stream', 'resolved'],
    ['the body of a redirection open', 307, 'text/html', 'status'],
  ])('holds no socket by leaving %s', async (_what, status, type, outcome) => {
    const closed = Promise.withResolvers<void>()
    const server = await serve((seen, response) => {
      response.writeHead(status, { 'content-type': type, location: '/' })
      response.on('close', closed.resolve)
      if (status === 200) response.write(`data: ${result(seen.id)}\n\n`)
      else response.flushHeaders()
    })
    const connection = httpClientConnection(server.url, { ...options, lingerMs: 20 })
    await hear(connection)
    const sent = Promise.resolve(connection.send(request(1), { id: 1 }))
    expect(outcome === 'resolved' ? await sent.then(() => outcome) : (await failure(sent)).kind).toBe(outcome)
    await closed.promise
  })

  it.each([
    ['a JSON answer', 'application/json', '{"jsonrpc":"2.0","id":1,"result":"', '"}'],
    ['an event', 'text/event-stream', 'data: {"jsonrpc":"2.0","id":1,"result":"', '"}\n\n'],
  ])('does not get bytes that are not UTF-8 through in %s', async (_what, type, before, after) => {
    const server = await serve((_seen, response) =>
      response
        .writeHead(200, { 'content-type': type })
        .end(Buffer.concat([Buffer.from(before), Buffer.of(0xff), Buffer.from(after)])),
    )
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('protocol')
    expect(heard.frames).toEqual([])
  })

  it('does no harm by a JSON answer nested a hundred thousand deep', async () => {
    const server = await serve((_seen, response) => json(response, 200, '['.repeat(100_000)))
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('protocol')
  })
})

describe('a hostile server against the client over sockets', () => {
  it('is refused when it compresses what was asked for plain', async () => {
    const server = await serve((seen, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync(result(seen.id, 'x'.repeat(1000)))),
    )
    const connection = httpClientConnection(server.url)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('protocol')
    expect(server.seen[0]?.headers['accept-encoding']).toBe('identity')
  })

  it.each([
    ['headers without end', `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1000)}\r\n`.repeat(100)}`, 'too-large'],
    ['something that is not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', 'protocol'],
    ['half an answer', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"jsonrpc"', 'lost'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'lost'],
  ])('fails the call alone when it sends %s', async (_what, answer, kind) => {
    const server = net.createServer(socket => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(answer))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    afterTest(() => new Promise<void>(done => server.close(() => done())))
    const connection = httpClientConnection(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe(kind)
  })
})
