/** Sessions and batches: traps 24 and 25, over real HTTP and pipes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { listenHttp } from '../../src/transports/http/listen.ts'
import { headersFor, httpPeer, json, open, send } from './http.ts'
import { callName, enveloped, errorOf, everyRevision, type Frame, helloParams, requestRevisions, speak } from './wire.ts'

let server: Server
let url: string

beforeAll(async () => {
  server = createServer({ name: 'sessions', version: '1.0.0', revisions: everyRevision })
  server.tool('echo', {}, () => 'here')
  url = (await server.listen()).url
})
afterAll(() => server.close())

const ofHttp: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25']
const request = (id: unknown, method: string, params: Frame = {}): Frame => ({ jsonrpc: '2.0', id, method, params })

describe.each(ofHttp)('trap 24: sessions at %s', revision => {
  it('names the session in the answer to the handshake, in visible ASCII', async () => {
    const { session } = await httpPeer(url, revision)
    expect(session).toMatch(/^[\x21-\x7e]{32,}$/)
  })

  it('answers 400 to whoever does not name it, also while it is the only one', async () => {
    const peer = await httpPeer(url, revision)
    for (const method of ['POST', 'GET', 'DELETE']) {
      const body = method === 'POST' ? request(1, 'tools/list') : undefined
      const answer = await send(url, { method, headers: headersFor(revision, 'tools/list', {}), body })
      expect([answer.status, errorOf(answer.frame).message]).toEqual([400, expect.stringContaining('Mcp-Session-Id')])
    }
    expect((await peer.ask('tools/list')).status).toBe(200)
  })

  it('answers 404 to a session that is not, by POST, GET and DELETE; names of Object.prototype included', async () => {
    for (const session of ['0', 'constructor', '__proto__', 'x'.repeat(200)]) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const body = method === 'POST' ? request(1, 'tools/list') : undefined
        const answer = await send(url, { method, headers: headersFor(revision, 'tools/list', {}, session), body })
        expect(answer.status).toBe(404)
        expect(answer.text.length).toBeLessThan(400)
      }
    }
  })

  it('is over after DELETE: 404 for everything, and a new handshake opens another', async () => {
    const peer = await httpPeer(url, revision)
    const headers = headersFor(revision, 'tools/list', {}, peer.session)
    expect((await send(url, { method: 'DELETE', headers })).status).toBe(200)
    expect((await send(url, { method: 'DELETE', headers })).status).toBe(404)
    expect((await send(url, { method: 'GET', headers })).status).toBe(404)
    expect((await peer.ask('tools/list')).status).toBe(404)
    expect((await httpPeer(url, revision)).session).not.toBe(peer.session)
  })

  it('belongs to its principal: to anybody else it is as unknown as one that never was', async () => {
    const listening = await listenHttp(server.acceptor, {
      identify: header => {
        const who = header('authorization')
        return who === undefined ? undefined : { id: who }
      },
    })
    const hello = { jsonrpc: '2.0', id: 0, method: 'initialize', params: helloParams(revision) }
    const opened = await send(listening.url, { headers: { ...json, authorization: 'ada' }, body: hello })
    const session = opened.headers['mcp-session-id'] as string
    const asking = async (method: string, who: string | undefined, more: Record<string, string> = {}) => {
      const headers = { ...headersFor(revision, 'tools/list', {}, session), authorization: who, ...more }
      return send(listening.url, { method, headers, body: method === 'POST' ? request(1, 'tools/list') : undefined })
    }
    for (const who of ['eve', undefined]) {
      const answers = [
        await asking('POST', who),
        await asking('GET', who),
        await asking('GET', who, { 'last-event-id': 'a-1' }),
        await asking('DELETE', who),
      ]
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
    }
    expect((await asking('POST', 'ada')).status).toBe(200)
    await listening.close()
  })

  it('takes answers only in a session: 400 without, 404 in one that is not, 202 in one', async () => {
    const peer = await httpPeer(url, revision)
    const body = { jsonrpc: '2.0', id: 99, result: {} }
    expect((await send(url, { headers: headersFor(revision, '', {}), body })).status).toBe(400)
    expect((await send(url, { headers: headersFor(revision, '', {}, 'gone'), body })).status).toBe(404)
    const taken = await send(url, { headers: headersFor(revision, '', {}, peer.session), body })
    expect([taken.status, taken.text]).toEqual([202, ''])
  })

  it('an event id that no stream of the session sent is a mistake of the request: the session is not gone (trap 2)', async () => {
    const peer = await httpPeer(url, revision)
    const headers = { ...headersFor(revision, '', {}, peer.session), 'last-event-id': 'nobody-1' }
    expect((await send(url, { method: 'GET', headers })).status).toBe(400)
  })
})

describe('rev 2026-07-28 §1.2: no sessions', () => {
  it.each(requestRevisions)('%s: GET and DELETE are 405, whatever else they carry', async revision => {
    const peer = await httpPeer(url, '2025-11-25')
    for (const method of ['GET', 'DELETE']) {
      const headers = { ...headersFor(revision, '', {}), 'mcp-session-id': peer.session, 'last-event-id': 'x-1' }
      const answer = await send(url, { method, headers })
      expect([answer.status, answer.headers.allow]).toEqual([405, 'POST'])
    }
  })

  it('a posted response is 400 and −32600: answers travel in the repeated request', async () => {
    const body = { jsonrpc: '2.0', id: 1, result: {} }
    const answer = await send(url, { headers: { ...json, 'mcp-protocol-version': '2026-07-28' }, body })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32600])
  })

  it('a server of stateless wires alone serves POST only, and ignores what names sessions', async () => {
    const modern = createServer({ name: 'modern', version: '1', revisions: ['2026-07-28'] })
    modern.tool('echo', {}, () => 'here')
    const listening = await modern.listen()
    for (const method of ['GET', 'DELETE']) expect((await send(listening.url, { method })).status).toBe(405)
    const peer = await httpPeer(listening.url, '2026-07-28')
    const answer = await peer.ask('tools/list', {}, { headers: { 'mcp-session-id': 'old', 'last-event-id': 'x-1' } })
    expect([answer.status, answer.headers['mcp-session-id']]).toEqual([200, undefined])
    await modern.close()
  })

  it('a notification is 202 and nothing else, known or not', async () => {
    const peer = await httpPeer(url, '2026-07-28')
    for (const method of ['notifications/cancelled', 'notifications/no/such']) {
      const headers = headersFor('2026-07-28', method, {})
      const answer = await send(url, {
        headers,
        body: { jsonrpc: '2.0', method, params: enveloped('2026-07-28', { requestId: 1 }) },
      })
      expect([answer.status, answer.text]).toEqual([202, ''])
    }
    expect((await peer.ask('tools/list')).status).toBe(200)
  })
})

describe('trap 25: batches at 2025-03-26', () => {
  const B = '2025-03-26'

  it('are answered in one array on a pipe: requests only, each under its id', async () => {
    const wire = await speak(server, B)
    wire.say([
      request('a', 'ping'),
      { jsonrpc: '2.0', method: 'notifications/x' },
      request(2, 'tools/call', { name: 'echo' }),
      request(3, 'no/such'),
      7,
    ])
    await wire.next(frame => frame['id'] === 'a')
    const gathered = JSON.parse(wire.texts.at(-1) ?? '') as Frame[]
    expect(gathered.map(each => each['id']).sort()).toEqual(['a', 2, 3, null].sort())
    expect(
      gathered
        .filter(each => each['error'] !== undefined)
        .map(each => errorOf(each).code)
        .sort(),
    ).toEqual([-32600, -32601])
    await wire.close()
  })

  it('are answered over HTTP in one array, or by 202 when nothing in them is a request', async () => {
    const peer = await httpPeer(url, B)
    const headers = headersFor(B, '', {}, peer.session)
    const both = await send(url, { headers, body: [request(1, 'ping'), request(2, 'tools/list')] })
    expect([both.status, both.frames.map(frame => frame['id']).sort()]).toEqual([200, [1, 2]])
    const silent = await send(url, {
      headers,
      body: [
        { jsonrpc: '2.0', method: 'notifications/x' },
        { jsonrpc: '2.0', id: 9, result: {} },
      ],
    })
    expect([silent.status, silent.text]).toEqual([202, ''])
  })

  it.each([
    ['empty', []],
    ['with a handshake in it', [request(1, 'initialize', helloParams(B))]],
    ['with a message of a stateless wire in it', [request(1, 'tools/list', enveloped('2026-07-28'))]],
  ])('%s: one −32600, and nothing of it runs', async (_name, batch) => {
    const wire = await speak(server, B)
    wire.say(batch)
    expect(errorOf(await wire.next(frame => frame['error'] !== undefined)).code).toBe(-32600)
    expect((await wire.quiet()).filter(frame => frame['id'] === 1)).toEqual([])
    await wire.close()
    const peer = await httpPeer(url, B)
    const answer = await send(url, { headers: headersFor(B, '', {}, peer.session), body: batch })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32600])
  })

  it('hold no batches: an array within one is refused by itself, and cannot get round the limit', async () => {
    const wire = await speak(server, B)
    const pings = Array.from({ length: 100 }, (_, at) => request(at, 'ping'))
    wire.say([request('a', 'ping'), pings, []])
    await wire.next(frame => frame['id'] === 'a')
    const gathered = JSON.parse(wire.texts.at(-1) ?? '') as Frame[]
    expect(gathered.map(each => (each['error'] === undefined ? 'ok' : errorOf(each).code)).sort()).toEqual([-32600, -32600, 'ok'])
    await wire.close()
  })

  it('leave out what was cancelled, and go out when the rest is there', async () => {
    const gated = createServer({ name: 'gated', version: '1' })
    gated.tool('wait', {}, () => new Promise<string>(() => {}))
    const wire = await speak(gated, B)
    wire.say([request('w', 'tools/call', { name: 'wait' }), request('p', 'ping')])
    await wire.quiet()
    expect(wire.heard.some(frame => frame['id'] === 'p')).toBe(false)
    wire.tell('notifications/cancelled', { requestId: 'w' })
    await wire.next(frame => frame['id'] === 'p')
    expect(wire.heard.some(frame => frame['id'] === 'w')).toBe(false)
    await wire.close()
  })

  it('before any handshake an array is one of that wire, where only ping is answered (§2.6)', async () => {
    const wire = await speak(server, B, { hello: false })
    wire.say([request(1, 'ping'), request(2, 'tools/list')])
    expect(await wire.next(frame => frame['id'] === 1)).toMatchObject({ result: {} })
    expect(errorOf(await wire.next(frame => frame['id'] === 2)).code).toBe(-32600)
    await wire.close()
  })

  it('on a server without sessions an array needs none', async () => {
    const loose = createServer({ name: 'loose', version: '1', sessions: false })
    loose.tool('echo', {}, () => 'here')
    const listening = await loose.listen()
    const answer = await send(listening.url, { body: [request(1, 'ping'), request(2, 'tools/list')] })
    expect([answer.status, answer.frames.length]).toEqual([200, 2])
    await loose.close()
  })
})

describe('trap 25: arrays on every other wire', () => {
  it.each(everyRevision.filter(id => id !== '2025-03-26'))('%s: −32600 and nothing runs', async revision => {
    const wire = await speak(server, revision)
    await wire.ask('tools/list')
    wire.say([request(1, callName(revision), enveloped(revision, { name: 'echo' }))])
    // A pipe on which no handshake was made may still be one of the wire with batches: there the claim decides.
    expect(errorOf(await wire.next(frame => frame['error'] !== undefined)).code).toBe(-32600)
    expect((await wire.quiet()).filter(frame => frame['id'] === 1 && frame['result'] !== undefined)).toEqual([])
    await wire.close()
  })

  it.each([...ofHttp.filter(id => id !== '2025-03-26'), ...requestRevisions])('%s over HTTP: 400 and −32600', async revision => {
    const peer = await httpPeer(url, revision)
    const headers = headersFor(revision, '', {}, peer.session)
    const answer = await send(url, { headers, body: [request(1, 'tools/list', enveloped(revision))] })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32600])
    expect((await open(url, { method: 'GET', headers })).response.destroy()).toBeDefined()
  })
})
