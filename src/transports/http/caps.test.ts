/** The caps on streams and what a reader that never reads may cost, over real sockets. */
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  afterTest,
  ask,
  getStream,
  jsonHeaders,
  postText,
  rawSocket,
  scriptedDoor,
  serve,
  signal,
} from '../../../test/transports/scripted-acceptor.ts'
import type { Acceptor, Lane } from '../../jsonrpc/connection.ts'
import { fetchHandler } from './fetch.ts'
import { Streams } from './streams.ts'

const message = '{"jsonrpc":"2.0","id":1,"method":"x"}'
const listenHeaders = { accept: 'text/event-stream' }

async function listener(port: number, who: string) {
  const socket = await rawSocket(port)
  socket.write(`${getStream}X-Who: ${who}\r\n\r\n`)
  await socket.until('HTTP/1.1')
  return socket
}

describe('caps on open streams', () => {
  const identify = (header: (name: string) => string | undefined) => ({ id: header('x-who') ?? '' })

  it('one principal gets 503 and a time to wait beyond its cap; another still gets a stream (D11)', async () => {
    const { port } = await serve({}, { identify, limits: { streamsPerPrincipal: 2 } })
    await listener(port, 'ann')
    const second = await listener(port, 'ann')
    const refused = await ask(port, { method: 'GET', headers: { ...listenHeaders, 'x-who': 'ann' } })
    expect(refused).toMatchObject({ status: 503, text: expect.stringContaining('streamsPerPrincipal') })
    expect(refused.headers['retry-after']).toBe('5')
    expect((await listener(port, 'bob')).text).toContain('200 OK')
    second.socket.destroy()
    await second.closed
    const again = async (): Promise<string> => {
      const { text } = await listener(port, 'ann')
      return text.includes('200 OK') ? text : again()
    }
    expect(await again()).toContain('200 OK')
  })

  it('one principal cannot take all places with answers either, and its listeners are counted apart', async () => {
    const held: Lane[] = []
    const deliver: Acceptor['deliver'] = (_text, _caller, reply) => {
      reply.send('{"aside":1}')
      held.push(reply)
    }
    const { port } = await serve({ deliver }, { identify, limits: { streamsPerPrincipal: 1, answersPerPrincipal: 1 } })
    const first = await rawSocket(port)
    first.write(postText(message, 'X-Who: ann\r\n'))
    await first.until('aside')
    const refused = await ask(port, { body: message, headers: { ...jsonHeaders, 'x-who': 'ann' } })
    expect(refused).toMatchObject({ status: 503, text: expect.stringContaining('answersPerPrincipal') })
    expect((await listener(port, 'ann')).text).toContain('200 OK')
    const other = await rawSocket(port)
    other.write(postText(message, 'X-Who: bob\r\n'))
    await other.until('aside')
  })

  it('the cap of all together holds for listeners and for answers alike; a JSON answer needs no stream', async () => {
    const lost = signal()
    const { port } = await serve(
      {
        deliver(text, _caller, reply) {
          reply.onClose(() => lost.give())
          if (text === message) reply.send('{"aside":1}')
          reply.send(text, { final: true })
        },
      },
      { limits: { streams: 1 } },
    )
    await listener(port, 'ann')
    expect((await ask(port, { method: 'GET', headers: listenHeaders })).status).toBe(503)
    expect((await ask(port, { body: '{}' })).status).toBe(200)
    const refused = await ask(port, { body: message })
    expect(refused).toMatchObject({ status: 503, text: expect.stringContaining('(streams)') })
    await lost.came
  })

  it('holds over the fetch face too, and a cancelled body gives its place back', async () => {
    const handler = fetchHandler(scriptedDoor(), { limits: { streamsPerPrincipal: 1 } })
    const get = () => handler(new Request('http://localhost/mcp', { headers: listenHeaders }), { principal: { id: 'ann' } })
    const first = await get()
    expect(first.status).toBe(200)
    expect((await get()).status).toBe(503)
    await first.body?.cancel()
    expect((await get()).status).toBe(200)
  })
})

