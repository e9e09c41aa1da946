/**
 * What is below the messages over Streamable HTTP: sessions (2025-03-26 to 2025-11-25), headers that repeat the body (2026-07-28),
 * and what holds at any revision.
 */
import type { PeerAnswer } from '../calls.ts'
import { isServed } from '../calls.ts'
import { official, sessions, since, stateless, table } from '../define.ts'
import { type Expectation, type Expectations, orSkip, should } from '../expectations.ts'
import { tool } from '../needs.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, type ScenarioContext, type SentStep, send, step } from '../steps.ts'
import { harmless, keys, kitInfo } from '../wire/envelope.ts'
import { present } from '../wire/http-call.ts'
import type { HttpReply, RawPeer } from '../wire/raw-peer.ts'

const transport = { proves: ['MCP basic/transports#streamable-http'], carriers: ['http'] } as const
const row = table('base/http/', { ...transport, revisions: official })
const inSessions = { revisions: sessions }
/** Rows about session ids: they say nothing of a server that works without. */
const session = table('base/http/', {
  proves: ['MCP basic/transports#session-management'],
  revisions: sessions,
  carriers: ['http'],
})

/** Headers with some changed; undefined leaves one out. */
type HeaderChanges = Readonly<Record<string, string | undefined>>

/** Posts a message with the headers that it should have, but for some; the body may be another text. */
function post(peer: RawPeer, changes: HeaderChanges = {}, message = harmless(peer.revision, 1), body = JSON.stringify(message)) {
  return peer.http.call({ method: 'POST', headers: present({ ...peer.http.headers(message), ...changes }), body })
}

/** The same as a step. */
const posts = (changes: HeaderChanges = {}, body?: string): SentStep<HttpReply> =>
  step(({ peer }) => post(peer, changes, undefined, body))

/** Asks for a stream of events. */
function get(peer: RawPeer, more: Partial<Parameters<RawPeer['http']['call']>[0]> = {}, lastEvent?: string): Promise<HttpReply> {
  const accept = { 'content-type': undefined, accept: 'text/event-stream', 'last-event-id': lastEvent }
  return peer.http.call({ method: 'GET', headers: present({ ...peer.http.headers(), ...accept }), ...more })
}

function isRefused({ status }: HttpReply): boolean {
  return status >= 400 && status < 500
}

/** The status is this one; its sentence says so before the one that came. */
const hasHttpStatus =
  (wanted: number): Expectation<{ readonly status: number }> =>
  ({ status }, _, says) =>
    status === wanted || `${says}, not ${status}`
const isOk = { 'the HTTP status must be 200': hasHttpStatus(200) }

/** There are sessions at all. */
const hasSession = step(({ peer }) => peer.http.session).expect({ 'the server has no sessions': orSkip(id => id !== undefined) })
const version = {
  proves: ['MCP 2025-06-18 basic/transports#protocol-version-header'],
  revisions: ['2025-06-18', '2025-11-25'],
} as const
const typeOf = ({ headers }: Pick<HttpReply, 'headers'>): string => headers['content-type'] ?? ''

/** A page elsewhere that a browser on this machine has open, seen in one header. */
async function foreignPage({ peer, revision, leave, warn, expect }: ScenarioContext, name: 'host' | 'origin'): Promise<void> {
  if (!['localhost', '127.0.0.1', '[::1]'].includes(peer.http.url.hostname)) leave('the server is not on loopback')
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: kitInfo }
  const isModern = since('draft-2026-v1').includes(revision)
  const message: Json = isModern ? harmless(revision, 1) : { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  const value = name === 'host' ? 'evil.example.com' : 'http://evil.example.com'
  const reply = await post(peer, { 'mcp-session-id': undefined, [name]: value }, message)
  // Of the two the Origin is what the protocol demands; the Host is the same hole seen from the other side.
  if (name === 'host' && !isRefused(reply)) warn(`a foreign Host should be refused with 4xx, not ${reply.status}`)
  else expect(isRefused(reply), `it must be refused with HTTP status 4xx, not ${reply.status}`)
}

