import { afterEach, describe, expect, it } from 'vitest'
import {
  discovery,
  type Frame,
  modernServer,
  type ScriptedServer,
  said,
  sessionServer,
  silence,
} from '../../test/client/scripted-server.ts'
import { afterTest, cleanUp, events, json, serve } from '../../test/transports/http-test-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

const traced: { event: string; detail: unknown }[] = []

async function open(server: ScriptedServer, options: ConnectOptions = {}): Promise<Client> {
  traced.length = 0
  const mcp = await connect(server.connection, { onTrace: (event, detail) => traced.push({ event, detail }), ...options })
  afterTest(() => mcp.close())
  return mcp
}

const names = () => traced.map(({ event }) => event)

/** From JSON: an object that cannot be made a text. */
const unprintable = { toString: 1, valueOf: 1 }

describe('values that cannot be made a text', () => {
  it('are left out of the text of a result, alone or among others', async () => {
    const strange = { type: 'text', text: unprintable }
    const answers = [[strange], [strange, { type: 'text', text: 'a' }, null]]
    const mcp = await open(sessionServer({ 'tools/call': () => ({ content: answers.shift() }) }))
    expect([(await mcp.callTool('t')).text, (await mcp.callTool('t')).text]).toEqual(['', '\na'])
  })

  it.each<[string, Frame]>([
    ['the kind of a result', { resultType: unprintable }],
    ['a question', { resultType: 'input_required', inputRequests: { a: { method: unprintable } } }],
  ])('are refused as %s', async (_, result) => {
    const mcp = await open(modernServer({ 'tools/call': () => result }))
    await expect(mcp.callTool('t')).rejects.toMatchObject({ name: 'McpError' })
  })

  it('are no versions that a server speaks', async () => {
    const versions = [unprintable, [unprintable], 7, '1999-01-01'] as unknown as string[]
    const server = modernServer({ 'server/discover': () => discovery({}, versions) })
    await expect(open(server)).rejects.toMatchObject({
      kind: 'version-unsupported',
      message: expect.stringContaining('versions 1999-01-01.'),
    })
  })

  it('are passed over as the name of a tool, and as the dialect of its schema', async () => {
    const tools = [{ name: unprintable }, { name: 't', inputSchema: {}, outputSchema: { $schema: unprintable } }]
    const mcp = await open(
      modernServer({
        'tools/list': () => ({ resultType: 'complete', tools }),
        'tools/call': () => said('x', { structuredContent: {} }),
      }),
    )
    const seen: string[] = []
    for await (const tool of mcp.tools()) seen.push(tool.name)
    expect(seen).toEqual(['t'])
    expect((await mcp.callTool('t')).text).toBe('x')
  })
})

