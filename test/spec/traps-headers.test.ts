/** Headers that mirror the body, over real HTTP: traps 18 and 19, rev 2026-07-28 §2.5. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'
import { type Answer, type HttpPeer, headersFor, httpPeer, send } from './http.ts'
import { enveloped, errorOf, everyRevision, type Frame, resultOf, textOf } from './wire.ts'

const E = '2026-07-28'
let server: Server
let url: string
let peer: HttpPeer

const placed = jsonSchema<Frame>({
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    shard: { type: 'integer', 'x-mcp-header': 'Shard' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    at: { type: 'object', properties: { zone: { type: 'string', 'x-mcp-header': 'Zone' } } },
    free: { type: 'string' },
  },
})

beforeAll(async () => {
  server = createServer({ name: 'headers', version: '1.0.0', revisions: everyRevision })
  server.tool('place', { input: placed }, args => JSON.stringify(args))
  server.tool('odd/name', {}, () => 'odd')
  server.resource('memo://{id}', { name: 'memo' }, ({ id }) => id)
  url = (await server.listen()).url
  peer = await httpPeer(url, E)
})
afterAll(() => server.close())

const b64 = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`
const place = (args: Frame, headers: Record<string, string | undefined>): Promise<Answer> =>
  peer.ask('tools/call', { name: 'place', arguments: args }, { headers })

async function expectMismatch(answer: Answer): Promise<void> {
  expect([answer.status, errorOf(answer.frame).code]).toEqual([400, -32020])
}

describe('trap 18: Mcp-Method and Mcp-Name', () => {
  it.each([
    ['missing', undefined],
    ['another method', 'tools/list'],
    ['the method in other case: values compare with case', 'Tools/Call'],
    ['empty', ''],
  ])('Mcp-Method %s: 400 and −32020', async (_name, value) => {
    await expectMismatch(await peer.ask('tools/call', { name: 'odd/name' }, { headers: { 'mcp-method': value } }))
  })

  it.each([
    ['missing', undefined],
    ['another name', 'place'],
    ['the name in other case', 'Odd/Name'],
    ['a wrapper that holds no base64', '=?base64?§?='],
    ['a wrapper that holds no UTF-8', '=?base64?/w==?='],
    ['a wrapper in other case: its markers compare with case', `=?BASE64?${Buffer.from('odd/name').toString('base64')}?=`],
  ])('Mcp-Name %s: 400 and −32020', async (_name, value) => {
    await expectMismatch(await peer.ask('tools/call', { name: 'odd/name' }, { headers: { 'mcp-name': value } }))
  })

  it.each([
    ['as it is', 'odd/name'],
    ['with blanks around it', '  odd/name  '],
    ['encoded', b64('odd/name')],
  ])('Mcp-Name %s is taken', async (_name, value) => {
    expect((await peer.ask('tools/call', { name: 'odd/name' }, { headers: { 'mcp-name': value } })).status).toBe(200)
  })

  it.each(['memo://ä ö', 'memo://=?base64?YQ==?=', ' memo://edge ', 'memo://雪'])(
    'a URI that no header can hold goes encoded: %j',
    async uri => {
      const answer = await peer.ask('resources/read', { uri }, { headers: { 'mcp-name': b64(uri) } })
      expect(answer.frame['error'] === undefined || errorOf(answer.frame).code === -32602).toBe(true)
    },
  )

  it('a value that looks encoded must be encoded: as it is, it stands for something else', async () => {
    const uri = b64('memo://hidden')
    await expectMismatch(await peer.ask('resources/read', { uri }, { headers: { 'mcp-name': uri } }))
    const proper = await peer.ask('resources/read', { uri }, { headers: { 'mcp-name': b64(uri) } })
    expect([proper.status, errorOf(proper.frame).code]).toEqual([200, -32602])
  })

  it('the name of a header has no case', async () => {
    const headers = headersFor(E, 'tools/list', {})
    const shouting = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
    const answer = await send(url, {
      headers: shouting,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: enveloped(E) },
    })
    expect(answer.status).toBe(200)
  })

  it('a wrong header is told before an unknown tool, an unknown method before it (§2.5 order)', async () => {
    await expectMismatch(await peer.ask('tools/call', { name: 'nobody' }, { headers: { 'mcp-name': 'other' } }))
    const unknown = await peer.ask('no/such', { name: 'x' })
    expect([unknown.status, errorOf(unknown.frame).code]).toEqual([404, -32601])
  })
})

describe('trap 18: Mcp-Param-*', () => {
  it('takes values that the headers mirror, integers by number, null and absence by no header', async () => {
    const args = { region: 'eu', shard: 7, dry: false, at: { zone: 'b' }, free: 'x' }
    const good = { 'mcp-param-region': 'eu', 'mcp-param-shard': ' 007 ', 'mcp-param-dry': 'false', 'mcp-param-zone': b64('b') }
    expect(JSON.parse(textOf((await place(args, good)).frame))).toEqual(args)
    expect((await place({ free: 'x' }, {})).status).toBe(200)
  })

  it.each([
    ['a value without its header', { region: 'eu' }, {}],
    ['a header that says something else', { region: 'eu' }, { 'mcp-param-region': 'us' }],
    ['a header in other case', { region: 'eu' }, { 'mcp-param-region': 'EU' }],
    ['a header without a value', {}, { 'mcp-param-region': 'eu' }],
    ['a header for null', { region: null }, { 'mcp-param-region': 'null' }],
    ['a header that cannot be decoded', { region: 'eu' }, { 'mcp-param-region': '=?base64?*?=' }],
    ['a number in another notation', { shard: 16 }, { 'mcp-param-shard': '0x10' }],
    ['an empty header for a number', { shard: 0 }, { 'mcp-param-shard': '' }],
    ['a nested value without its header', { at: { zone: 'b' } }, {}],
  ])('%s: 400 and −32020', async (_name, args, headers) => {
    await expectMismatch(await place(args, headers))
  })

  it('an argument of the wrong type that header and body agree on is bad input, not a mismatch', async () => {
    const answer = await place({ shard: 'seven' }, { 'mcp-param-shard': 'seven' })
    expect([answer.status, resultOf(answer.frame)['isError']]).toEqual([200, true])
  })

  it('names of Object.prototype are no arguments', async () => {
    const strange = createServer({ name: 'strange', version: '1' })
    strange.tool(
      't',
      { input: jsonSchema({ type: 'object', properties: { constructor: { type: 'string', 'x-mcp-header': 'C' } } }) },
      () => 'ok',
    )
    const { url: other } = await strange.listen()
    expect((await (await httpPeer(other, E)).ask('tools/call', { name: 't', arguments: {} })).status).toBe(200)
    await strange.close()
  })

  it('older wires mirror nothing', async () => {
    const older = await httpPeer(url, '2025-11-25')
    expect((await older.ask('tools/call', { name: 'place', arguments: { region: 'eu' } })).status).toBe(200)
  })
})

describe('trap 19: a mark that clients would hide the tool for is refused when the tool is made', () => {
  const bad: Readonly<Record<string, Frame>> = {
    'on a number': { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
    'on an array': { properties: { a: { type: 'array', 'x-mcp-header': 'A' } } },
    'under items': { properties: { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } } },
    'under oneOf': { oneOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    'under if and then': { then: { properties: { a: { type: 'string', 'x-mcp-header': 'A' } } } },
    'under $defs': { $defs: { a: { type: 'string', 'x-mcp-header': 'A' } }, properties: { a: { $ref: '#/$defs/a' } } },
    'that is no token': { properties: { a: { type: 'string', 'x-mcp-header': 'A b' } } },
    'that is empty': { properties: { a: { type: 'string', 'x-mcp-header': '' } } },
    'that is no string': { properties: { a: { type: 'string', 'x-mcp-header': 1 } } },
    'twice, but for case': {
      properties: { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } },
    },
  }
  it.each(Object.entries(bad))('%s', (_name, schema) => {
    const fresh = createServer({ name: 'x', version: '1' })
    expect(() => fresh.tool('t', { input: jsonSchema({ type: 'object', ...schema }) }, () => 'ok')).toThrow(/x-mcp-header/)
  })

  it('a property that is merely called x-mcp-header is no mark', () => {
    const fresh = createServer({ name: 'x', version: '1' })
    fresh.tool('t', { input: jsonSchema({ type: 'object', properties: { 'x-mcp-header': { type: 'string' } } }) }, () => 'ok')
  })
})
