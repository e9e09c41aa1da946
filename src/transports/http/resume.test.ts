/** Streams that readers leave and come back to, over real sockets (rev B–D §1.2, "Resumability"). */
import { describe, expect, it } from 'vitest'
import { ask, getStream, postText, rawSocket, serve, signal } from '../../../test/transports/scripted-acceptor.ts'
import type { Lane } from '../../jsonrpc/connection.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Streams } from './streams.ts'

const message = '{"jsonrpc":"2.0","id":1,"method":"slow"}'
const ids = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id ?? '')
const data = (text: string) => [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, frame]) => frame ?? '')

/** A server whose POSTs are kept in session `s` and handed to the test, and whose GETs take up what they name. */
async function keeping(prime: boolean, streams = new Streams()) {
  let next = signal<Lane>()
  const { port } = await serve(
    {
      deliver(_text, _caller, reply) {
        reply.keep?.('s', prime)
        next.give(reply)
      },
      listen(caller, lane) {
        const last = caller.header?.('last-event-id')
        if (last === undefined) {
          lane.keep?.('s', prime)
          next.give(lane)
        } else if (lane.resume?.(caller.header?.('mcp-session-id') ?? 's', last) !== true) {
          lane.send('{"unknown":1}', { final: true, status: 404 })
        }
      },
    },
    { streams },
  )
  const lane = async () => {
    const found = await next.came
    next = signal<Lane>()
    return found
  }
  return { port, lane, streams }
}

async function comeBack(port: number, lastId: string | undefined, extra = '') {
  const socket = await rawSocket(port)
  socket.write(`${getStream}Last-Event-ID: ${lastId}\r\n${extra}\r\n`)
  return socket
}

describe('a kept stream', () => {
  it('is primed with an id and empty data before anything is said (rev D, trap 23)', async () => {
    const { port, lane } = await keeping(true)
    const socket = await rawSocket(port)
    socket.write(postText(message))
    const reply = await lane()
    const text = await socket.until('data: \n\n')
    expect(text).toContain('content-type: text/event-stream')
    expect(ids(text)).toEqual([expect.stringMatching(/^[^-]+-0$/)])
    reply.send('{"answer":1}', { final: true })
    await socket.until('{"answer":1}')
  })

  it('is not primed for readers who would try to parse that, and a lone answer stays JSON', async () => {
    const { port, lane } = await keeping(false)
    const answering = ask(port, { body: message })
    ;(await lane()).send('{"answer":1}', { final: true })
    const answer = await answering
    expect(answer).toMatchObject({ status: 200, text: '{"answer":1}' })
    expect(answer.headers['content-type']).toBe('application/json')
  })

  it('gives each event an id that names its stream and is unique in the session', async () => {
    const { port, lane } = await keeping(false)
    const texts: string[] = []
    for (let round = 0; round < 3; round++) {
      const answering = ask(port, { body: message })
      const reply = await lane()
      reply.send('{"aside":1}')
      reply.send('{"answer":1}', { final: true })
      texts.push((await answering).text)
    }
    const all = texts.flatMap(ids)
    expect(new Set(all).size).toBe(6)
    expect(new Set(all.map(id => id.split('-')[0])).size).toBe(3)
  })

  it('lets its reader go with a time to wait, and tells it by GET what was said meanwhile (rev D)', async () => {
    const { port, lane } = await keeping(true)
    const posting = ask(port, { body: message })
    const reply = await lane()
    reply.send('{"aside":1}')
    reply.release?.(250)
    const { text } = await posting
    expect(text).toContain('retry: 250\n\n')
    expect(data(text)).toEqual(['{"aside":1}'])
    expect(reply.closed).toBe(false)
    reply.send('{"aside":2}')
    const socket = await comeBack(port, ids(text).at(-1))
    await socket.until('{"aside":2}')
    reply.send('{"answer":1}', { final: true })
    await socket.until('0\r\n\r\n')
    expect(data(socket.text.replaceAll('\r\n', '\n'))).toEqual(['{"aside":2}', '{"answer":1}'])
  })

  it('released before it was primed, still gives its reader an id to come back with', async () => {
    const { port, lane } = await keeping(false)
    const posting = ask(port, { body: message })
    const reply = await lane()
    reply.release?.(10)
    const [id] = ids((await posting).text)
    reply.send('{"answer":1}', { final: true })
    const socket = await comeBack(port, id)
    await socket.until('{"answer":1}')
  })

  it('survives the loss of its reader: that is no cancel (rev B–D, trap 12)', async () => {
    const { port, lane } = await keeping(true)
    const socket = await rawSocket(port)
    socket.write(postText(message))
    const reply = await lane()
    let closes = 0
    reply.onClose(() => closes++)
    reply.send('{"aside":1}')
    const text = await socket.until('{"aside":1}')
    const [first, second] = ids(text)
    socket.socket.resetAndDestroy()
    await socket.closed
    // A whole exchange later the server has certainly heard of it.
    await ask(port, { method: 'DELETE', headers: {} })
    reply.send('{"answer":1}', { final: true })
    expect([reply.closed, closes]).toEqual([true, 0])
    const fromFirst = await comeBack(port, first)
    expect(await fromFirst.until('{"answer":1}')).toContain('{"aside":1}')
    const fromSecond = await comeBack(port, second)
    expect(await fromSecond.until('{"answer":1}')).not.toContain('{"aside":1}')
  })

  it('that has ended replays what followed, and ends; with nothing left to say it just ends', async () => {
    const { port, lane } = await keeping(true)
    const posting = ask(port, { body: message })
    const reply = await lane()
    reply.send('{"aside":1}')
    reply.send('{"answer":1}', { final: true })
    const all = ids((await posting).text)
    const get = (id = '') => ask(port, { method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id } })
    expect(data((await get(all[0])).text)).toEqual(['{"aside":1}', '{"answer":1}'])
    expect(data((await get(all[1])).text)).toEqual(['{"answer":1}'])
    expect(await get(all[2])).toMatchObject({ status: 200, text: '' })
  })

  it('replays only its own events, not those of other streams of the session (trap 23)', async () => {
    const { port, lane } = await keeping(true)
    const first = ask(port, { body: message })
    const one = await lane()
    const second = ask(port, { body: message })
    const two = await lane()
    one.send('{"one":1}')
    two.send('{"two":1}', { final: true })
    one.send('{"one":2}', { final: true })
    await second
    const [id] = ids((await first).text)
    const back = await ask(port, { method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id ?? '' } })
    expect(data(back.text)).toEqual(['{"one":1}', '{"one":2}'])
  })

  it.each(['', 'nonsense', '-1', 'x-1', 'constructor-0', `${'9'.repeat(40)}-${'9'.repeat(40)}`])(
    'is not found under the foreign id %j',
    async id => {
      const { port, lane } = await keeping(true)
      const posting = ask(port, { body: message })
      ;(await lane()).send('{"answer":1}', { final: true })
      await posting
      const answer = await ask(port, { method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id } })
      expect(answer.status).toBe(404)
    },
  )

  it('is not found from another session, nor under a number that it has not reached', async () => {
    const { port, lane } = await keeping(true)
    const posting = ask(port, { body: message })
    ;(await lane()).send('{"answer":1}', { final: true })
    const [id = ''] = ids((await posting).text)
    const get = (headers: Record<string, string>) =>
      ask(port, { method: 'GET', headers: { accept: 'text/event-stream', ...headers } })
    expect((await get({ 'last-event-id': id, 'mcp-session-id': 'other' })).status).toBe(404)
    expect((await get({ 'last-event-id': id.replace(/-0$/, '-7') })).status).toBe(404)
    expect((await get({ 'last-event-id': id })).status).toBe(200)
  })

  it('taken up by a second reader lets the first one go', async () => {
    const { port, lane } = await keeping(true)
    const first = await rawSocket(port)
    first.write(`${getStream}\r\n`)
    const push = await lane()
    const [id] = ids(await first.until('data: \n\n'))
    const second = await comeBack(port, id)
    await first.until('0\r\n\r\n')
    push.send('{"said":1}')
    await second.until('{"said":1}')
    expect(first.text).not.toContain('said')
  })
})

