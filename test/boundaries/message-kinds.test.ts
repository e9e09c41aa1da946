/** What a message is: a request, a notification or a response, never two of them; and a handshake is made once. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect } from 'vivarium/client'
import { createServer, type Server } from 'vivarium/server'
import { WebSocket } from 'ws'
import type { RevisionId } from '../../src/revisions/index.ts'
import { sessionServer, silence } from '../client/scripted-server.ts'
import { events, headersFor, httpPeer, json, open, send } from '../spec/http.ts'
import {
  callName,
  enveloped,
  errorOf,
  everyRevision,
  type Frame,
  helloParams,
  resultOf,
  sessionRevisions,
  speak,
} from '../spec/wire.ts'

let server: Server
let url: string
let origin: string
const ran: string[] = []

beforeAll(async () => {
  server = createServer({ name: 'kinds', version: '1.0.0', revisions: everyRevision })
  server.tool('note', {}, () => {
    ran.push('note')
    return 'noted'
  })
  const listening = await server.listen({ ssePath: '/sse', wsPath: '/ws' })
  url = listening.url
  origin = new URL(url).origin
})
afterAll(() => server.close())

const overHttp: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25']
const hello = (revision: RevisionId, id: unknown = 'again'): Frame => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: helloParams(revision),
})

/** A call that also claims to be an answer. */
function both(revision: RevisionId, claim: Frame, id: unknown = 7): Frame {
  const params = enveloped(revision, { name: 'note', arguments: {} })
  return { jsonrpc: '2.0', id, method: callName(revision), params, ...claim }
}

const claims: readonly Frame[] = [{ result: {} }, { error: { code: 1, message: 'no' } }, { result: null }]

describe.each(everyRevision)('a message with a method and a result or an error, at %s', revision => {
  it('is refused under its id on a pipe, and runs nothing', async () => {
    const wire = await speak(server, revision)
    ran.length = 0
    for (const claim of claims) {
      wire.say(both(revision, claim))
      expect(errorOf(await wire.next(frame => frame['id'] === 7)).code).toBe(-32600)
    }
    expect(ran).toEqual([])
    await wire.close()
  })

  it('is refused over HTTP with 400', async () => {
    if (revision === '2024-11-05') return
    const peer = await httpPeer(url, revision)
    ran.length = 0
    const headers = headersFor(revision, callName(revision), { name: 'note' }, peer.session)
    const answer = await send(url, { headers, body: both(revision, { result: {} }) })
    expect([answer.status, answer.frame['id'], errorOf(answer.frame).code]).toEqual([400, 7, -32600])
    expect(ran).toEqual([])
  })
})

describe('a message of two kinds elsewhere', () => {
  it('is refused in a batch, beside its neighbours', async () => {
    const wire = await speak(server, '2025-03-26')
    ran.length = 0
    wire.say([both('2025-03-26', { result: {} }, 1), both('2025-03-26', {}, 2)])
    const [refused, answered] = [await wire.next(frame => frame['id'] === 1), await wire.next(frame => frame['id'] === 2)]
    expect([errorOf(refused).code, resultOf(answered)['content']]).toEqual([-32600, [{ type: 'text', text: 'noted' }]])
    expect(ran).toEqual(['note'])
    await wire.close()
  })

  it('is neither a notification nor an answer without an id: nothing hears it', async () => {
    const wire = await speak(server, '2025-11-25')
    wire.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 }, result: {} })
    await wire.quiet()
    const peer = await httpPeer(url, '2025-11-25')
    const headers = headersFor('2025-11-25', 'x', {}, peer.session)
    const answer = await send(url, { headers, body: { jsonrpc: '2.0', method: 'notifications/initialized', error: {} } })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32600])
    await wire.close()
  })

  it('is refused by a client too: what a server asks in an answer is not done', async () => {
    const scripted = sessionServer()
    let asked = 0
    const onSample = () => {
      asked++
      return { role: 'assistant', content: { type: 'text', text: 'yes' }, model: 'm' } as const
    }
    const client = await connect(scripted.connection, { revisions: ['2025-11-25'], onSample })
    scripted.send({ id: 'x', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 }, result: {} })
    await expect.poll(() => scripted.heard.find(({ id }) => id === 'x')).toMatchObject({ error: { code: -32600 } })
    expect(asked).toBe(0)
    await client.close()
  })

  it('settles no call of a client that it answers and refuses at once', async () => {
    const scripted = sessionServer({ 'tools/call': () => silence }, { tools: {} })
    const client = await connect(scripted.connection, { revisions: ['2025-11-25'] })
    const called = client.callTool('x', {})
    const { id } = await scripted.saw('tools/call')
    scripted.send({ id, result: { content: [] }, error: { code: 1, message: 'no' } })
    await expect(called).rejects.toThrow('both a result and an error')
    await client.close()
  })
})

