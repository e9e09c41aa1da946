/** Every failure with its wire's number and its HTTP status (§1.3, §2.4). */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, McpError, problem, type Server } from '../../src/server/index.ts'
import { expectLog } from '../log-lines/lines.ts'
import { type Answer, type HttpPeer, headersFor, httpPeer, send } from './http.ts'
import {
  callName,
  enveloped,
  errorOf,
  everyRevision,
  type Frame,
  requestRevisions,
  resultOf,
  sessionRevisions,
  speak,
} from './wire.ts'

expectLog('internal', /server=failures/)

let server: Server
let url: string

beforeAll(async () => {
  server = createServer({ name: 'failures', version: '1.0.0', revisions: everyRevision })
  server.tool('echo', {}, () => 'here')
  server.tool('protocol', {}, () => {
    throw new McpError('invalid-params', 'The author says no', { data: { field: 'x' } })
  })
  server.tool('own', {}, () => {
    throw new McpError('my-kind', 'A number of its own', { code: 1234 })
  })
  server.tool('cyclic', {}, () => {
    const loop: Record<string, unknown> = {}
    loop['loop'] = loop
    return loop
  })
  server.tool('baddata', {}, () => {
    throw new McpError('invalid-params', 'Data that JSON cannot hold', { data: { big: 10n } })
  })
  server.tool('liar', { output: { type: 'object', required: ['id'] } }, () => ({}))
  server.tool('refuses', {}, () => {
    throw problem('INVALID_INPUT', 'The title is too short', { suggestion: 'Use at least 3 characters' })
  })
  server.prompt('breaks', {}, () => {
    throw new Error('secret detail')
  })
  server.prompt('nothing', {}, () => undefined as unknown as string)
  server.prompt('refuses', {}, () => {
    throw problem('INVALID_INPUT', 'No such topic', { suggestion: 'Ask for another' })
  })
  server.resource('memo://breaks', { name: 'breaks' }, () => {
    throw new Error('secret detail')
  })
  url = (await server.listen()).url
})
afterAll(() => server.close())

const http: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25', ...requestRevisions]

