/** Raw bytes against the node:http face: what no well-behaved client sends. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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
import { until } from '../../../test/until.ts'
import type { Lane } from '../../jsonrpc/connection.ts'
import { nodeHttpHandler } from './node.ts'

const message = '{"jsonrpc":"2.0","id":1,"method":"echo"}'
const head = 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'

describe('broken or hostile requests', () => {
  it('two Host headers are answered 400, whatever their case and order (A13)', async () => {
    const { port } = await serve()
    for (const second of ['Host: evil.com', 'hOST: 127.0.0.1']) {
      const socket = await rawSocket(port)
      socket.write(postText(message, `${second}\r\n`))
      expect(await socket.until('"error"')).toMatch(/^HTTP\/1\.1 400 .*more than one Host/s)
    }
  })

  it('a missing Host is answered 400 with a reason', async () => {
    const { port } = await serve()
    const socket = await rawSocket(port)
    socket.write(postText(message).replace('Host: 127.0.0.1\r\n', ''))
    expect(await socket.until('"error"')).toMatch(/^HTTP\/1\.1 400 .*no Host/s)
  })

  it('an absolute target with a foreign name does not reach the endpoint', async () => {
    const { port } = await serve({ deliver: () => expect.unreachable('the door was reached') })
    const socket = await rawSocket(port)
    socket.write(postText(message).replace('POST /mcp', 'POST http://evil.com/mcp'))
    expect(await socket.until('"error"')).toMatch(/^HTTP\/1\.1 404 /)
  })

  it('a declared length over the limit is answered 413 before a byte of the body came, and the line is closed (A01)', async () => {
    const { port } = await serve({ deliver: () => expect.unreachable('the door was reached') }, { limits: { frameBytes: 1_000 } })
    const socket = await rawSocket(port)
    socket.write(`${head}Content-Length: 100000000\r\n\r\n`)
    const answer = await socket.until('"error"')
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer.toLowerCase()).toContain('connection: close')
    await socket.closed
  })

  it('a body over the limit without a declared length is answered 413 while it still comes (A02)', async () => {
    const { port } = await serve({ deliver: () => expect.unreachable('the door was reached') }, { limits: { frameBytes: 1_000 } })
    const socket = await rawSocket(port)
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
    socket.write(`3e8\r\n${' '.repeat(1_000)}\r\n`)
    socket.write('1\r\n \r\n')
    expect(await socket.until('"error"')).toMatch(/^HTTP\/1\.1 413 /)
    await socket.closed
  })

  it('a sender that goes on and on after its 413 is cut', async () => {
    const { port } = await serve({}, { limits: { frameBytes: 1_000 } })
    const socket = await rawSocket(port)
    socket.socket.removeAllListeners('error').on('error', () => undefined)
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
    const piece = `10000\r\n${' '.repeat(65_536)}\r\n`
    const more = () => {
      while (!socket.socket.destroyed && socket.socket.write(piece));
    }
    socket.socket.on('drain', more)
    more()
    await socket.closed
    expect(socket.text).toMatch(/^HTTP\/1\.1 413 /)
    expect(socket.socket.bytesWritten).toBeLessThan(16 * 1024 * 1024)
  })

  it('a short refused body is read to its end and the connection serves the next request', async () => {
    const { port } = await serve()
    const socket = await rawSocket(port)
    socket.write(postText(message, 'Content-Encoding: gzip\r\n'))
    await socket.until('415')
    socket.write(postText('{"second":1}'))
    expect(await socket.until('{"second":1}')).toContain('HTTP/1.1 200')
  })

  it('pipelined requests are answered in their order', async () => {
    const { port } = await serve({
      deliver: (text, _caller, reply) =>
        text.includes('slow') ? void setImmediate(() => reply.send(text, { final: true })) : reply.send(text, { final: true }),
    })
    const socket = await rawSocket(port)
    socket.write(postText('{"slow":1}') + postText('{"fast":2}'))
    expect(await socket.until('{"fast":2}')).toMatch(/\{"slow":1\}.*\{"fast":2\}/s)
  })

  it('of pipelined requests only one is at work at a time: answers do not pile up for who reads none (D09)', async () => {
    const waiting: Lane[] = []
    const { port } = await serve({ deliver: (_text, _caller, reply) => void waiting.push(reply) })
    const socket = await rawSocket(port)
    socket.write(postText('{"n":1}').repeat(3))
    for (let at = 1; at <= 3; at++) {
      await until(() => expect(waiting).toHaveLength(at))
      await new Promise(done => setImmediate(done))
      expect(waiting).toHaveLength(at)
      waiting[at - 1]?.send(`{"answer":${at}}`, { final: true })
    }
    expect(await socket.until('{"answer":3}')).toMatch(/"answer":1.*"answer":2.*"answer":3/s)
  })

  it('pipelined requests beyond a hundred are answered 503, in their order', async () => {
    const delivered = signal<Lane>()
    const { port } = await serve({
      deliver: (text, _caller, reply) => (text.includes('first') ? delivered.give(reply) : reply.send(text, { final: true })),
    })
    const socket = await rawSocket(port)
    socket.write(postText('{"first":1}') + postText('{"n":1}').repeat(100) + postText('{"late":1}'))
    const first = await delivered.came
    // All of it came in one go: by the next round it is read.
    await new Promise(done => setImmediate(done))
    first.send('{"first":1}', { final: true })
    const said = await socket.until('are queued on this connection')
    expect(said.match(/HTTP\/1\.1 200/g)).toHaveLength(101)
    expect(said).toMatch(/HTTP\/1\.1 503 .*retry-after: 1/is)
  })

  it('a body that would be refused is not asked for (Expect: 100-continue); another one is', async () => {
    const { port } = await serve({}, { limits: { frameBytes: 1_000 } })
    const refused = await rawSocket(port)
    refused.write(`${head}Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n`)
    expect(await refused.until('"error"')).toMatch(/^HTTP\/1\.1 413 /)
    const invited = await rawSocket(port)
    invited.write(`${head}Expect: 100-continue\r\nContent-Length: ${message.length}\r\n\r\n`)
    expect(await invited.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 100 /)
    invited.write(message)
    expect(await invited.until('"method":"echo"')).toContain('HTTP/1.1 200')
  })

  it('a reader that reads nothing is cut though it talks on (D09)', async () => {
    const { port } = await serve(
      { deliver: (_text, _caller, reply) => reply.send(`{"big":"${'x'.repeat(16_000_000)}"}`, { final: true }) },
      { limits: { stallMs: 200 } },
    )
    const socket = await rawSocket(port)
    socket.socket.removeAllListeners('error').on('error', () => undefined)
    socket.write(postText(message))
    socket.socket.pause()
    const talking = setInterval(() => socket.write('\r\n'), 20)
    await socket.closed
    clearInterval(talking)
  })

  it('a body in single bytes arrives whole', async () => {
    const { port } = await serve()
    const socket = await rawSocket(port)
    socket.socket.setNoDelay(true)
    for (const byte of Buffer.from(postText('{"é":"漢"}'))) socket.write(new Uint8Array([byte]))
    expect(await socket.until('{"é":"漢"}')).toContain('HTTP/1.1 200')
  })

  it('headers beyond the limit of the server are refused by it, and it goes on', async () => {
    const { port } = await serve()
    const socket = await rawSocket(port)
    socket.write(postText(message, `X-Big: ${'x'.repeat(20_000)}\r\n`))
    expect(await socket.until('HTTP/1.1')).toContain('431')
    expect((await ask(port, { body: message })).status).toBe(200)
  })
})

describe('callers that leave', () => {
  const opening = (reply: Lane) => {
    const closed = signal()
    reply.onClose(() => closed.give())
    return closed.came
  }

  it('before the answer: the lane says so once, and what is sent then goes nowhere', async () => {
    const delivered = signal<Lane>()
    const { port } = await serve({ deliver: (_text, _caller, reply) => delivered.give(reply) })
    const socket = await rawSocket(port)
    socket.write(postText(message))
    const reply = await delivered.came
    let calls = 0
    reply.onClose(() => calls++)
    expect(reply.closed).toBe(false)
    const closed = opening(reply)
    socket.socket.resetAndDestroy()
    await closed
    expect(reply.closed).toBe(true)
    reply.send('{"aside":1}')
    reply.send('{"late":1}', { final: true })
    reply.end()
    expect(calls).toBe(1)
  })

  it('in the middle of an event stream that is not kept: likewise (rev E: that is the cancel)', async () => {
    const delivered = signal<Lane>()
    const { port } = await serve({
      deliver(_text, _caller, reply) {
        reply.send('{"aside":1}')
        delivered.give(reply)
      },
    })
    const socket = await rawSocket(port)
    socket.write(postText(message))
    await socket.until('aside')
    const reply = await delivered.came
    const closed = opening(reply)
    socket.socket.destroy()
    await closed
    expect(reply.closed).toBe(true)
    reply.send('{"late":1}', { final: true })
  })

  it('in the middle of their own body: nothing of it reaches the door, and others are served', async () => {
    const texts: string[] = []
    const { port } = await serve({
      deliver(text, _caller, reply) {
        texts.push(text)
        reply.send(text, { final: true })
      },
    })
    const socket = await rawSocket(port)
    socket.write(`${head}Content-Length: 1000\r\n\r\n{"half":`)
    socket.socket.resetAndDestroy()
    await socket.closed
    await ask(port, { body: '{"whole":1}' })
    expect(texts).toEqual(['{"whole":1}'])
  })

  it('onClose is not called when the lane was answered in good order', async () => {
    let calls = 0
    const finished = signal()
    const { port } = await serve({
      deliver(text, caller, reply) {
        reply.onClose(() => calls++)
        if ('once' in caller.connection && typeof caller.connection.once === 'function')
          caller.connection.once('close', () => finished.give())
        if (text !== message) reply.send('{"aside":1}')
        reply.send(text, { final: true })
      },
    })
    await ask(port, { body: message })
    await finished.came
    await ask(port, { body: '{}' })
    expect(calls).toBe(0)
  })

  it('a listener that leaves is told of by its lane', async () => {
    const opened = signal<Lane>()
    const { port } = await serve({ listen: (_caller, lane) => opened.give(lane) })
    const socket = await rawSocket(port)
    socket.write(`${getStream}\r\n`)
    await socket.until('text/event-stream')
    const closed = opening(await opened.came)
    socket.socket.destroy()
    await closed
  })
})

describe('inside a framework that has read the body', () => {
  async function framework(parsed: unknown, options = {}) {
    const handler = nodeHttpHandler(scriptedDoor(), options)
    const server = createServer((req, res) => {
      req.resume()
      req.on('end', () => handler(req, res, parsed))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    afterTest(() => void server.close())
    return (server.address() as AddressInfo).port
  }

  it.each([
    ['an object is written out again', { a: [1, 'é'] }, '{"a":[1,"é"]}'],
    ['text is taken as it is', ' {"a":1}', ' {"a":1}'],
    ['bytes are decoded', Buffer.from('{"é":1}'), '{"é":1}'],
  ])('%s', async (_name, parsed, expected) => {
    const port = await framework(parsed)
    expect(await ask(port, { body: 'ignored' })).toMatchObject({ status: 200, text: expected })
  })

  it('its bytes are held to the same limit and the same encoding', async () => {
    expect((await ask(await framework('x'.repeat(11), { limits: { frameBytes: 10 } }), {})).status).toBe(413)
    expect((await ask(await framework(Buffer.from([0xff])), {})).status).toBe(400)
  })

  it('headers that the framework set before stay', async () => {
    const handler = nodeHttpHandler(scriptedDoor())
    const server = createServer((req, res) => {
      res.setHeader('x-powered-by', 'test')
      handler(req, res)
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    afterTest(() => void server.close())
    const answer = await ask((server.address() as AddressInfo).port, { body: message })
    expect(answer).toMatchObject({ status: 200, text: message })
    expect(answer.headers['x-powered-by']).toBe('test')
  })
})
