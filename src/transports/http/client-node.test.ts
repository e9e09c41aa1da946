import type http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import {
  afterTest,
  cleanUp,
  events,
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

describe('sockets', () => {
  it('serve one call after the other, whatever the answers were', async () => {
    const server = await serve((seen, response) => {
      if (seen.id === 0) return json(response, 200, result(0))
      if (seen.id === 1) {
        events(response)
        return response.end(`data: ${result(1)}\n\n`)
      }
      if (seen.id === 2) return response.writeHead(502).end('no')
      return response.writeHead(202).end()
    })
    const connection = httpClientConnection(server.url)
    await hear(connection)
    for (let round = 0; round < 5; round++) {
      await connection.send(request(0), { id: 0 })
      await connection.send(request(1), { id: 1 })
      await server.saw(round * 4 + 2)
      await failure(connection.send(request(2), { id: 2 }))
      await connection.send(notice)
    }
    expect(server.seen).toHaveLength(20)
    expect(server.sockets).toBeLessThanOrEqual(2)
  })

  it('may end with the answer, which is then as long as it lasted', async () => {
    const server = await serve(seen => {
      seen.socket.end(`HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n${result(seen.id, 'x'.repeat(100_000))}`)
    })
    const connection = httpClientConnection(server.url)
    const heard = await hear(connection)
    for (const id of [1, 2]) await connection.send(request(id), { id })
    expect(heard.frames.map(({ text }) => text.length)).toEqual([1, 2].map(id => result(id, 'x'.repeat(100_000)).length))
  })

  it('that break under a call lose it: it may have run, and does not run again', async () => {
    const server = await serve((seen, response) => (seen.id === 2 ? seen.socket.destroy() : json(response, 200, result(seen.id))))
    const connection = httpClientConnection(server.url)
    await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect((await failure(connection.send(request(2), { id: 2 }))).kind).toBe('lost')
    expect(server.seen.map(({ id }) => id)).toEqual([1, 2])
    expect(server.seen[1]?.socket).toBe(server.seen[0]?.socket)
  })

  it('that break under a call have it sent once more, and only once, if the option says so', async () => {
    const server = await serve((seen, response) => (seen.id === 1 ? json(response, 200, result(1)) : seen.socket.destroy()))
    const connection = httpClientConnection(server.url, { retryReset: true })
    await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect((await failure(connection.send(request(2), { id: 2 }))).kind).toBe('lost')
    expect(server.seen.map(({ id }) => id)).toEqual([1, 2, 2])
  })

  it('that break when new are no reason to send again, even then', async () => {
    const server = await serve(seen => seen.socket.destroy())
    const connection = httpClientConnection(server.url, { retryReset: true })
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('lost')
    expect(server.seen).toHaveLength(1)
  })

  it('that the server closed while we were busy are not used', async () => {
    const state = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(closingServer, { eval: true, workerData: state })
    afterTest(async () => void (await worker.terminate()))
    const port = await new Promise<number>(done => worker.once('message', done))
    const connection = httpClientConnection(`http://127.0.0.1:${port}/`)
    const heard = await hear(connection)
    for (let id = 1; id <= 5; id++) {
      await connection.send(request(id), { id })
      // The loop stands still, as under a long computation, while the server closes what idles.
      worker.postMessage('close')
      Atomics.wait(state, 0, id - 1)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120)
    }
    expect(heard.frames).toHaveLength(5)
  })

  it('that do not open in time count as never reached', async () => {
    const silent = net.createServer(socket => socket.on('error', () => undefined).resume())
    await new Promise<void>(done => silent.listen(0, '127.0.0.1', done))
    afterTest(() => new Promise<void>(done => silent.close(() => done())))
    const { port } = silent.address() as net.AddressInfo
    const connection = httpClientConnection(`https://127.0.0.1:${port}/`, { connectTimeoutMs: 50 })
    await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1 }))
    expect(error.kind).toBe('refused')
    expect(error.message).toContain('connectTimeoutMs')
  })

  it('are at most as many as the option says; further calls wait', async () => {
    const server = await serve((seen, response) => setImmediate(() => json(response, 200, result(seen.id))))
    const connection = httpClientConnection(server.url, { maxSockets: 3 })
    const heard = await hear(connection)
    await Promise.all(Array.from({ length: 30 }, (_, id) => connection.send(request(id), { id })))
    expect(heard.frames).toHaveLength(30)
    expect(server.sockets).toBe(3)
  })
})

/** Serves in a thread of its own; closes its idle sockets when told, and counts in shared memory how often. */
const closingServer = `
  const { parentPort, workerData } = require('node:worker_threads')
  const server = require('node:http').createServer((request, response) => {
    let body = ''
    request.on('data', text => body += text)
    request.on('end', () => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result: {} }))
    })
  })
  server.keepAliveTimeout = 0
  parentPort.on('message', () => {
    server.closeIdleConnections()
    setTimeout(() => { Atomics.add(workerData, 0, 1); Atomics.notify(workerData, 0) }, 5)
  })
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

describe('a server over TLS', () => {
  const key = pem(
    'PRIVATE KEY',
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAhZKHQPAeT6unwQnb/Ln5u/vMwZHZw7p9g+czHiWW3ehRANCAASPVHtBsnfEpUpsT8T3+Q8de33R3Nx6VwecD42qyiyYXXWv+ERnKnTSqDgBJkp1cSDe6vAaPEZ+SZazuyyhYpFA',
  )
  const cert = pem(
    'CERTIFICATE',
    'MIIBZDCCAQqgAwIBAgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA12aXZhcml1bSB0ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAYMRYwFAYDVQQDDA12aXZhcml1bSB0ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEj1R7QbJ3xKVKbE/E9/kPHXt90dzcelcHnA+NqsosmF11r/hEZyp00qg4ASZKdXEg3urwGjxGfkmWs7ssoWKRQKNDMEEwDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMB0GA1UdDgQWBBTxRZfDkCzwYW6JuakL5BNpeEFPwzAKBggqhkjOPQQDAgNIADBFAiBE/zIMD6DfrDd73ZI5eKSN0hEtpG1MRAF5OhR2plkS4QIhAJuHhhsCkkxHAceJ/zHePbcvcgl+j00LxN3is4SgmFKT',
  )
  const secure = (listener: http.RequestListener) => https.createServer({ key, cert }, listener) as unknown as http.Server

  it('is spoken to when its certificate is trusted', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)), secure)
    const connection = httpClientConnection(server.url, { tls: { ca: cert } })
    const heard = await hear(connection)
    for (const id of [1, 2, 3]) await connection.send(request(id), { id })
    expect(heard.frames).toHaveLength(3)
    expect(server.sockets).toBe(1)
  })

  it('is told nothing when it is not', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)), secure)
    const connection = httpClientConnection(server.url)
    await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1 }))
    expect(error.kind).toBe('refused')
    expect(error.message).toContain('SELF_SIGNED')
    expect(server.seen).toEqual([])
  })
})

/** A PEM text from the base64 of its content: a key for these tests alone. */
function pem(label: string, base64: string): string {
  return `-----BEGIN ${label}-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`
}
