/** Which wire a message is on, and what contradicting signals get: traps 1–8 and 21–22, over real HTTP and a pipe. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, McpError, type Server } from '../../src/server/index.ts'
import { headersFor, httpPeer, json, send } from './http.ts'
import {
  envelope,
  enveloped,
  errorOf,
  everyRevision,
  type Frame,
  helloParams,
  requestRevisions,
  resultOf,
  sessionRevisions,
  speak,
} from './wire.ts'

const E = '2026-07-28'
const keys = { version: 'io.modelcontextprotocol/protocolVersion', capabilities: 'io.modelcontextprotocol/clientCapabilities' }

let server: Server
let url: string

beforeAll(async () => {
  server = createServer({
    name: 'eras',
    version: '1.0.0',
    revisions: everyRevision,
    secret: 'a secret of more than thirty-two characters',
  })
  server.tool('echo', {}, () => 'here')
  server.tool('ask', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  server.tool('model', {}, async (_, ctx) => {
    await new Promise<void>(resolve => setImmediate(() => resolve()))
    await ctx.sample({ messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 5 })
  })
  server.resource('memo://one', { name: 'one' }, async (_, ctx) => JSON.stringify(await ctx.roots()))
  server.prompt('ask', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  server.tool('own', {}, () => {
    throw new McpError('invalid-params', 'no', { data: { why: 'because' } })
  })
  url = (await server.listen()).url
})
afterAll(() => server.close())

const request = (method: string, params: unknown, id: unknown = 1): Frame => ({ jsonrpc: '2.0', id, method, params }) as Frame
const post = (body: unknown, headers: Readonly<Record<string, string | undefined>> = {}) =>
  send(url, { headers: { ...json, ...headers }, body })

describe('trap 1: a handshake or ping in a modern envelope is an unknown method', () => {
  const params = { ...helloParams('2025-11-25'), _meta: envelope(E) }

  it.each(['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'no/such/method'])(
    '%s: 404 and −32601',
    async method => {
      const answer = await post(request(method, { ...params, level: 'info', uri: 'memo://one' }), headersFor(E, method, {}))
      expect([answer.status, errorOf(answer.frame).code, answer.headers['mcp-session-id']]).toEqual([404, -32601, undefined])
    },
  )

  it.each(requestRevisions)('also on a pipe, at %s', async revision => {
    const wire = await speak(server, revision)
    expect(errorOf(await wire.ask('initialize', helloParams('2025-11-25'))).code).toBe(-32601)
    expect(errorOf(await wire.ask('ping')).code).toBe(-32601)
    await wire.close()
  })
})

describe('trap 2: an unknown method is HTTP 404 on the stateless wires alone', () => {
  it.each(sessionRevisions.filter(id => id !== '2024-11-05'))('%s: 200 and −32601 in the body', async revision => {
    const peer = await httpPeer(url, revision)
    const answer = await peer.ask('no/such/method')
    expect([answer.status, errorOf(answer.frame).code]).toEqual([200, -32601])
  })

  it('a 404 of session wires means that the session is gone', async () => {
    const answer = await post(request('tools/list', {}), {
      'mcp-session-id': 'nobody-knows-it',
      'mcp-protocol-version': '2025-11-25',
    })
    expect(answer.status).toBe(404)
  })
})

describe('trap 3: no signal of an era quietly wins', () => {
  it('modern header, no _meta: 400 and −32602 that names the missing key', async () => {
    const answer = await post(request('tools/list', {}), { 'mcp-protocol-version': E, 'mcp-method': 'tools/list' })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32602])
    expect(errorOf(answer.frame).message).toContain(keys.version)
  })

  it('modern header, no _meta, in the session of an older wire: the same', async () => {
    const peer = await httpPeer(url, '2025-11-25')
    const answer = await peer.ask('tools/list', {}, { headers: { 'mcp-protocol-version': E } })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32602])
  })

  it('modern _meta, no header: 400 and −32020', async () => {
    const answer = await post(request('tools/list', enveloped(E)), { 'mcp-method': 'tools/list' })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32020])
  })

  it('modern _meta in the session of an older wire: served as it says, the session ignored', async () => {
    const peer = await httpPeer(url, '2025-06-18')
    const answer = await send(url, {
      headers: { ...headersFor(E, 'tools/list', {}), 'mcp-session-id': peer.session },
      body: request('tools/list', enveloped(E)),
    })
    expect([answer.status, resultOf(answer.frame)['resultType'], answer.headers['mcp-session-id']]).toEqual([
      200,
      'complete',
      undefined,
    ])
  })

  it('neither: an older wire, whose session is missing', async () => {
    const answer = await post(request('tools/list', {}))
    expect([answer.status, errorOf(answer.frame).message]).toEqual([400, expect.stringContaining('Mcp-Session-Id')])
  })

  it.each([
    ['no capabilities', { [keys.version]: E }],
    ['capabilities that are no object', { [keys.version]: E, [keys.capabilities]: [] }],
    ['a version that is no string', { [keys.version]: 7, [keys.capabilities]: {} }],
    ['a malformed clientInfo', { ...envelope(E), 'io.modelcontextprotocol/clientInfo': { name: 1 } }],
    ['an unknown log level', { ...envelope(E), 'io.modelcontextprotocol/logLevel': 'loud' }],
  ])('%s in _meta: 400 and −32602', async (_name, _meta) => {
    const answer = await post(request('tools/list', { _meta }), headersFor(E, 'tools/list', {}))
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32602])
  })
})

describe('trap 4: a header that differs from _meta is a mismatch before all else', () => {
  it.each(['1999-01-01', '2025-06-18', 'DRAFT-2026-v1'])('_meta says 2026-07-28, the header %s', async header => {
    const answer = await post(request('tools/list', enveloped(E)), {
      ...headersFor(E, 'tools/list', {}),
      'mcp-protocol-version': header,
    })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32020])
  })

  it('−32022 only when they agree on a version that is not spoken', async () => {
    const _meta = { ...envelope(E), [keys.version]: '2031-01-01' }
    const wrong = await post(request('tools/list', { _meta }), headersFor(E, 'tools/list', {}))
    expect([wrong.status, errorOf(wrong.frame).code]).toEqual([400, -32020])
    const agreed = await post(request('tools/list', { _meta }), {
      ...headersFor(E, 'tools/list', {}),
      'mcp-protocol-version': '2031-01-01',
    })
    expect([agreed.status, errorOf(agreed.frame).code]).toEqual([400, -32022])
  })

  it('the draft has numbers of its own: −32001 (§2.8)', async () => {
    const draft = 'draft-2026-v1'
    const body = request('tools/list', enveloped(draft))
    const other = await post(body, { ...headersFor(draft, 'tools/list', {}), 'mcp-protocol-version': E })
    expect([other.status, errorOf(other.frame).code]).toEqual([400, -32001])
    const method = await post(body, { ...headersFor(draft, 'tools/list', {}), 'mcp-method': 'tools/call' })
    expect([method.status, errorOf(method.frame).code]).toEqual([400, -32001])
  })
})

describe('trap 5: who calls need not be said, who answers is said in _meta', () => {
  it('takes a request of 2026-07-28 without clientInfo', async () => {
    const _meta = { [keys.version]: E, [keys.capabilities]: {} }
    const answer = await post(request('server/discover', { _meta }), headersFor(E, 'server/discover', {}))
    expect(answer.status).toBe(200)
    expect(resultOf(answer.frame)).not.toHaveProperty('serverInfo')
    expect(resultOf(answer.frame)['_meta']).toEqual({ 'io.modelcontextprotocol/serverInfo': { name: 'eras', version: '1.0.0' } })
  })

  it('refuses one of the draft without it: 400 and −32602 (§2.8)', async () => {
    const _meta = { [keys.version]: 'DRAFT-2026-v1', [keys.capabilities]: {} }
    const answer = await post(request('server/discover', { _meta }), headersFor('draft-2026-v1', 'server/discover', {}))
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32602])
  })
})

describe('trap 6: what is required is an object of capability objects, and HTTP says 400', () => {
  it.each([
    ['tools/call', { name: 'ask', arguments: {} }, { elicitation: {} }],
    ['tools/call', { name: 'model', arguments: {} }, { sampling: {} }],
    ['resources/read', { uri: 'memo://one' }, { roots: {} }],
    ['prompts/get', { name: 'ask' }, { elicitation: {} }],
  ] as const)('%s of %j at 2026-07-28: −32021', async (method, params, requiredCapabilities) => {
    const answer = await (await httpPeer(url, E)).ask(method, params)
    const { code, data } = errorOf(answer.frame)
    expect([answer.status, code, data]).toEqual([400, -32021, { requiredCapabilities }])
  })

  it('on the draft −32003 (§2.8)', async () => {
    const answer = await (await httpPeer(url, 'draft-2026-v1')).ask('tools/call', { name: 'ask' })
    const { code, data } = errorOf(answer.frame)
    expect([answer.status, code, data]).toEqual([400, -32003, { requiredCapabilities: { elicitation: {} } }])
  })

  it.each(sessionRevisions.filter(id => id !== 's3'))('at %s the tool itself reports that it cannot ask', async revision => {
    const wire = await speak(server, revision)
    expect(resultOf(await wire.ask('tools/call', { name: 'ask' }))['isError']).toBe(true)
    await wire.close()
  })

  it('on the dialect likewise (§3.1)', async () => {
    const wire = await speak(server, 's3')
    expect(resultOf(await wire.ask('tools/invoke', { name: 'ask' }))['status']).toBe('error')
    await wire.close()
  })
})

describe('trap 7: one list of versions', () => {
  const claim = (version: string): Frame => ({ _meta: { ...envelope(E), [keys.version]: version } })

  it('supported in the refusal is what discover says, requested what was asked', async () => {
    const wire = await speak(server, E)
    const { supportedVersions } = resultOf(await wire.ask('server/discover'))
    const { code, data } = errorOf(await wire.ask('tools/list', claim('2031-01-01')))
    expect([code, data]).toEqual([-32022, { supported: supportedVersions, requested: '2031-01-01' }])
    await wire.close()
  })

  it('a version of the older era in _meta is not spoken there', async () => {
    const wire = await speak(server, E)
    expect(errorOf(await wire.ask('tools/list', claim('2025-11-25'))).code).toBe(-32022)
    await wire.close()
  })

  it('a server of the draft alone says it by −32602 with the same data (§2.8)', async () => {
    const draft = createServer({ name: 'draft', version: '1', revisions: ['draft-2026-v1'] })
    const wire = await speak(draft, 'draft-2026-v1')
    const { code, data } = errorOf(await wire.ask('tools/list', claim(E)))
    expect([code, data]).toEqual([-32602, { supported: ['DRAFT-2026-v1'], requested: E }])
    await wire.close()
  })

  it('a server of the stateless wires alone says it to an older handshake (§2.6)', async () => {
    const modern = createServer({ name: 'modern', version: '1', revisions: [E] })
    const listening = await modern.listen()
    const answer = await send(listening.url, { body: request('initialize', helloParams('2025-11-25')) })
    expect([answer.status, errorOf(answer.frame)]).toEqual([
      400,
      { code: -32022, message: expect.any(String), data: { supported: [E], requested: '2025-11-25' } },
    ])
    await modern.close()
  })
})

describe('trap 8: the id', () => {
  it.each(everyRevision)('%s: errors and results echo it with its JSON type', async revision => {
    const wire = await speak(server, revision)
    for (const id of ['7', 7, '', 0, -1, Number.MAX_SAFE_INTEGER]) {
      expect(await wire.ask('tools/list', {}, id)).toMatchObject({ id })
      expect(errorOf(await wire.ask('no/such/method', {}, id))).toBeDefined()
    }
    await wire.close()
  })

  const unreadable: readonly string[] = [
    '{"jsonrpc":"2.0","id":',
    '7',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
  ]
  const omitting: readonly RevisionId[] = ['2025-11-25', '2026-07-28', 'draft-2026-v1']

  it.each(everyRevision)('%s: one that could not be read is left out from D on, and null before', async revision => {
    const wire = await speak(server, revision)
    await wire.ask('tools/list')
    for (const text of unreadable) {
      wire.say(text)
      const answer = await wire.next(frame => frame['error'] !== undefined && frame['method'] === undefined)
      expect('id' in answer ? answer['id'] : 'left out').toBe(omitting.includes(revision) ? 'left out' : null)
    }
    await wire.close()
  })

  it.each(sessionRevisions.filter(id => id !== '2024-11-05'))(
    '%s over HTTP: likewise, by the wire of the session',
    async revision => {
      const peer = await httpPeer(url, revision)
      for (const text of unreadable) {
        const { status, frame } = await send(url, { headers: headersFor(revision, 'ping', {}, peer.session), body: text })
        expect([status, 'id' in frame ? frame['id'] : 'left out']).toEqual([400, omitting.includes(revision) ? 'left out' : null])
      }
    },
  )

  it.each(everyRevision)('%s: a readable one is echoed though the rest is no message', async revision => {
    const wire = await speak(server, revision)
    await wire.ask('tools/list')
    for (const message of [
      { jsonrpc: '2.0', id: 5, method: 7 },
      { jsonrpc: '1.0', id: 5, method: 'ping' },
      { id: 5, method: 'ping' },
      { jsonrpc: '2.0', id: 5 },
      { jsonrpc: '2.0', id: 5, method: 'ping', params: [] },
    ]) {
      wire.say(message)
      const answer = await wire.next(frame => frame['error'] !== undefined)
      expect([answer['id'], errorOf(answer).code]).toEqual([5, -32600])
    }
    await wire.close()
  })
})

describe('trap 21: a handshake that asks for what is not spoken gets a counter-offer', () => {
  it.each(['2026-07-28', 'DRAFT-2026-v1', '1999-01-01', 'nonsense', ''])('%j: the newest of the older wires', async version => {
    const wire = await speak(server, '2025-11-25', { hello: false })
    const answer = await wire.ask('initialize', { ...helloParams('2025-11-25'), protocolVersion: version })
    expect(resultOf(answer)['protocolVersion']).toBe('2025-11-25')
    await wire.close()
  })

  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const)('%s is echoed', async revision => {
    const wire = await speak(server, revision)
    expect(resultOf(wire.hello ?? {})['protocolVersion']).toBe(revision)
    await wire.close()
  })

  it('the name that early peers had for the first wire is taken for it', async () => {
    const wire = await speak(server, '2024-11-05', { hello: false })
    const answer = await wire.ask('initialize', { ...helloParams('2024-11-05'), protocolVersion: '2024-10-07' })
    expect(resultOf(answer)['protocolVersion']).toBe('2024-11-05')
    await wire.close()
  })

  it('over HTTP it needs no version header, and a strange one does no harm', async () => {
    for (const header of [undefined, '1999-01-01']) {
      const answer = await post(request('initialize', helloParams('2025-11-25')), { 'mcp-protocol-version': header })
      expect([answer.status, resultOf(answer.frame)['protocolVersion']]).toEqual([200, '2025-11-25'])
    }
  })

  it.each([{}, { protocolVersion: 7 }, { protocolVersion: '2025-11-25' }, { protocolVersion: '2025-11-25', capabilities: {} }])(
    'without what it must have it fails with −32602: %j',
    async params => {
      const plain = createServer({ name: 'plain', version: '1' })
      const wire = await speak(plain, '2025-11-25', { hello: false })
      expect(errorOf(await wire.ask('initialize', params)).code).toBe(-32602)
      await wire.close()
    },
  )
})

describe('trap 22: the version header on older wires', () => {
  it.each(['2025-06-18', '2025-11-25'] as const)('%s: absent, the session knows better', async revision => {
    const peer = await httpPeer(url, revision)
    const answer = await peer.ask('tools/list', {}, { headers: { 'mcp-protocol-version': undefined } })
    expect(answer.status).toBe(200)
  })

  it.each(['2025-06-18', '2025-11-25'] as const)('%s: one that is not spoken is 400, on POST, GET and DELETE', async revision => {
    const peer = await httpPeer(url, revision)
    const strange = { 'mcp-protocol-version': '1999-01-01' }
    const posted = await peer.ask('tools/list', {}, { headers: strange })
    expect([posted.status, errorOf(posted.frame).code]).toEqual([400, -32602])
    expect(errorOf(posted.frame).message).toContain(revision)
    for (const method of ['GET', 'DELETE']) {
      const { status } = await send(url, { method, headers: { ...headersFor(revision, '', {}, peer.session), ...strange } })
      expect(status).toBe(400)
    }
    expect((await peer.ask('tools/list')).status).toBe(200)
  })

  it('a server without sessions takes no header for 2025-03-26', async () => {
    const loose = createServer({ name: 'loose', version: '1', sessions: false })
    loose.tool('media', { title: 'Named', output: { type: 'object' } }, () => ({}))
    const listening = await loose.listen()
    const bare = await send(listening.url, { body: request('tools/list', {}) })
    expect(resultOf(bare.frame)['tools']).toEqual([
      { name: 'media', inputSchema: expect.anything(), annotations: { title: 'Named' } },
    ])
    const named = await send(listening.url, {
      headers: { ...json, 'mcp-protocol-version': '2025-06-18' },
      body: request('tools/list', {}),
    })
    expect(resultOf(named.frame)['tools']).toEqual([
      { name: 'media', title: 'Named', inputSchema: expect.anything(), outputSchema: { type: 'object' } },
    ])
    await loose.close()
  })
})