describe('answers that are none', () => {
  it.each<[string, (id: number) => unknown]>([
    ['the id as text (H3)', id => String(id)],
    ['the id in another notation (H4)', id => `0x${id.toString(16)}`],
    ['a fraction', id => id + 0.5],
    ['null', () => null],
    ['an object', id => ({ id })],
    ['a list', id => [id]],
    ['a number beyond all bounds', () => 1e300],
    ['a text of a megabyte', () => 'x'.repeat(1_000_000)],
    ['true', () => true],
  ])('under %s answer nothing; the right one still does', async (_, wrong) => {
    const server = sessionServer({ 'tools/call': () => silence })
    const mcp = await open(server)
    const call = mcp.callTool('t')
    const { id } = await server.saw('tools/call')
    server.send({ id: wrong(id as number), result: said('wrong') })
    server.send({ id: wrong(id as number), error: { code: 1, message: 'wrong' } })
    server.send({ id, result: said('right') })
    expect((await call).text).toBe('right')
    expect(names().filter(event => event === 'answer-to-nothing' || event === 'message-refused')).toHaveLength(2)
    expect(JSON.stringify(traced).length).toBeLessThan(10_000)
  })

  it('that nobody waits for, or that come twice, are dropped', async () => {
    const server = sessionServer({ 'tools/call': () => said('first') })
    const mcp = await open(server)
    server.send({ id: 4711, result: {} })
    expect((await mcp.callTool('t')).text).toBe('first')
    const [{ id } = {}] = server.of('tools/call')
    server.send({ id, result: said('second') })
    server.send({ id, error: { code: 1, message: 'third' } })
    expect((await mcp.callTool('t')).text).toBe('first')
    expect(names().filter(event => event === 'answer-to-nothing')).toHaveLength(3)
  })

  it.each<[string, Frame]>([
    ['has neither a result nor an error', {}],
    ['has an error that is a text', { error: 'no' }],
    ['has an error without a code', { error: { message: 'no' } }],
    ['has an error that is null', { error: null }],
    ['has an error with a message of a megabyte', { error: { code: 1, message: 'x'.repeat(1_000_000) } }],
    ['claims another version of JSON-RPC', { jsonrpc: '1.0', result: said('x') }],
  ])('for what %s fail the call at once, in few words', async (_, body) => {
    const server = sessionServer({ 'tools/call': () => silence })
    const mcp = await open(server)
    const call = mcp.callTool('t').catch(error => error)
    const { id } = await server.saw('tools/call')
    server.send({ id, ...body })
    const error = await call
    expect(error).toMatchObject({ name: 'McpError' })
    expect(error.message.length).toBeLessThan(1_100)
    server.on('tools/call', () => said('alive'))
    expect((await mcp.callTool('t')).text).toBe('alive')
  })

  const deep = `${'{"properties":{"a":'.repeat(2_500)}{}${'}}'.repeat(2_500)}`
  const envelopes: [string, (id: unknown, result: string) => string][] = [
    ['first', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`],
    ['last', (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`],
    ['between', (id, result) => `{ "jsonrpc": "2.0", "result": ${result}, "id": ${id} }`],
  ]

  it.each(envelopes)(
    'that are too deep in one tool hide that tool and name it, not the list (H9; the id stands %s)',
    async (_, write) => {
      const server = sessionServer({ 'tools/list': () => silence })
      const mcp = await open(server)
      const names = (async () => {
        const found: string[] = []
        for await (const { name } of mcp.tools()) found.push(name)
        return found
      })()
      const { id } = await server.saw('tools/list')
      const tools = [
        '"name":"a","inputSchema":{}',
        `"name":"deep","inputSchema":${deep}`,
        `"name":"out","inputSchema":{},"outputSchema":${deep}`,
      ]
      server.sendText(
        write(id, `{"tools":[${[...tools, '"name":"z","inputSchema":{"type":"object"}'].map(tool => `{${tool}}`).join(',')}]}`),
      )
      expect(await names).toEqual(['a', 'z'])
      expect(traced.filter(({ event }) => event === 'tool-hidden').map(({ detail }) => detail)).toEqual([
        { tool: 'deep', fault: expect.stringContaining('too deeply') },
        { tool: 'out', fault: expect.stringContaining('too deeply') },
      ])
    },
  )

  it.each([
    ['beside the tools', 'tools/list', `{"tools":[{"name":"t","inputSchema":{}}],"_meta":${deep}}`],
    ['in both places', 'tools/list', `{"tools":[{"name":"t","inputSchema":${deep}}],"_meta":${deep}}`],
    ['in what is no list', 'tools/list', `{"tools":${deep}}`],
    ['in another answer', 'tools/call', `{"content":[],"structuredContent":${deep},"tools":[${deep}]}`],
  ])('that are too deep %s fail the call at once', async (_, method, result) => {
    const server = sessionServer({ [method]: () => silence })
    const mcp = await open(server)
    const call: Promise<unknown> = method === 'tools/list' ? mcp.tools().next() : mcp.callTool('t')
    const failed = call.catch(error => error)
    const { id } = await server.saw(method)
    server.sendText(`{"jsonrpc":"2.0","id":${id},"result":${result}}`)
    expect(await failed).toMatchObject({ kind: 'invalid-result', message: expect.stringContaining('128 levels') })
    server.on('tools/list', () => ({ tools: [] }))
    expect(await mcp.tools().next()).toEqual({ done: true, value: undefined })
  })
})

describe('messages that are none', () => {
  it.each([
    'nonsense',
    '{',
    '[]',
    '[1]',
    'null',
    '7',
    '"text"',
    '{}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":7}',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":[]}',
  ])('%s are dropped with a trace, and nothing is sent back', async text => {
    const server = modernServer({ 'tools/call': () => said('alive') })
    const mcp = await open(server)
    server.sendText(text)
    expect((await mcp.callTool('t')).text).toBe('alive')
    expect(server.heard.map(({ method }) => method)).toEqual(['server/discover', 'tools/call'])
    expect(traced.length).toBeGreaterThan(0)
  })

  it('in a batch are taken where the wire has batches, and dropped elsewhere', async () => {
    const batch = '[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},7,{"jsonrpc":"2.0","id":9,"method":"ping"}]'
    const old = sessionServer({}, {}, '2025-03-26')
    const mcp = await open(old)
    const changed = mcp.changes('tools').next()
    old.sendText(batch)
    expect((await changed).done).toBe(false)
    await old.until(() => old.heard.find(frame => Array.isArray(frame)))
    const newer = sessionServer({ ping: () => ({}) })
    const other = await open(newer)
    newer.sendText(batch)
    await other.ping()
    expect(newer.heard.filter(frame => Array.isArray(frame) || frame['method'] === undefined)).toEqual([])
  })
})

