import type http from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { discovery, type Frame, modernServer, said, toolList } from '../../test/client/scripted-server.ts'
import { afterTest, cleanUp, json, type Seen, serve } from '../../test/transports/http-test-server.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

type Tools = () => readonly Frame[]
type Call = (seen: Seen, response: http.ServerResponse) => void

/** A modern server over HTTP with these tools. */
async function open(
  tools: Tools,
  call: Call = ({ id }, response) => json(response, 200, { jsonrpc: '2.0', id, result: said('ok') }),
) {
  const events: unknown[] = []
  const server = await serve((seen, response) => {
    const { id, method } = JSON.parse(seen.body)
    if (method === 'server/discover') json(response, 200, { jsonrpc: '2.0', id, result: discovery({ tools: {} }) })
    else if (method === 'tools/list')
      json(response, 200, { jsonrpc: '2.0', id, result: { ...toolList(...tools()), ttlMs: 60_000, cacheScope: 'private' } })
    else call(seen, response)
  })
  const mcp = await connect(server.url, { onTrace: event => events.push(event) })
  afterTest(() => mcp.close())
  const calls = (): Seen[] => server.seen.filter(({ body }) => body.includes('"tools/call"'))
  const lists = (): Seen[] => server.seen.filter(({ body }) => body.includes('"tools/list"'))
  return { mcp, events, calls, lists }
}

async function names(mcp: Client): Promise<string[]> {
  const all: string[] = []
  for await (const { name } of mcp.tools()) all.push(name)
  return all
}

const marked = (properties: Frame): Frame => ({ name: 't', inputSchema: { type: 'object', properties } })
const region = marked({ region: { type: 'string', 'x-mcp-header': 'Region' } })

describe('arguments that a tool wants mirrored in headers (rev §2.5)', () => {
  it('are, by their name, beside method and tool', async () => {
    const tool = marked({
      region: { type: 'string', 'x-mcp-header': 'Region' },
      retries: { type: 'integer', 'x-mcp-header': 'Retries' },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' },
      where: { type: 'object', properties: { zone: { type: 'string', 'x-mcp-header': 'Zone' } } },
    })
    const { mcp, calls } = await open(() => [tool])
    await names(mcp)
    await mcp.callTool('t', { region: 'eu', retries: 3, dry: false, where: { zone: 'b' } })
    expect(calls()[0]?.headers).toMatchObject({
      'mcp-method': 'tools/call',
      'mcp-name': 't',
      'mcp-param-region': 'eu',
      'mcp-param-retries': '3',
      'mcp-param-dry-run': 'false',
      'mcp-param-zone': 'b',
    })
  })

  it.each([[{}], [{ region: null }], [undefined]])('are not when there is none: %j', async args => {
    const { mcp, calls } = await open(() => [region])
    await names(mcp)
    await mcp.callTool('t', args)
    expect(Object.keys(calls()[0]?.headers ?? {}).filter(name => name.startsWith('mcp-param'))).toEqual([])
  })

  it.each([
    ['Größe', '=?base64?R3LDtsOfZQ==?='],
    [' edge ', '=?base64?IGVkZ2Ug?='],
    ['a\r\nx-evil: 1', '=?base64?YQ0KeC1ldmlsOiAx?='],
    ['=?base64?x?=', '=?base64?PT9iYXNlNjQ/eD89?='],
  ])('are encoded where they are no plain header: %j', async (value, expected) => {
    const { mcp, calls } = await open(() => [region])
    await names(mcp)
    await mcp.callTool('t', { region: value })
    expect(calls()[0]?.headers['mcp-param-region']).toBe(expected)
  })

  it('are sent anew, by a list read anew, when the server refuses them: once (−32020)', async () => {
    let tool: Frame = { name: 't' }
    const { mcp, calls, lists } = await open(
      () => [tool],
      ({ id, headers }, response) => {
        if (headers['mcp-param-region'] === 'eu') return json(response, 200, { jsonrpc: '2.0', id, result: said('ok') })
        json(response, 400, { jsonrpc: '2.0', id, error: { code: -32020, message: 'Mcp-Param-Region is missing' } })
      },
    )
    await names(mcp)
    tool = region
    expect((await mcp.callTool('t', { region: 'eu' })).text).toBe('ok')
    expect([calls().length, lists().length]).toEqual([2, 2])
  })

  it('that are refused again fail as they are', async () => {
    const { mcp, calls } = await open(
      () => [region],
      ({ id }, response) => json(response, 400, { jsonrpc: '2.0', id, error: { code: -32020, message: 'never' } }),
    )
    await expect(mcp.callTool('t', { region: 'eu' })).rejects.toMatchObject({ code: -32020, status: 400 })
    expect(calls()).toHaveLength(2)
  })
})

describe('a tool whose marks are wrong (trap 19)', () => {
  it.each<[string, Frame]>([
    ['on a number', marked({ a: { type: 'number', 'x-mcp-header': 'A' } })],
    ['without a type', marked({ a: { 'x-mcp-header': 'A' } })],
    ['empty', marked({ a: { type: 'string', 'x-mcp-header': '' } })],
    ['no token', marked({ a: { type: 'string', 'x-mcp-header': 'a b' } })],
    [
      'twice, but for the case',
      marked({ a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } }),
    ],
    ['under items', marked({ a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } })],
    ['under oneOf', marked({ a: { oneOf: [{ type: 'string', 'x-mcp-header': 'A' }] } })],
    ['under $defs', { name: 't', inputSchema: { type: 'object', $defs: { a: { type: 'string', 'x-mcp-header': 'A' } } } }],
    [
      'under else',
      {
        name: 't',
        inputSchema: { type: 'object', if: {}, else: { properties: { a: { type: 'string', 'x-mcp-header': 'A' } } } },
      },
    ],
  ])('%s, is hidden over HTTP, and the others are not', async (_, tool) => {
    const { mcp, events } = await open(() => [tool, { name: 'fit' }])
    expect(await names(mcp)).toEqual(['fit'])
    expect(events).toContain('tool-hidden')
  })

  it('is listed where nothing is mirrored', async () => {
    const server = modernServer({
      'tools/list': () => toolList(marked({ a: { type: 'number', 'x-mcp-header': 'A' } })),
      'tools/call': () => said('ok'),
    })
    await using mcp = await connect(server.connection)
    expect(await names(mcp)).toEqual(['t'])
    expect((await mcp.callTool('t', { a: 1 })).text).toBe('ok')
  })
})
