/** Arguments that travel in headers too (2026-07-28 §2.5), and tools that ask for what cannot be a header. */
import { type Play, testTool } from '../play.ts'
import { type ClientScenario, scenario } from '../scenario.ts'
import { argumentsOf } from '../seen.ts'
import { header } from './running.ts'

const marked = {
  name: 'test-tool',
  inputSchema: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      count: { type: 'integer', 'x-mcp-header': 'Count' },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      city: { type: 'string', 'x-mcp-header': 'City' },
      blank: { type: 'string', 'x-mcp-header': 'Blank' },
      absent: { type: 'string', 'x-mcp-header': 'Absent' },
    },
  },
}
const given = { region: 'eu-1', count: 42, dry: false, city: 'Zürich', blank: ' edge ', absent: null }
const want = { region: 'eu-1', count: '42', dry: 'false', city: encoded('Zürich'), blank: encoded(' edge ') }

function encoded(text: string): string {
  return `=?base64?${Buffer.from(text).toString('base64')}?=`
}

const mirrored: Play = {
  name: 'mirrored-headers',
  steps: [
    { do: 'list', what: 'tools' },
    { do: 'call', tool: 'test-tool', arguments: given, as: 'call' },
  ],
  tools: [marked],
}

const schema = (mark: unknown, type = 'string') => ({ type: 'object', properties: { a: { type, 'x-mcp-header': mark } } })

const impossible: Play = {
  name: 'http-invalid-tool-headers-vivarium',
  report: true,
  steps: [
    { do: 'list', what: 'tools', as: 'list' },
    ...['empty-mark', 'no-token', 'twice', 'object-type'].map(
      tool => ({ do: 'call', tool, arguments: { a: 'x' }, as: tool }) as const,
    ),
    { do: 'call', tool: 'test-tool', arguments: {}, as: 'call' },
  ],
  tools: [
    { name: 'empty-mark', inputSchema: schema('') },
    { name: 'no-token', inputSchema: schema('a b') },
    {
      name: 'twice',
      inputSchema: {
        type: 'object',
        properties: { a: { type: 'string', 'x-mcp-header': 'X' }, b: { type: 'string', 'x-mcp-header': 'x' } },
      },
    },
    { name: 'object-type', inputSchema: schema('Obj', 'object') },
    testTool,
  ],
}

export const headers: readonly ClientScenario[] = [
  scenario(
    'client/headers/mirrored',
    'Marked arguments are in headers, encoded where they have to be, and left out where they are null',
    mirrored,
    {
      proves: ['MCP 2026-07-28 basic/transports/streamable-http'],
      revisions: ['2026-07-28'],
      carriers: ['http'],
      check: (seen, { expect, skip }) => {
        const [call] = seen.calls('test-tool')
        if (call === undefined || argumentsOf(call)['region'] === undefined)
          return skip('the client did not call the tool with these arguments')
        for (const [name, value] of Object.entries(want)) {
          const sent = header(call, `mcp-param-${name}`)
          expect(sent === value, `Mcp-Param-${name} must be "${value}", not "${sent}"`, [call])
        }
        expect(header(call, 'mcp-param-absent') === undefined, 'What is null has no header', [call])
      },
    },
  ),
  scenario('client/headers/impossible', 'A tool whose marks cannot be headers is not offered, the others are', impossible, {
    proves: ['MCP 2026-07-28 basic/transports/streamable-http'],
    revisions: ['2026-07-28'],
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      if (seen.calls().length === 0) skip('the client called nothing')
      expect(seen.calls('test-tool').length > 0, 'One bad tool has taken the good ones with it', seen.fromClient.slice(-2))
      const count = seen.reported.get('list')?.count
      if (count === undefined) return skip('the client does not report what it lists')
      // The report is listed too.
      expect(count === 2, `Of the tools ${count} are offered; the four with impossible marks must not be`)
    },
  }),
]
