import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { createServer, reply } from '../../src/server/index.ts'
import { connectInMemory } from '../../src/testing/index.ts'
import { createOracle } from './hook.ts'
import { oracle } from './index.ts'
import { schemaFolder } from './schemas.ts'

const folder = schemaFolder()

test('a named folder without schemas is an error, not a check left out', () => {
  const empty = mkdtempSync(join(tmpdir(), 'schemas-'))
  onTestFinished(() => rmSync(empty, { recursive: true }))
  expect(() => schemaFolder({ VIVARIUM_SCHEMAS: empty })).toThrow(/2024-11-05.schema\.json/)
  expect(schemaFolder({})).toBeUndefined()
})

describe.skipIf(folder === undefined)('the ear at every engine', () => {
  const broken = () => {
    const server = createServer({ name: 'broken', version: '1.0.0' })
    server.tool('speak', {}, () => reply({ content: [{ type: 'text', text: 5 as unknown as string }] }))
    return server
  }

  test('hears what a server says on a connection', async () => {
    await using mcp = await connectInMemory(broken(), { revision: '2025-06-18' })
    await mcp.callTool('speak')
    expect(oracle?.take().join()).toMatch(/2025-06-18 server: CallToolResult\/content\/0/)
  })

  test('hears what a server answers to a POST', async () => {
    await using server = broken()
    const answer: typeof fetch = (input, init) => server.fetch(new Request(input, init))
    await using mcp = await connect('http://localhost/mcp', { fetch: answer, revisions: ['2026-07-28'] })
    await mcp.callTool('speak')
    expect(oracle?.take().join()).toMatch(/2026-07-28 server: CallToolResult\/content\/0/)
  })

  test('hears what a client says', async () => {
    const onElicit = () => ({ action: 'accept' as const, content: { confirm: { sure: true } as unknown as boolean } })
    const server = createServer({ name: 'asking', version: '1.0.0' })
    server.tool('ask', {}, (_, ctx) => ctx.confirm('Really?').then(String))
    await using mcp = await connectInMemory(server, { revision: '2025-11-25', onElicit })
    await mcp.callTool('ask')
    expect(oracle?.take().join()).toMatch(/2025-11-25 client: ElicitResult\/content\/confirm/)
  })
})

describe.skipIf(folder === undefined)('the oracle', () => {
  /** What is found in the last of these frames; `<` marks what the server says. */
  const judge = (...frames: readonly [from: '>' | '<', frame: object | readonly object[]][]): string[] => {
    const oracle = createOracle(folder as string)
    const link = oracle.link()
    for (const [from, frame] of frames) {
      oracle.take()
      oracle.note(from === '>' ? 'client' : 'server', JSON.stringify(frame), link)
    }
    return oracle.take()
  }
  const hello = (protocolVersion: string): readonly [from: '>' | '<', frame: object][] => [
    [
      '>',
      {
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion, capabilities: {}, clientInfo: { name: 'a', version: '1' } },
      },
    ],
    ['<', { jsonrpc: '2.0', id: 0, result: { protocolVersion, capabilities: {}, serverInfo: { name: 'b', version: '1' } } }],
  ]
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } }
  const modern = (more: object = {}) => ({
    _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
    ...more,
  })

  test('does not judge by the wrong request what answers one of two with the same id', () => {
    const twins = [
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'a:b' } },
    ]
    const pong = { jsonrpc: '2.0', id: 1, result: {} }
    expect(judge(...hello('2025-03-26'), ['>', twins], ['<', [pong]])).toEqual([])
    expect(judge(...hello('2025-03-26'), ['>', twins.slice(1)], ['<', [pong]])).not.toEqual([])
  })

  test('allows a handshake and a call of every session wire', () => {
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      expect(judge(...hello(version))).toEqual([])
      expect(judge(...hello(version), ['>', call])).toEqual([])
      expect(judge(...hello(version), ['>', call], ['<', { jsonrpc: '2.0', id: 1, result: { content: [] } }])).toEqual([])
    }
  })

  test('finds a result without what its definition requires', () => {
    expect(judge(...hello('2025-11-25'), ['>', call], ['<', { jsonrpc: '2.0', id: 1, result: {} }])[0]).toMatch(
      /required property 'content'/,
    )
  })

  test('finds a word of a later wire in the frame of an earlier one', () => {
    const result = { content: [], structuredContent: {} }
    const answer = { jsonrpc: '2.0', id: 1, result }
    expect(judge(...hello('2025-06-18'), ['>', call], ['<', answer])).toEqual([])
    expect(judge(...hello('2025-03-26'), ['>', call], ['<', answer])[0]).toMatch(/structuredContent/)
  })

  test('finds a method that the wire does not have', () => {
    const ask = {
      jsonrpc: '2.0',
      id: 9,
      method: 'elicitation/create',
      params: { message: 'x', requestedSchema: { type: 'object', properties: {} } },
    }
    expect(judge(...hello('2025-06-18'), ['<', ask])).toEqual([])
    expect(judge(...hello('2025-03-26'), ['<', ask])[0]).toMatch(/no method elicitation\/create/)
  })

  test('judges a request by the version that it names itself, also beside a session', () => {
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list', params: modern() }
    const result = { tools: [], resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    expect(judge(...hello('2024-11-05'), ['>', list], ['<', { jsonrpc: '2.0', id: 2, result }])).toEqual([])
    expect(judge(...hello('2024-11-05'), ['>', list], ['<', { jsonrpc: '2.0', id: 2, result: { tools: [] } }])).not.toEqual([])
  })

  test('finds an answer to nothing and an array on a wire that has none', () => {
    expect(judge(...hello('2025-11-25'), ['<', { jsonrpc: '2.0', id: 7, result: {} }])[0]).toMatch(/answer to nothing/)
    expect(judge(...hello('2025-06-18'), ['>', [call]])[0]).toMatch(/arrays/)
    expect(judge(...hello('2025-03-26'), ['>', [call]])).toEqual([])
  })

  test('holds an error with a number of its own to its data', () => {
    const error = { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } }
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list', params: modern() }
    expect(judge(['>', list], ['<', { jsonrpc: '2.0', id: 2, error }])[0]).toMatch(/requested/)
  })

  test('says nothing of the dialect, which has no schema', () => {
    expect(
      judge(
        ['>', { jsonrpc: '2.0', id: 1, method: 'initialize', params: { mcpVersion: '2025-06-18' } }],
        ['<', { jsonrpc: '2.0', id: 1, result: {} }],
      ),
    ).toEqual([])
  })
})