/** HTTP at any revision, and with sessions. */
export const httpScenarios: readonly Scenario[] = [
  row('answer-type', 'a request is answered with JSON or a stream of events').by([
    posts().expect({
      ...isOk,
      'the content type must be JSON or events': (reply, _, says) =>
        /^(application\/json|text\/event-stream)/.test(typeOf(reply)) || `${says}, not "${typeOf(reply)}"`,
    }),
  ]),
  row('notification', 'a notification is accepted with 202 and an empty body').by(inSessions, [
    step(({ peer }) => post(peer, {}, { jsonrpc: '2.0', method: 'notifications/initialized' })).expect({
      'the HTTP status must be 202': hasHttpStatus(202),
      'the body must be empty': ({ body }) => body === '',
    }),
  ]),
  row('content-type', 'a body that is not declared as JSON is refused').by([
    posts({ 'content-type': 'text/plain' }).expect({
      'a body of another type than application/json should be refused with 415': should(
        (reply, _, says) => isRefused(reply) || `${says}, not ${reply.status}`,
      ),
    }),
  ]),
  row('accept', 'a client that accepts only JSON gets no event stream').by([
    posts({ accept: 'application/json' }).expect({
      'an event stream was sent to a client that does not accept it': should(
        reply => reply.status !== 200 || !typeOf(reply).startsWith('text/event-stream'),
      ),
      'the HTTP status must not be': ({ status }, _, says) => status < 500 || `${says} ${status}`,
    }),
  ]),
  row('no-empty-events MCP 2025-11-25 changelog SEP-1699', 'a client that does not know empty events gets none').by(
    { revisions: ['2025-03-26', '2025-06-18'], needs: [tool('test_tool_with_progress')] },
    [
      step(({ peer }) => {
        const params = { name: 'test_tool_with_progress', _meta: { progressToken: 'p' } }
        return post(peer, {}, { jsonrpc: '2.0', id: 'streamed', method: 'tools/call', params })
      }).expect({
        'events without data are for clients at 2025-11-25 or later': ({ events }) =>
          !events.some(({ type, data }) => type === '' && data === ''),
      }),
    ],
  ),
  row('not-json', 'a body that is not JSON is refused with 400').by([
    posts({}, '{"jsonrpc":').expect({ 'the HTTP status must be 400': hasHttpStatus(400) }),
  ]),
  row('get', 'GET gives a stream of events, or 405').by({ ...inSessions, open: { listen: false } }, async ({ peer, expect }) => {
    let head: { status: number; type: string } | undefined
    const stop = new AbortController()
    // The stream may stay silent: its head says enough.
    const onHead = (status: number, headers: Readonly<Record<string, string>>): void => {
      head = { status, type: typeOf({ headers }) }
      stop.abort()
    }
    await get(peer, { onHead, signal: stop.signal, ms: 5_000 }).catch(() => undefined)
    const isStream = head?.status === 200 && head.type.startsWith('text/event-stream')
    expect(isStream || head?.status === 405, `GET must give a stream of events or 405, not ${head?.status} ${head?.type}`)
  }),
  session('session-id', 'a session id is made of visible ASCII').by([
    hasSession,
    step(({ peer }) => peer.http.session).expect({
      'Mcp-Session-Id must be of visible ASCII': id => /^[\x21-\x7e]+$/.test(String(id)),
    }),
  ]),
  session('session-fresh', 'session ids are unique').by([
    hasSession,
    step(({ bench }) => bench.open()).expect({
      'session ids must be unique': ({ http }, { peer }) => http.session !== peer.http.session,
    }),
  ]),
  session('session-missing', 'a request without the session id is refused with 400').by([
    hasSession,
    posts({ 'mcp-session-id': undefined }).expect({
      'a request without the session id should be refused with 400': should(hasHttpStatus(400)),
    }),
  ]),
  session('session-unknown', 'an unknown session id is refused').by([
    hasSession,
    posts({ 'mcp-session-id': 'vivarium-no-such-session' }).expect({
      'an unknown session must be refused with 4xx': (reply, _, says) => isRefused(reply) || `${says}, not ${reply.status}`,
      'an unknown session should be refused with 404': should(hasHttpStatus(404)),
    }),
  ]),
  session('session-ended', 'a session that was ended with DELETE is gone: 404').by([
    hasSession,
    step(({ peer }) => peer.http.call({ method: 'DELETE', headers: peer.http.headers(harmless(peer.revision, 1)) })).expect({
      'the server does not let clients end sessions': orSkip(({ status }) => status !== 405),
      'DELETE must be answered with 2xx or 405': ({ status }, _, says) =>
        (status >= 200 && status < 300) || `${says}, not ${status}`,
    }),
    posts().expect({ 'after DELETE the session must be answered with 404': hasHttpStatus(404) }),
  ]),
  row('version-header', 'a version header with an unknown version is refused with 400').by(version, [
    posts({ 'mcp-protocol-version': '1999-01-01' }).expect({
      'an unknown version must be refused with 400': hasHttpStatus(400),
    }),
  ]),
  row('no-version-header', 'a request of a session without the version header is served').by(version, [
    posts({ 'mcp-protocol-version': undefined }).expect(isOk),
  ]),
  row('several-streams', 'concurrent requests are each answered on their own exchange').by(async x => {
    const ids = ['s1', 's2', 's3']
    const replies = await Promise.all(ids.map(id => post(x.peer, {}, harmless(x.revision, id))))
    for (const [at, reply] of replies.entries()) {
      const said = reply.body + reply.events.map(({ data }) => data).join()
      const others = ids.filter(id => id !== ids[at])
      x.expect(said.includes(`"${ids[at]}"`), 'each exchange must bring the answer to its own request')
      x.expect(!others.some(id => said.includes(`"id":"${id}"`)), 'an exchange must not bring answers to other requests')
    }
  }),
  ...(['host', 'origin'] as const).map(name =>
    row(
      `foreign-${name} MCP basic/transports#security-warning`,
      `a request of a page elsewhere (${name} evil.example.com) is refused on loopback`,
    ).by(x => foreignPage(x, name)),
  ),
  row(
    'resume MCP 2025-11-25 basic/transports#resumability-and-redelivery SEP-1699',
    'a stream that the server closed is continued by GET with Last-Event-ID',
  ).by({ revisions: ['2025-11-25'], needs: [tool('test_reconnection')] }, async ({ peer, expect }) => {
    const message = { jsonrpc: '2.0', id: 'resumed', method: 'tools/call', params: { name: 'test_reconnection' } }
    const isAnswer = ({ data }: { readonly data: string }): boolean => data.includes('"resumed"')
    const { events } = await post(peer, {}, message)
    const isPrimed = events[0]?.id !== undefined && events[0].data === ''
    expect(isPrimed, 'the stream must open with an event with an id and no data')
    expect(!events.some(isAnswer), 'the stream must be closed before the response')
    const lastId = events.findLast(({ id }) => id !== undefined)?.id ?? ''
    const reply = await get(peer, { until: isAnswer, ms: 8_000 }, lastId)
    expect(reply.events.some(isAnswer), 'the answer must come on the continued stream')
  }),
]