describe('what a connection is', () => {
  it('over fetch: one object for each principal or remote, and a fresh one where neither is known', async () => {
    const seen: object[] = []
    const handler = fetchHandler(
      scriptedDoor({
        deliver(_text, { connection }, reply) {
          seen.push(connection)
          reply.end()
        },
      }),
    )
    const post = (info?: Parameters<typeof handler>[1]) =>
      handler(new Request('http://localhost/mcp', { method: 'POST', headers: jsonHeaders, body: '{}' }), info)
    for (const info of [{ remote: '192.0.2.1' }, { remote: '192.0.2.1' }, { principal: { id: '192.0.2.1' } }, {}, {}])
      await post(info)
    expect(seen[0]).toBe(seen[1])
    expect(new Set(seen).size).toBe(4)
  })

  it('over node: the socket', async () => {
    const seen: object[] = []
    const { port } = await serve({
      deliver(text, { connection }, reply) {
        seen.push(connection)
        reply.send(text, { final: true })
      },
    })
    const socket = await rawSocket(port)
    socket.write(postText('{"a":1}') + postText('{"b":1}'))
    await socket.until('{"b":1}')
    await ask(port, { body: '{}' })
    expect(seen[0]).toBe(seen[1])
    expect(seen[2]).not.toBe(seen[0])
  })
})

describe('a reader that never reads', () => {
  async function deaf(port: number, text: string) {
    const { socket } = await rawSocket(port)
    socket.removeAllListeners('error').on('error', () => undefined)
    socket.pause()
    socket.write(text)
    return socket
  }

  it('costs no more when the flood comes in one turn of the event loop', async () => {
    const streams = new Streams()
    const closed = signal()
    const frame = `{"log":"${'x'.repeat(64 * 1024)}"}`
    let most = 0
    const { port } = await serve(
      {
        deliver(_text, _caller, reply) {
          reply.onClose(() => closed.give())
          for (let at = 0; at < 1_000; at++) {
            reply.send(frame)
            most = Math.max(most, streams.waiting)
          }
        },
      },
      { streams },
    )
    await deaf(port, postText(message))
    await closed.came
    expect(most).toBeGreaterThan(streams.limits.queueBytes)
    expect(most).toBeLessThanOrEqual(streams.limits.queueCeiling)
  })

  it('is cut in a flood of events, with little of it held in memory (D09)', async () => {
    const streams = new Streams({ limits: { stallMs: 100 } })
    const closed = signal()
    let most = 0
    const { port } = await serve(
      {
        deliver(_text, _caller, reply) {
          reply.onClose(() => closed.give())
          flood(reply)
        },
      },
      { streams, limits: { stallMs: 100 } },
    )
    const frame = `{"log":"${'x'.repeat(64 * 1024)}"}`
    function flood(reply: Lane) {
      for (let at = 0; at < 16; at++) reply.send(frame)
      most = Math.max(most, streams.waiting)
      if (!reply.closed) setImmediate(flood, reply)
    }
    await deaf(port, postText(message))
    await closed.came
    expect(most).toBeGreaterThan(streams.limits.queueBytes)
    expect(most).toBeLessThanOrEqual(streams.limits.queueCeiling)
    expect([streams.waiting, streams.size]).toEqual([0, 0])
  })

  it.each([
    ['a JSON answer', false],
    ['an event stream', true],
  ])('is cut when it does not fetch %s', async (_name, streaming) => {
    const gone = signal()
    const large = `{"text":"${'x'.repeat(30 * 1024 * 1024)}"}`
    const { port } = await serve(
      {
        deliver(_text, { connection }, reply) {
          if ('once' in connection && typeof connection.once === 'function') connection.once('close', () => gone.give())
          if (streaming) reply.send('{"aside":1}')
          setImmediate(() => setImmediate(() => reply.send(large, { final: true })))
        },
      },
      // Long enough for the one that reads, on a busy machine too.
      { limits: { stallMs: 1_500 } },
    )
    await deaf(port, postText(message))
    await gone.came
    expect((await ask(port, { body: message })).text.length).toBeGreaterThan(large.length - 1)
  })

  it('is told from one that reads slowly, who gets it all', async () => {
    const large = `{"text":"${'x'.repeat(12 * 1024 * 1024)}"}`
    const { port } = await serve(
      {
        deliver(_text, _caller, reply) {
          reply.send('{"aside":1}')
          setImmediate(() => setImmediate(() => reply.send(large, { final: true })))
        },
      },
      { limits: { stallMs: 1_000 } },
    )
    const socket = connect(port, '127.0.0.1')
    afterTest(() => void socket.destroy())
    let got = 0
    let tail = ''
    const whole = signal<boolean>()
    socket.on('data', part => {
      got += part.length
      tail = part.subarray(-5).toString()
      if (tail === '0\r\n\r\n') whole.give(true)
      socket.pause()
      setTimeout(() => socket.resume(), 10)
    })
    socket.on('close', () => whole.give(false))
    socket.write(postText(message))
    expect(await whole.came).toBe(true)
    expect(got).toBeGreaterThan(large.length)
  })
})