describe('what is kept is let go', () => {
  it('some time after the end of the stream', async () => {
    const clock = fakeClock()
    const { port, lane } = await keeping(true, new Streams({ clock }))
    const posting = ask(port, { body: message })
    ;(await lane()).send('{"answer":1}', { final: true })
    const [id = ''] = ids((await posting).text)
    const get = () => ask(port, { method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id } })
    clock.advance(4 * 60_000)
    expect((await get()).status).toBe(200)
    clock.advance(2 * 60_000)
    expect((await get()).status).toBe(404)
  })

  it('when its session is forgotten, readers included', async () => {
    const { port, lane, streams } = await keeping(true)
    const socket = await rawSocket(port)
    socket.write(`${getStream}\r\n`)
    const push = await lane()
    const [id = ''] = ids(await socket.until('data: \n\n'))
    streams.forget('s')
    await socket.until('0\r\n\r\n')
    expect(push.closed).toBe(true)
    expect((await ask(port, { method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id } })).status).toBe(404)
  })

  it.each([
    ['released', true],
    ['lost', false],
  ])('when a listener who was %s does not come back in time: its lane is closed then, and not before', async (_how, released) => {
    const clock = fakeClock()
    const streams = new Streams({ clock })
    const { port, lane } = await keeping(true, streams)
    const socket = await rawSocket(port)
    socket.write(`${getStream}\r\n`)
    const push = await lane()
    await socket.until('data: \n\n')
    let closes = 0
    push.onClose(() => closes++)
    if (released) push.release?.(100)
    else socket.socket.destroy()
    while (streams.size > 0) await new Promise(setImmediate)
    clock.advance(4 * 60_000)
    expect([push.closed, closes]).toEqual([false, 0])
    clock.advance(2 * 60_000)
    expect([push.closed, closes]).toEqual([true, 1])
  })

  it('the oldest ended stream first, beyond the cap of a session', async () => {
    const { port, lane } = await keeping(true, new Streams({ limits: { resumablePerSession: 2 } }))
    const found: string[] = []
    for (let round = 0; round < 3; round++) {
      const posting = ask(port, { body: message })
      ;(await lane()).send('{"answer":1}', { final: true })
      found.push(...ids((await posting).text).slice(0, 1))
    }
    const statuses = found.map(
      async id => (await ask(port, { method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': id } })).status,
    )
    expect(await Promise.all(statuses)).toEqual([404, 200, 200])
  })
})
