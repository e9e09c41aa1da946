/** Refusals before a call is known, or by a carrier: a problem for peers that declared it, the bare number for all others. */
import { Agent } from 'node:http'
import { PassThrough } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { headersFor, httpPeer, json, send } from '../../../../test/spec/http.ts'
import { enveloped, errorOf, type Frame, helloParams, official, speak } from '../../../../test/spec/wire.ts'
import { connect } from '../../../client/index.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { type RevisionId, revisionById } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/index.ts'
import { stdioServerConnection } from '../../../transports/stdio/server.ts'
import { classify } from './classify.ts'
import { problemExtension } from './messages.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function make(): Server {
  const server = createServer({
    name: 'refusing',
    version: '1.0.0',
    log: 'silent',
    limits: { frameBytes: 10_000 },
    revisions: official,
  })
  server.tool('big', {}, () => ({ content: [], structuredContent: { count: 1n as unknown as number } }))
  server.tool('rare', { rate: { perSecond: 0.25, burst: 1 } }, () => 'now')
  server.prompt('hello', {}, () => 'Hello')
  return server
}

function opened(): Server {
  const server = make()
  servers.push(server)
  return server
}

const knowing = (revision: RevisionId): Frame => extensionCapability(revisionById(revision), problemExtension)
const inSession = (revision: RevisionId): boolean => revisionById(revision).era === 'session'

function told(frame: Frame): Frame {
  const found = errorOf(frame).data?.[problemExtension] as Frame
  expectFits(found, 'error.schema.json')
  return found
}

const early = [
  ['a method that does not exist', 'no/such/method', {}, -32601, 'UNSUPPORTED', 'permanent'],
  ['parameters of the wrong kind', 'tools/call', { name: 7 }, -32602, 'INVALID_INPUT', 'invalid_input'],
  ['an unknown tool', 'tools/call', { name: 'none' }, -32602, 'RESOURCE_NOT_FOUND', 'permanent'],
  ['an unknown prompt', 'prompts/get', { name: 'none' }, -32602, 'RESOURCE_NOT_FOUND', 'permanent'],
] as const

