import { createServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import {
  afterTest,
  ask,
  getStream,
  postText,
  rawSocket,
  scriptedDoor,
  serve,
  signal,
} from '../../../test/transports/scripted-acceptor.ts'
import type { Lane } from '../../jsonrpc/connection.ts'
import { listenHttp } from './listen.ts'

const message = '{"jsonrpc":"2.0","id":1,"method":"x"}'

describe('listening', () => {
  it('names its address, on the loopback interface unless told otherwise', async () => {
    const { url, port } = await serve()
    expect(url).toBe(`http://127.0.0.1:${port}/mcp`)
    const other = await serve({}, { path: '/deep/mcp', host: '::1' }).catch(() => undefined)
    if (other !== undefined) expect(other.url).toBe(`http://[::1]:${other.port}/deep/mcp`)
  })

  it('serves exactly its path, with or without a query; elsewhere a 404 names the right one', async () => {
    const { port } = await serve()
    expect((await ask(port, { body: message, path: '/mcp?x=1' })).status).toBe(200)
    for (const path of ['/', '/mcp/', '/MCP', '/mcp/../mcp', '/sse', '//mcp']) {
      const answer = await ask(port, { body: message, path })
      expect(answer).toMatchObject({ status: 404, text: expect.stringContaining('/mcp') })
      expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } })
    }
  })

  it('tells a foreign name nothing about its paths', async () => {
    const { port } = await serve()
    expect((await ask(port, { path: '/x', headers: { host: 'evil.com' } })).status).toBe(403)
  })

  it('says in words that a port is taken', async () => {
    const { port } = await serve()
    await expect(listenHttp(scriptedDoor(), { port })).rejects.toThrow(`Port ${port} on 127.0.0.1 is already in use`)
  })

  it('says in words that an address is not of this machine', async () => {
    await expect(listenHttp(scriptedDoor(), { host: '192.0.2.1' })).rejects.toThrow('192.0.2.1 is not an address of this machine')
  })

  it('cuts a sender who takes too long over headers or body, and serves others meanwhile (A21, A22)', async () => {
    const { port } = await serve({}, { limits: { headersMs: 100, requestMs: 200 } })
    const [body, head] = [await rawSocket(port), await rawSocket(port)]
    body.write('POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{')
    head.write('POST /mcp HTTP/1.1\r\nHost: 127.')
    expect((await ask(port, { body: message })).status).toBe(200)
    await Promise.all([body.closed, head.closed])
    expect(body.text).toMatch(/^HTTP\/1\.1 408 /)
    expect(head.text).toMatch(/^HTTP\/1\.1 408 /)
  })
})

describe('WebSocket upgrades', () => {
  const upgradeText = (path: string, extra = '') =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${extra}\r\n`
  const options = { wsPath: '/ws', onUpgrade: (_req: unknown, socket: Duplex) => void socket.end('HTTP/1.1 101 Taken\r\n\r\n') }

  it('are handed over on their path', async () => {
    const { port } = await serve({}, options)
    const socket = await rawSocket(port)
    socket.write(upgradeText('/ws?token=1'))
    await socket.until('101 Taken')
  })

  it.each([
    ['on another path', upgradeText('/mcp'), '404'],
    ['from a foreign origin (A32)', upgradeText('/ws', 'Origin: https://evil.com\r\n'), '403'],
    ['to a foreign host', upgradeText('/ws').replace('127.0.0.1', 'evil.com'), '403'],
    ['with two hosts', upgradeText('/ws', 'Host: localhost\r\n'), '400'],
  ])('are refused %s before the 101', async (_name, text, status) => {
    const { port } = await serve({}, { wsPath: '/ws', onUpgrade: () => expect.unreachable('was handed over') })
    const socket = await rawSocket(port)
    socket.write(text)
    await socket.closed
    expect(socket.text).toContain(`HTTP/1.1 ${status}`)
    expect(socket.text).toContain('"error"')
  })

  it('do not keep close() waiting beyond its deadline', async () => {
    const taken = signal()
    const listening = await serve({}, { wsPath: '/ws', onUpgrade: () => taken.give(), closeMs: 20 })
    const socket = await rawSocket(listening.port)
    socket.write(upgradeText('/ws'))
    await taken.came
    await Promise.all([listening.close(), socket.closed])
  })
})

describe('closing', () => {
  it('lets answers under way arrive, ends listeners at once, and takes no more connections', async () => {
    const replies = new Map<string, Lane>()
    const both = signal()
    const listening = await serve(
      {
        deliver(text, _caller, reply) {
          if (text === '{"streamed":1}') reply.send('{"aside":1}')
          if (replies.set(text, reply).size === 2) both.give()
        },
      },
      { closeMs: 60_000 },
    )
    const [listener, plain, streamed] = await Promise.all([1, 2, 3].map(() => rawSocket(listening.port)))
    listener?.write(`${getStream}\r\n`)
    await listener?.until('text/event-stream')
    plain?.write(postText('{"plain":1}'))
    streamed?.write(postText('{"streamed":1}'))
    await Promise.all([both.came, streamed?.until('aside')])
    const closing = listening.close()
    await listener?.closed
    await expect(ask(listening.port, { body: message })).rejects.toThrow('ECONNREFUSED')
    for (const reply of replies.values()) reply.send('{"answer":1}', { final: true })
    await Promise.all([closing, plain?.closed, streamed?.closed])
    expect(plain?.text).toContain('{"answer":1}')
    expect(plain?.text.toLowerCase()).toContain('connection: close')
    expect(streamed?.text).toContain('{"answer":1}')
  })

  it('closes idle connections at once', async () => {
    const listening = await serve({}, { closeMs: 60_000 })
    const socket = await rawSocket(listening.port)
    socket.write(postText(message))
    await socket.until(message)
    await Promise.all([listening.close(), socket.closed])
  })

  it('cuts what is left at the deadline, and may be asked twice', async () => {
    const opened = signal<Lane>()
    const listening = await serve({ deliver: (_text, _caller, reply) => opened.give(reply) }, { closeMs: 20 })
    const socket = await rawSocket(listening.port)
    socket.write(postText(message))
    const reply = await opened.came
    await Promise.all([listening.close(), listening.close(), socket.closed])
    expect(reply.closed).toBe(true)
  })

  it('frees the port', async () => {
    const listening = await serve()
    await listening.close()
    const server = createServer()
    afterTest(() => void server.close())
    await new Promise<void>((done, fail) => {
      server.once('error', fail)
      server.listen(listening.port, '127.0.0.1', done)
    })
  })
})