describe('notifications without end', () => {
  it('of progress do not keep a call alive beyond its total (H7)', async () => {
    const clock = fakeClock()
    const server = sessionServer({ 'tools/call': () => silence })
    const mcp = await open(server, { clock, revisions: ['2025-11-25'] })
    let failed: unknown
    let heard = 0
    mcp.callTool('t', {}, { timeout: '1s', onProgress: () => heard++ }).catch(error => {
      failed = error
    })
    const { id } = await server.saw('tools/call')
    let told = 0
    while (failed === undefined && told < 2_000) {
      await server.tell('notifications/progress', { progressToken: id, progress: ++told })
      clock.advance(500)
    }
    await new Promise(setImmediate)
    expect(failed).toMatchObject({ kind: 'timeout' })
    expect(heard).toBe(1_200)
  })

  it('of every kind, in every shape, hurt nobody', async () => {
    const server = sessionServer({ ping: () => ({}) })
    const mcp = await open(server)
    const methods = [
      'progress',
      'message',
      'cancelled',
      'tools/list_changed',
      'resources/updated',
      'resources/list_changed',
      'prompts/list_changed',
      'elicitation/complete',
      'tasks/status',
      'unheard/of',
      '__proto__',
      'constructor',
    ]
    const shapes: unknown[] = [
      undefined,
      {},
      { uri: 7 },
      { progressToken: {} },
      { requestId: null },
      { requestId: 1 },
      { __proto__: null, taskId: 1 },
    ]
    for (const method of methods)
      for (const params of shapes) server.send({ method: `notifications/${method}`, ...(params === undefined ? {} : { params }) })
    await mcp.ping()
    expect(server.heard.filter(frame => frame['method'] === undefined)).toEqual([])
  })

  it('that cancel our own calls do not: a server answers what it is asked', async () => {
    const server = sessionServer({ 'tools/call': () => silence })
    const mcp = await open(server)
    const call = mcp.callTool('t')
    const { id } = await server.saw('tools/call')
    await server.tell('notifications/cancelled', { requestId: id })
    server.send({ id, result: said('still') })
    expect((await call).text).toBe('still')
  })
})

describe('hostile answers over HTTP', () => {
  /** Modern; `tools/call` is answered by the test. */
  async function over(answer: Parameters<typeof serve>[0], options: ConnectOptions = {}) {
    const server = await serve((seen, response) => {
      if (seen.body.includes('server/discover')) json(response, 200, { jsonrpc: '2.0', id: seen.id, result: discovery() })
      else answer(seen, response)
    })
    const mcp = await connect(server.url, options)
    afterTest(() => mcp.close())
    return { server, mcp }
  }

  it('under the wrong type of id fail the call at once (H3)', async () => {
    const { mcp } = await over(({ id }, response) => json(response, 200, { jsonrpc: '2.0', id: String(id), result: said('x') }))
    await expect(mcp.callTool('t')).rejects.toMatchObject({
      kind: 'protocol',
      message: expect.stringContaining('has the id of the request'),
    })
  })

  it.each<[string, Parameters<typeof serve>[0]]>([
    [
      'a result larger than we take (H2)',
      ({ id }, response) => json(response, 200, { jsonrpc: '2.0', id, result: said('x'.repeat(200_000)) }),
    ],
    [
      'an event without end (H1)',
      (_, response) => {
        events(response)
        const write = (): void => {
          if (!response.destroyed && !response.writableEnded)
            response.write(`data: ${'x'.repeat(16_384)}`, () => setImmediate(write))
        }
        write()
      },
    ],
  ])('with %s fail the call', async (_, answer) => {
    const { mcp } = await over(answer, { limits: { frameBytes: 100_000 } })
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'too-large' })
  })

  it('with a redirect elsewhere are not followed (H6)', async () => {
    const decoy = await serve((_, response) => response.end())
    const { mcp } = await over((_, response) => response.writeHead(307, { location: decoy.url }).end())
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'status', status: 307 })
    expect(decoy.seen).toEqual([])
  })

  it('with a challenge that names another address do not make us go there (H8)', async () => {
    const decoy = await serve((_, response) => response.end())
    const { mcp } = await over((_, response) =>
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${decoy.url}"` }).end(),
    )
    await expect(mcp.callTool('t')).rejects.toMatchObject({
      kind: 'status',
      status: 401,
      headers: { 'www-authenticate': expect.stringContaining('resource_metadata') },
    })
    expect(decoy.seen).toEqual([])
  })

  it('that are no message at all are not answered with one', async () => {
    const { server, mcp } = await over((_, response) => json(response, 200, '{"jsonrpc":"2.0","id":'))
    await expect(mcp.callTool('t')).rejects.toMatchObject({ name: expect.stringMatching(/McpError|ConnectionError/) })
    expect(server.seen).toHaveLength(2)
  })
})