describe.each(official)('refused at %s', revision => {
  it.each(early)('E11-1: %s is a problem for a peer that declared it', async (_, method, params, number, code, category) => {
    const wire = await speak(opened(), revision, { capabilities: knowing(revision) })
    const answer = await wire.ask(method, params)
    expect(errorOf(answer).code).toBe(number)
    expect(told(answer)).toMatchObject({ code, category })
  })

  it.each(early)('E11-1: %s is a number and words for any other peer', async (_, method, params, number) => {
    for (const capabilities of [{}, { extensions: { [problemExtension]: true } }, { extensions: [], experimental: 'all' }]) {
      const wire = await speak(opened(), revision, { capabilities })
      const error = errorOf(await wire.ask(method, params))
      expect([error.code, Object.keys(error)]).toEqual([number, ['code', 'message']])
    }
  })

  it('E11-1: a request that says nothing of its sender, under the name of a notification, is answered all the same', async () => {
    const wire = await speak(opened(), revision, { capabilities: knowing(revision) })
    for (const params of [undefined, {}, { _meta: 'none' }, { _meta: {} }]) {
      wire.say({ jsonrpc: '2.0', id: 'odd', method: 'notifications/roots/list_changed', params })
      expect(errorOf(await wire.next(frame => frame['id'] === 'odd')).code).toBe(-32601)
    }
  })

  it('E11-1: what is no message is a problem where a session remembers who sent it', async () => {
    const wire = await speak(opened(), revision, { capabilities: knowing(revision) })
    wire.say('{"jsonrpc":')
    const answer = await wire.next(frame => frame['error'] !== undefined)
    expect(errorOf(answer).code).toBe(-32700)
    if (inSession(revision)) expect(told(answer)).toMatchObject({ code: 'INVALID_INPUT', category: 'invalid_input' })
    else expect(Object.keys(errorOf(answer))).toEqual(['code', 'message'])
  })

  it('E11-1: a result that cannot be written is a problem', async () => {
    const wire = await speak(opened(), revision, { capabilities: knowing(revision) })
    const answer = await wire.ask('tools/call', { name: 'big' })
    expect(told(answer)).toMatchObject({ code: 'SERVER_ERROR', category: 'permanent', correlation_id: expect.any(String) })
  })

  it('E11-1: a line that is too long is a problem where a session remembers who sent it', async () => {
    const server = opened()
    const [input, output] = [new PassThrough(), new PassThrough()]
    server.acceptor.accept(stdioServerConnection({ input, output, limits: { frameBytes: 10_000 } }))
    const lines = output.setEncoding('utf8')[Symbol.asyncIterator]()
    const next = async (): Promise<Frame> => JSON.parse((await lines.next()).value as string)
    const say = (frame: Frame): void => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`)
    if (inSession(revision)) {
      say({ id: 1, method: 'initialize', params: helloParams(revision, knowing(revision)) })
      await next()
    }
    const params = { name: 'rare', arguments: { long: 'x'.repeat(20_000) } }
    say({ id: 2, method: 'tools/call', params: enveloped(revision, params, knowing(revision)) })
    const answer = await next()
    if (inSession(revision)) expect(told(answer)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', category: 'invalid_input' })
    else expect(Object.keys(errorOf(answer))).toEqual(['code', 'message'])
  })
})

describe('refused over HTTP', () => {
  let server: Server
  let url: string
  beforeAll(async () => {
    server = make()
    url = (await server.listen()).url
  })
  afterAll(() => server.close())

  const long = { name: 'rare', arguments: { long: 'x'.repeat(20_000) } }

  describe.each(official.filter(revision => revision !== '2024-11-05'))('at %s', revision => {
    it('E11-1: a body that is too long is a problem where a session remembers who sent it', async () => {
      const peer = await httpPeer(url, revision, knowing(revision))
      const { status, frame } = await peer.ask('tools/call', long)
      expect(status).toBe(413)
      if (inSession(revision)) expect(told(frame)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', category: 'invalid_input' })
      else expect(Object.keys(errorOf(frame))).toEqual(['code', 'message'])
    })

    it('E11-1: for any other peer it is a status, a number and words', async () => {
      const { status, frame } = await (await httpPeer(url, revision)).ask('tools/call', long)
      expect([status, Object.keys(errorOf(frame))]).toEqual([413, ['code', 'message']])
    })

    it('E11-1: a limit is a problem beside 429', async () => {
      const { session } = await httpPeer(url, revision, knowing(revision))
      const params = { name: 'rare' }
      const headers = headersFor(revision, 'tools/call', params, session)
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: enveloped(revision, params, knowing(revision)) }
      // Limits count by connection where nobody is known.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      await send(url, { agent, headers, body })
      const refused = await send(url, { agent, headers, body })
      agent.destroy()
      const found = told(refused.frame)
      expect([refused.status, refused.headers['retry-after']]).toEqual([429, String(found['retry_after_seconds'])])
      expect(found).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', category: 'rate_limited' })
    })

    it('E11-3: our client reads the same of it, told or not', async () => {
      const mcp = await connect(url, { revisions: [revision] })
      const error = await mcp.callTool(long.name, long.arguments).catch(thrown => thrown)
      expect(classify(error)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', category: 'invalid_input' })
      await mcp.close()
    })
  })

  it('E11-1: a request that contradicts its header is a problem for the sender that its envelope describes', async () => {
    const params = enveloped('2026-07-28', { name: 'rare' }, knowing('2026-07-28'))
    const headers = { ...headersFor('2026-07-28', 'tools/call', params), 'mcp-method': 'tools/list' }
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    expect(told((await send(url, { headers, body })).frame)).toMatchObject({ code: 'INVALID_INPUT', category: 'invalid_input' })
    const bare = { ...body, params: enveloped('2026-07-28', { name: 'rare' }) }
    expect(errorOf((await send(url, { headers, body: bare })).frame)).not.toHaveProperty('data')
  })
})

describe('whose session it is', () => {
  const post = (server: Server, id: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    server.fetch(
      new Request('http://localhost/mcp', { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) }),
      { principal: { id } },
    )

  it('E11-1: of another’s session a refusal tells no more than of one that never was', async () => {
    const server = opened()
    const hello = helloParams('2025-11-25', knowing('2025-11-25'))
    const open = await post(server, 'ann', { jsonrpc: '2.0', id: 1, method: 'initialize', params: hello })
    const session = open.headers.get('mcp-session-id') ?? ''
    const ask = async (who: string, named: string): Promise<string> =>
      (await post(server, who, { long: 'x'.repeat(20_000) }, { 'mcp-session-id': named })).text()
    expect(told(JSON.parse(await ask('ann', session)))).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    expect(await ask('bob', session)).toBe(await ask('bob', 'never-was'))
    expect(await ask('bob', session)).not.toContain(problemExtension)
  })
})