describe.each(http)('over HTTP at %s', revision => {
  let peer: HttpPeer
  beforeAll(async () => {
    peer = await httpPeer(url, revision)
  })
  const stateless = requestRevisions.includes(revision)
  const raw = (body: string | Buffer, more: Record<string, string | undefined> = {}): Promise<Answer> =>
    send(url, { headers: { ...headersFor(revision, 'tools/list', {}, peer.session), ...more }, body })
  const good = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: enveloped(revision) })

  it.each([
    ['no JSON', '{"jsonrpc":', 400, -32700],
    ['nothing', '', 400, -32700],
    ['JSON with a comma too many', '{"jsonrpc":"2.0","id":1,"method":"ping",}', 400, -32700],
    ['a number', '7', 400, -32600],
    ['null', 'null', 400, -32600],
    ['a string', '"ping"', 400, -32600],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600],
    ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":{}}', 400, -32600],
    ['params that are an array', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, -32600],
    ['params that are a string', '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', 400, -32600],
    ['a null id', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600],
    ['a fraction for an id', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600],
    ['an id beyond what survives', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', 400, -32600],
    ['an object for an id', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600],
    ['true for an id', '{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600],
  ])('%s: its status and number, and a message that says what would be right', async (_name, body, status, code) => {
    const answer = await raw(body)
    expect([answer.status, errorOf(answer.frame).code]).toEqual([status, code])
    expect(errorOf(answer.frame).message).toMatch(/[Ss]end|expected|must/)
  })

  it('text that is not UTF-8: 400 and −32700, and nothing runs', async () => {
    const answer = await raw(
      Buffer.from([...Buffer.from('{"jsonrpc":"2.0","id":1,"method":"'), 0xc3, 0x28, ...Buffer.from('"}')]),
    )
    expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32700])
  })

  it.each([
    ['text/plain', 415],
    ['text/plain; x=application/json', 415],
    ['application/jsonp', 415],
    ['application/json; charset=latin1', 415],
    ['', 415],
    [undefined, 415],
    ['application/json; charset=utf-8', 200],
    ['APPLICATION/JSON', 200],
  ])('Content-Type %s: %i', async (type, status) => {
    expect((await raw(good, { 'content-type': type })).status).toBe(status)
  })

  it('a compressed body: 415, and what to do', async () => {
    const answer = await raw(good, { 'content-encoding': 'gzip' })
    expect([answer.status, errorOf(answer.frame).message]).toEqual([415, expect.stringContaining('uncompressed')])
  })

  it.each([
    ['image/png', 406],
    ['application/json', 200],
    ['*/*', 200],
    [undefined, 200],
  ])('Accept %s: %i', async (accept, status) => {
    expect((await raw(good, { accept })).status).toBe(status)
  })

  it.each([
    ['https://evil.example', 403],
    ['null', 403],
    ['http://localhost.evil.example', 403],
    ['http://localhost:3000', 200],
  ])('Origin %s: %i', async (origin, status) => {
    expect((await raw(good, { origin })).status).toBe(status)
  })

  it('a foreign Host: 403; two of them: 400', async () => {
    expect((await raw(good, { host: 'evil.example' })).status).toBe(403)
    const port = Number(new URL(url).port)
    const text = await new Promise<string>(resolve => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.end(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\ncontent-length: 0\r\n\r\n`),
      )
      let all = ''
      socket.on('data', chunk => {
        all += chunk
      })
      socket.on('close', () => resolve(all))
    })
    expect(text).toMatch(/^HTTP\/1.1 400/)
  })

  it.each(['PUT', 'PATCH', 'HEAD'])('%s: 405', async method => {
    expect((await send(url, { method, headers: headersFor(revision, '', {}, peer.session) })).status).toBe(405)
  })

  it('an unknown method: −32601, and HTTP 404 on the stateless wires alone', async () => {
    for (const method of ['no/such', 'constructor', '__proto__', '', 'TOOLS/LIST', 'tools/list ']) {
      const answer = await peer.ask(
        method,
        {},
        { headers: { 'mcp-method': encodeURI(method) === method && method !== '' ? method : undefined } },
      )
      const codes = [answer.status, errorOf(answer.frame).code]
      if (stateless && (method === '' || method === 'tools/list ')) expect(codes[0]).toBe(400)
      else expect(codes).toEqual([stateless ? 404 : 200, -32601])
    }
  })

  it('a notification where a request belongs and the other way round: unknown, and silence', async () => {
    const answer = await peer.ask('notifications/cancelled', { requestId: 1 })
    expect([answer.status, errorOf(answer.frame).code]).toEqual([stateless ? 404 : 200, -32601])
    const told = await peer.tell('tools/list', enveloped(revision))
    expect([told.status, told.text]).toEqual([202, ''])
  })

  it('a notification that cannot be accepted: 4xx with an error that has no id', async () => {
    const headers = headersFor(revision, 'notifications/cancelled', {}, peer.session)
    const body = { jsonrpc: '2.0', method: 'notifications/cancelled', params: enveloped(revision, { requestId: {} }) }
    const answer = await send(url, { headers, body })
    expect([answer.status, errorOf(answer.frame).code, answer.frame['id'] ?? 'none']).toEqual([400, -32602, 'none'])
  })

  it.each([
    ['tools/call', { name: 'nobody' }, -32602],
    ['tools/call', {}, -32602],
    ['tools/call', { name: 7 }, -32602],
    ['tools/call', { name: 'protocol' }, -32602],
    ['tools/call', { name: 'own' }, 1234],
    ['tools/call', { name: 'cyclic' }, -32603],
    ['tools/call', { name: 'baddata' }, -32602],
    ['tools/call', { name: 'liar' }, -32603],
    ['prompts/get', { name: 'nobody' }, -32602],
    ['prompts/get', { name: 'breaks' }, -32603],
    ['prompts/get', { name: 'nothing' }, -32603],
    ['prompts/get', { name: 'refuses' }, -32602],
    ['resources/read', { uri: 'memo://breaks' }, -32603],
    ['resources/read', { uri: 7 }, -32602],
    ['tools/list', { cursor: 'made up' }, -32602],
  ] as const)('%s %j: HTTP 200 and %i', async (method, params, code) => {
    const answer = await peer.ask(method, params)
    expect([answer.status, errorOf(answer.frame).code]).toEqual([200, code])
    expect(answer.text).not.toContain('secret detail')
  })

  it('a failure after the stream has begun is an event: the status is out', async () => {
    server.tool(`late-${revision}`, {}, async (_, ctx) => {
      ctx.progress(1)
      throw new McpError('invalid-params', 'too late')
    })
    const answer = await peer.ask('tools/call', { name: `late-${revision}`, _meta: { progressToken: 1 } })
    expect([answer.status, answer.headers['content-type'], errorOf(answer.frame).code]).toEqual([
      200,
      'text/event-stream',
      -32602,
    ])
  })

  it('a refusal with a way out keeps its words in the result of a tool', async () => {
    const { isError, content } = resultOf((await peer.ask('tools/call', { name: 'refuses' })).frame)
    expect([isError, content]).toEqual([true, [{ type: 'text', text: 'The title is too short. Use at least 3 characters' }]])
  })

  it('after all of that the next request is served', async () => {
    expect((await peer.ask('tools/call', { name: 'echo' })).status).toBe(200)
  })
})

describe('a page that must be visited first (D §1.6)', () => {
  it.each(everyRevision)('%s: −32042 with its pages where the wire has them, else an internal failure', async revision => {
    const pages = createServer({ name: 'pages', version: '1', revisions: everyRevision })
    pages.tool('gated', {}, () => {
      const elicitations = [{ mode: 'url', elicitationId: 'x', url: 'https://example.com', message: 'Visit' }]
      throw new McpError('url-elicitation-required', 'Visit the page first', { data: { elicitations } })
    })
    const wire = await speak(pages, revision)
    const { code } = errorOf(await wire.ask(callName(revision), { name: 'gated' }))
    expect(code).toBe(revision === '2025-11-25' || revision === 'draft-2026-v1' ? -32042 : -32603)
    await wire.close()
  })
})

describe.each(['2024-11-05', 's3'] as const)('on a pipe at %s', revision => {
  it.each([
    ['no/such', {}, -32601],
    ['call', { name: 'nobody' }, -32602],
    ['call', {}, -32602],
    ['prompts/get', { name: 'breaks' }, -32603],
    ['resources/read', { uri: 'memo://nobody' }, -32002],
  ] as const)('%s %j: %i', async (method, params, code) => {
    const wire = await speak(server, revision)
    expect(errorOf(await wire.ask(method === 'call' ? callName(revision) : method, params)).code).toBe(code)
    await wire.close()
  })
})

describe.each(sessionRevisions)('before the handshake at %s (§2.6)', revision => {
  it('only ping is answered; everything else is told what to send first', async () => {
    const plain = createServer({ name: 'plain', version: '1' })
    plain.tool('echo', {}, () => 'here')
    const wire = await speak(plain, revision, { hello: false })
    expect(resultOf(await wire.ask('ping'))).toEqual({})
    for (const method of ['tools/list', 'no/such', 'logging/setLevel']) {
      const { code, message } = errorOf(await wire.ask(method))
      expect([code, message]).toEqual([-32600, expect.stringContaining('initialize')])
    }
    for (const method of ['tools/invoke', 'shutdown']) expect(errorOf(await wire.ask(method)).code).toBe(-32601)
    await wire.close()
  })
})

describe('both eras on one pipe (§2.6)', () => {
  it('interleave: each message is answered on its own wire', async () => {
    const wire = await speak(server, '2025-06-18')
    const modern = await wire.ask('tools/list', enveloped('2026-07-28'))
    const older = await wire.ask('tools/list')
    const draft = await wire.ask('tools/list', enveloped('draft-2026-v1'))
    const again = await wire.ask('ping')
    expect([modern, older, draft, again].map(frame => [resultOf(frame)['resultType'], resultOf(frame)['ttlMs']])).toEqual([
      ['complete', 0],
      [undefined, undefined],
      ['complete', undefined],
      [undefined, undefined],
    ])
    await wire.close()
  })

  it('and a cancel without a version finds the call of either', async () => {
    const stopped: string[] = []
    const gated = createServer({ name: 'gated', version: '1' })
    gated.tool('wait', { input: { type: 'object' } }, (args, ctx) => {
      ctx.signal.addEventListener('abort', () => stopped.push(String((args as Frame)['who'])))
      return new Promise<string>(() => {})
    })
    const wire = await speak(gated, '2025-11-25')
    const ids = [
      wire.begin('tools/call', { name: 'wait', arguments: { who: 'older' } }),
      wire.begin('tools/call', enveloped('2026-07-28', { name: 'wait', arguments: { who: 'modern' } })),
    ]
    await wire.quiet()
    for (const requestId of ids) wire.tell('notifications/cancelled', { requestId })
    await wire.quiet()
    expect(stopped).toEqual(['older', 'modern'])
    await wire.close()
  })
})