const headerRow = table('base/headers/', {
  proves: ['MCP 2026-07-28 basic/transports/streamable-http#headers', 'SEP-2243'],
  revisions: ['2026-07-28'],
  carriers: ['http'],
})
const fixture = 'test_simple_text'
type Case = readonly [id: string, what: string, headers: HeaderChanges]

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

/** Values of the header that repeats a parameter, and whether they say what the body says. */
const parameters: readonly (readonly [id: string, what: string, value: string | undefined, isRight: boolean])[] = [
  ['right', 'the value of the parameter', 'eu-west', true],
  ['encoded', 'the value in base64', `=?base64?${btoa('eu-west')}?=`, true],
  ['missing', 'no header at all', undefined, false],
  ['other', 'another value', 'us-east', false],
  ['bad-base64', 'base64 that cannot be decoded', '=?base64?%%%?=', false],
]

/** Headers and body disagree: 400, and the number for that. */
function isMismatch(what: string): Expectations<PeerAnswer, ScenarioContext> {
  return {
    [`${what} must be refused with HTTP status 400`]: ({ status }, _, says) => status === 400 || `${says}, not ${status}`,
    'the error of a mismatch': should(({ code }, { modern }) => {
      const wanted = modern ? -32020 : -32001
      return code === wanted || `the error should be ${wanted}, not ${code}`
    }),
  }
}

/** HTTP without sessions: headers that repeat the body, and verbs that are no more. */
export const statelessHttpScenarios: readonly Scenario[] = [
  ...mismatches.map(([id, what, headers]) =>
    headerRow(id, `${what} is refused`).by({ revisions: stateless.toReversed() }, [
      callTool(fixture, { headers }).expect(isMismatch(what)),
    ]),
  ),
  ...accepted.map(([id, what, headers]) =>
    headerRow(id, `${what} is accepted`).by([
      callTool(fixture, { headers }).expect({
        [`${what} must be accepted`]: isServed,
        'no session must be named': ({ answer }) => answer.headers?.['mcp-session-id'] === undefined,
      }),
    ]),
  ),
  headerRow('version-missing', 'a request without the version header is refused').by([
    send('server/discover', {}, { headers: { 'mcp-protocol-version': undefined } }).expect({
      'it must be refused with HTTP status 400': ({ status }, _, says) => status === 400 || `${says}, not ${status}`,
    }),
  ]),
  headerRow('mismatch-before-version', 'a header that contradicts the body is reported before an unsupported version').by([
    send('server/discover', {}, { meta: { [keys.version]: '1999-01-01' } }).expect(
      isMismatch('a version header that disagrees with the body'),
    ),
  ]),
  ...['GET', 'DELETE'].map(method =>
    headerRow(`no-${method.toLowerCase()} MCP 2026-07-28 basic/transports/streamable-http`, `${method} is answered with 405`).by([
      step(({ peer }) => get(peer, { method, until: () => true, ms: 3_000 })).expect({
        [`${method} must be answered with HTTP status 405`]: hasHttpStatus(405),
      }),
    ]),
  ),
  ...parameters.map(([id, what, value, isRight]) =>
    headerRow(`param-${id}`, `Mcp-Param with ${what} is ${isRight ? 'accepted' : 'refused'}`).by([
      callTool('test_header_parameter', { args: { region: 'eu-west' }, headers: { 'mcp-param-region': value } }).expect(
        isRight ? { 'the call must be served': isServed } : isMismatch(`Mcp-Param with ${what}`),
      ),
    ]),
  ),
]