describe('a second initialize', () => {
  it.each(sessionRevisions)('is refused on a pipe at %s, also by another revision, and changes nothing', async revision => {
    const wire = await speak(server, revision)
    for (const other of [revision, '2024-11-05' as const]) {
      wire.say(hello(other))
      const { code, message } = errorOf(await wire.next(frame => frame['id'] === 'again'))
      expect([code, message]).toEqual([-32600, expect.stringContaining(`already initialized at revision ${revision}`)])
    }
    expect(await wire.ask(callName(revision), { name: 'note', arguments: {} })).toHaveProperty('result')
    await wire.close()
  })

  it.each(overHttp)('is refused within its session over HTTP at %s; without the session id it opens another', async revision => {
    const peer = await httpPeer(url, revision)
    const headers = headersFor(revision, 'initialize', {}, peer.session)
    const answer = await send(url, { headers, body: hello(revision) })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32600])
    expect(answer.headers['mcp-session-id']).toBeUndefined()
    expect((await peer.ask('tools/list')).status).toBe(200)
    expect((await httpPeer(url, revision)).session).not.toBe(peer.session)
  })

  it('is refused on the event-stream pair', async () => {
    const { response, request } = await open(`${origin}/sse`, { method: 'GET', headers: { accept: 'text/event-stream' } })
    const stream = response.setEncoding('utf8')
    const [first] = (await once(stream, 'data')) as [string]
    const address = `${origin}${/data: (\S+)/.exec(first)?.[1]}`
    const coming = events(response)
    const ask = async (frame: Frame): Promise<Frame> => {
      const next = coming.next()
      await send(address, { headers: json, body: frame })
      return (await next).value?.frame as Frame
    }
    expect(resultOf(await ask(hello('2024-11-05', 1)))['protocolVersion']).toBe('2024-11-05')
    expect(errorOf(await ask(hello('2024-11-05', 2))).code).toBe(-32600)
    request.destroy()
  })

  it('is refused on a WebSocket', async () => {
    const socket = new WebSocket(`${origin.replace('http', 'ws')}/ws`, ['mcp'])
    await once(socket, 'open')
    const ask = async (frame: Frame): Promise<Frame> => {
      socket.send(JSON.stringify(frame))
      return JSON.parse(String((await once(socket, 'message'))[0]))
    }
    expect(resultOf(await ask(hello('2025-11-25', 1)))['protocolVersion']).toBe('2025-11-25')
    expect(errorOf(await ask(hello('2025-11-25', 2))).code).toBe(-32600)
    socket.terminate()
  })

  it('is refused while the first one is still on its way through middleware', async () => {
    const slow = createServer({ name: 'slow', version: '1.0.0' })
    slow.use(async (call, next) => {
      await new Promise(resolve => setImmediate(resolve))
      return next(call)
    })
    const wire = await speak(slow, '2025-11-25', { hello: false })
    wire.say(hello('2025-11-25', 1))
    wire.say(hello('2025-06-18', 2))
    const answers = [await wire.next(({ id }) => id === 1), await wire.next(({ id }) => id === 2)]
    expect(answers.map(frame => 'result' in frame)).toEqual([true, false])
    await slow.close()
  })
})

describe('around the handshake', () => {
  it('hears notifications/initialized once, however often it is sent', async () => {
    const counting = createServer({ name: 'counting', version: '1.0.0' })
    let ready = 0
    counting.engine.onReady.add(() => ready++)
    const wire = await speak(counting, '2025-11-25')
    for (let times = 0; times < 3; times++) wire.tell('notifications/initialized')
    await wire.quiet()
    expect(ready).toBe(1)
    await counting.close()
  })

  it('takes no request before it on a wire with sessions, but a ping with whatever members', async () => {
    const strict = createServer({ name: 'strict', version: '1.0.0', revisions: ['2025-11-25'] })
    strict.tool('note', {}, () => 'noted')
    const wire = await speak(strict, '2025-11-25', { hello: false })
    expect(errorOf(await wire.ask('tools/call', { name: 'note', arguments: {} })).message).toContain('initialize')
    expect(resultOf(await wire.ask('ping', { more: true }))).toEqual({})
    await strict.close()
  })

  it('is not part of a batch, and no answer is given to the rest of it', async () => {
    const wire = await speak(server, '2025-03-26', { hello: false })
    ran.length = 0
    wire.say([hello('2025-03-26', 1), both('2025-03-26', {}, 2)])
    expect(errorOf(await wire.next(() => true)).code).toBe(-32600)
    expect([ran, wire.heard.length]).toEqual([[], 1])
    await wire.close()
  })

  it('gives no server/discover to a session: that wire has none', async () => {
    const wire = await speak(server, '2025-11-25')
    expect(errorOf(await wire.ask('server/discover')).code).toBe(-32601)
    await wire.close()
  })
})
