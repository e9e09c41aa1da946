import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { hear } from '../../../test/transports/contract.ts'
import { testServer } from '../../../test/transports/websocket-server.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { fakeClock } from '../../testing/clock.ts'
import { type WebSocketClientOptions, webSocketClientConnection } from './client.ts'

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => server.close())
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws`
}

function dial(url: string, options?: WebSocketClientOptions): Connection {
  const connection = webSocketClientConnection(url, options)
  cleanups.push(() => connection.close())
  return connection
}

/** The failure of starting, and what the sink heard of it. */
async function failing(connection: Connection) {
  const closes: (Error | undefined)[] = []
  const error = await Promise.resolve(connection.start({ frame() {}, fault() {}, closed: reason => closes.push(reason) })).catch(
    e => e,
  )
  return { error, closes }
}

/** A server of another make. */
async function foreignServer(options: object): Promise<{ url: string; server: WebSocketServer }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options })
  await once(server, 'listening')
  cleanups.push(() => server.close())
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`, server }
}

describe('webSocketClientConnection', () => {
  it('offers the subprotocol mcp and sends the given headers', async () => {
    const { url, server } = await foreignServer({})
    const requests = once(server, 'connection')
    await hear(dial(url, { headers: { authorization: 'Bearer t' } }))
    const [socket, request] = await requests
    expect([socket.protocol, request.headers.authorization]).toEqual(['mcp', 'Bearer t'])
  })

  it('speaks with a server that knows no subprotocols', async () => {
    const { url, server } = await foreignServer({ handleProtocols: () => false })
    server.on('connection', socket => socket.on('message', data => socket.send(`${data}`)))
    const connection = dial(url)
    const heard = await hear(connection)
    await connection.send('{"n":1}')
    await heard.until(({ frames }) => frames.length === 1)
    expect(heard.frames).toEqual(['{"n":1}'])
  })

  it('takes frames to send as soon as start was called', async () => {
    const server = await testServer()
    cleanups.push(() => server.close())
    const connection = dial(server.url)
    const starting = hear(connection)
    expect(connection.send('{"early":1}')).toBeUndefined()
    const [served] = await Promise.all([server.accepted(), starting])
    const heard = await hear(served)
    await heard.until(({ frames }) => frames.length === 1)
    expect(heard.frames).toEqual(['{"early":1}'])
  })

  it('takes a few frames in one turn of the event loop, loses none, and hears the end after them', async () => {
    const { url, server } = await foreignServer({})
    const sent = Array.from({ length: 1_000 }, (_, n) => `{"n":${n}}`)
    server.on('connection', socket => {
      for (const frame of sent) socket.send(frame)
      socket.close(1000)
    })
    let turn = 0
    let watching = true
    const count = (): void => void (watching && ++turn && setImmediate(count))
    count()
    const perTurn = new Map<number, number>()
    const heard = await hear(dial(url), () => void perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1))
    await heard.until(({ closes }) => closes.length > 0)
    watching = false
    expect(heard.frames).toEqual(sent)
    // What is left when the end is known is heard at once.
    expect([...perTurn.values()].slice(0, -1).every(taken => taken <= 40)).toBe(true)
    expect(perTurn.size).toBeGreaterThan(2)
  })

  it('reads nothing while it rests, and goes on where it stopped', async () => {
    const { url, server } = await foreignServer({})
    const clock = fakeClock()
    const connection = dial(url, { clock, pingMs: 0 })
    const opened = once(server, 'connection')
    const heard = await hear(connection, frame => {
      if (frame === '{"n":2}') connection.rest?.(50)
    })
    const [socket] = await opened
    for (let n = 0; n < 10; n++) socket.send(`{"n":${n}}`)
    await heard.until(({ frames }) => frames.length >= 3)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect(heard.frames).toHaveLength(3)
    clock.advance(50)
    await heard.until(({ frames }) => frames.length === 10)
    expect(heard.frames.at(-1)).toBe('{"n":9}')
  })

  it('tells the code and the reason with which the server leaves', async () => {
    const { url, server } = await foreignServer({})
    server.on('connection', socket => socket.close(1013, 'try later'))
    const heard = await hear(dial(url))
    await heard.until(({ closes }) => closes.length > 0)
    expect(heard.closes).toMatchObject([{ kind: 'lost', message: expect.stringContaining('code 1013: try later') }])
  })

  it('gives status, headers and reason of a refusal', async () => {
    const guard = () => ({ status: 403, message: 'not from here', headers: { 'x-why': 'origin' } })
    const server = await testServer({ guard })
    cleanups.push(() => server.close())
    const { error, closes } = await failing(dial(server.url))
    expect(error).toMatchObject({ kind: 'status', status: 403, message: expect.stringContaining('403: not from here') })
    expect(error.headers['x-why']).toBe('origin')
    expect(closes).toEqual([error])
  })

  it('gives the status of a server that speaks no WebSocket', async () => {
    const url = await listening(createHttpServer((_request, response) => response.writeHead(404).end('x'.repeat(100_000))))
    const { error } = await failing(dial(url))
    expect(error).toMatchObject({ kind: 'status', status: 404 })
  })

  it('is refused where nobody listens', async () => {
    const { error, closes } = await failing(dial('ws://127.0.0.1:1/ws'))
    expect(error).toMatchObject({ kind: 'refused', message: expect.stringContaining('ws://127.0.0.1:1 (ECONNREFUSED)') })
    expect(closes).toEqual([error])
  })

  it('is refused by a server that does not answer the handshake in time', async () => {
    const url = await listening(createServer(socket => void cleanups.push(() => socket.destroy())))
    const { error } = await failing(dial(url, { handshakeMs: 50 }))
    expect(error).toMatchObject({ kind: 'refused', message: expect.stringContaining('timed out') })
  })

  it('can be closed while it is being opened', async () => {
    const url = await listening(createServer(socket => void cleanups.push(() => socket.destroy())))
    const connection = dial(url)
    const failed = failing(connection)
    await connection.close()
    const { error, closes } = await failed
    expect(error).toMatchObject({ kind: 'refused' })
    expect(closes).toEqual([undefined])
  })

  it('takes only addresses of WebSockets', () => {
    for (const url of ['http://127.0.0.1/', 'nonsense', 'file:///etc/passwd']) {
      expect(() => webSocketClientConnection(url)).toThrow('begins with ws:// or wss://')
    }
  })

  it('says how to install ws where it is missing, and asks for no credentials', async () => {
    const hooks = `import { registerHooks } from 'node:module'
      registerHooks({ resolve(name, context, next) { if (name === 'ws') throw new Error('not found'); return next(name, context) } })`
    const module = JSON.stringify(new URL('./client.ts', import.meta.url).href)
    const program = `import { webSocketClientConnection } from ${module}
      const authorizer = { headers: () => console.log('asked') }
      const connection = webSocketClientConnection('ws://127.0.0.1:1/', { authorizer })
      connection.start({ frame() {}, fault() {}, closed() {} }).catch(error => console.log(error.message))`
    const args = ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`, '--input-type=module', '-e', program]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    expect(stdout).toContain('npm install ws')
    expect(stdout).not.toContain('asked')
  })
})
