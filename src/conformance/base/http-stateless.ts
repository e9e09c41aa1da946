/** HTTP without sessions: headers that repeat the body, and verbs that are no more. */
import { codeIn, scenario, tool } from '../define.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { keys } from '../wire/envelope.ts'
import type { Answer } from '../wire/raw-peer.ts'

const headersRule = ['MCP 2026-07-28 basic/transports/streamable-http#headers', 'SEP-2243']
const http = ['http'] as const
const revisions = ['2026-07-28', 'draft-2026-v1'] as const
const fixture = 'test_simple_text'

function expectMismatch(bench: Bench, answer: Answer, what: string): void {
  const code = bench.revision === '2026-07-28' ? -32020 : -32001
  bench.expect(answer.status === 400, `${what} must be refused with HTTP status 400, not ${answer.status}`, [answer.frame])
  if (codeIn(answer) !== code) bench.warn(`the error should be ${code}, not ${answer.error?.code}`)
}

type Case = readonly [string, string, Readonly<Record<string, string | undefined>>]

/** Each of them makes a call whose headers and body say different things. */
const mismatches: readonly Case[] = [
  ['method-missing', 'a call without Mcp-Method', { 'mcp-method': undefined }],
  ['method-other', 'a call whose Mcp-Method is another', { 'mcp-method': 'tools/list' }],
  ['method-case', 'a call whose Mcp-Method is written in other case', { 'mcp-method': 'TOOLS/CALL' }],
  ['name-missing', 'a call without Mcp-Name', { 'mcp-name': undefined }],
  ['name-other', 'a call whose Mcp-Name is another', { 'mcp-name': 'another_tool' }],
  ['name-bad-base64', 'a call whose Mcp-Name cannot be decoded', { 'mcp-name': '=?base64?%%%?=' }],
  ['version-other', 'a call whose version header is another', { 'mcp-protocol-version': '1999-01-01' }],
]

const accepted: readonly Case[] = [
  ['name-encoded', 'a name that is encoded in base64', { 'mcp-name': `=?base64?${btoa(fixture)}?=` }],
  ['name-padded', 'a name with blanks around it', { 'mcp-name': ` ${fixture} ` }],
  ['session-ignored', 'a session id, which means nothing here', { 'mcp-session-id': 'vivarium' }],
  ['last-event-ignored', 'a Last-Event-ID, which means nothing here', { 'last-event-id': '7' }],
]

export const statelessHttpScenarios: readonly Scenario[] = [
  ...mismatches.map(([id, what, headers]) =>
    scenario(`base/headers/${id}`, {
      title: `${what} is refused`,
      proves: headersRule,
      revisions,
      carriers: http,
      needs: [tool(fixture)],
      async run(bench) {
        const peer = await bench.open()
        expectMismatch(bench, await peer.request('tools/call', { name: fixture }, { headers }), what)
      },
    }),
  ),
  ...accepted.map(([id, what, headers]) =>
    scenario(`base/headers/${id}`, {
      title: `${what} is taken`,
      proves: headersRule,
      revisions: ['2026-07-28'],
      carriers: http,
      needs: [tool(fixture)],
      async run(bench) {
        const peer = await bench.open()
        const answer = await peer.request('tools/call', { name: fixture }, { headers })
        bench.expect(answer.result !== undefined, `${what} must be taken`, [answer.frame])
        bench.expect(answer.headers?.['mcp-session-id'] === undefined, 'no session must be named', [answer.frame])
      },
    }),
  ),
  scenario('base/headers/version-missing', {
    title: 'a request without the version header is refused',
    proves: headersRule,
    revisions: ['2026-07-28'],
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('server/discover', {}, { headers: { 'mcp-protocol-version': undefined } })
      bench.expect(answer.status === 400, `it must be refused with HTTP status 400, not ${answer.status}`, [answer.frame])
    },
  }),
  scenario('base/headers/mismatch-before-version', {
    title: 'headers that disagree with the body are told before a version that is not spoken',
    proves: headersRule,
    revisions: ['2026-07-28'],
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('server/discover', {}, { meta: { [keys.version]: '1999-01-01' } })
      expectMismatch(bench, answer, 'a version header that disagrees with the body')
    },
  }),
  ...(['GET', 'DELETE'] as const).map(method =>
    scenario(`base/headers/no-${method.toLowerCase()}`, {
      title: `${method} is answered with 405`,
      proves: ['MCP 2026-07-28 basic/transports/streamable-http'],
      revisions: ['2026-07-28'],
      carriers: http,
      async run(bench) {
        const peer = await bench.open()
        const { 'content-type': _, ...headers } = peer.http.headers()
        const reply = await peer.http.call({
          method,
          headers: { ...headers, accept: 'text/event-stream' },
          until: () => true,
          ms: 3_000,
        })
        bench.expect(reply.status === 405, `${method} must be answered with HTTP status 405, not ${reply.status}`)
      },
    }),
  ),
  ...paramCases(),
]

/** Parameters that a tool wants to see in headers. */
function paramCases(): readonly Scenario[] {
  const call = { name: 'test_header_parameter', arguments: { region: 'eu-west' } }
  const cases: readonly (readonly [string, string, string | undefined, boolean])[] = [
    ['right', 'the value of the parameter', 'eu-west', true],
    ['encoded', 'the value in base64', `=?base64?${btoa('eu-west')}?=`, true],
    ['missing', 'no header at all', undefined, false],
    ['other', 'another value', 'us-east', false],
    ['bad-base64', 'base64 that cannot be decoded', '=?base64?%%%?=', false],
  ]
  return cases.map(([id, what, value, isRight]) =>
    scenario(`base/headers/param-${id}`, {
      title: `Mcp-Param with ${what} is ${isRight ? 'taken' : 'refused'}`,
      proves: headersRule,
      revisions: ['2026-07-28'],
      carriers: http,
      needs: [tool('test_header_parameter')],
      async run(bench) {
        const peer = await bench.open()
        const answer = await peer.request('tools/call', call, { headers: { 'mcp-param-region': value } })
        if (isRight) bench.expect(answer.result !== undefined, 'the call must be served', [answer.frame])
        else expectMismatch(bench, answer, `Mcp-Param with ${what}`)
      },
    }),
  )
}
