/** What the plain run shows (opening, envelopes, headers, methods, end), and how a client that is not told finds a version. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { official, sessions, stateless } from '../../define.ts'
import { fitsPattern, is, orSkip, should } from '../../expectations.ts'
import { allRevisions } from '../../scenario.ts'
import { keys } from '../../wire/envelope.ts'
import { answers, calls, each, everything, first, header, none, params, some } from '../checks.ts'
import { clientTable, httpSessions } from '../define.ts'
import { isOpening, type LoggedMessage, type Observation } from '../log.ts'
import { play } from '../play.ts'
import { Refusal } from '../script.ts'
import { serverInfo } from '../server.ts'

/** The play that every client can do. */
export const plainRun = play('run')

const row = clientTable('client/run/', { play: plainRun, revisions: official })
const inAll = { revisions: allRevisions }
const inSessions = { revisions: sessions }
const inStateless = { revisions: stateless }

/** What a client may send at all. */
const common = [
  ...['tools/list', 'tools/call', 'resources/list', 'resources/read', 'resources/templates/list'],
  ...['prompts/list', 'prompts/get', 'completion/complete', 'initialize', 'server/discover'],
]
const withSessions = ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']
const withoutSessions = ['subscriptions/listen', 'tasks/get', 'tasks/update', 'tasks/cancel']
const tasks = ['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel']
/** What needs a capability that the server of the run has not declared. */
const undeclared = /^(resources|prompts|logging|completion|tasks)\//

function isUnknown({ method }: LoggedMessage, { revision, stateless: alone }: Observation): boolean {
  const known = [...common, ...(alone ? withoutSessions : withSessions)]
  if (revision === '2025-11-25' || revision === 'draft-2026-v1') known.push(...tasks)
  return !known.includes(String(method)) && /^[a-z]+\/[^.]*$|^ping$/.test(String(method))
}

function afterOpening(seen: Observation): readonly LoggedMessage[] {
  return seen.requests().filter(({ method }) => method !== 'initialize')
}

const isNamed = { name: is.string, version: is.string }

const running = [
  row('lists-and-calls MCP basic#messages', 'The run ends with the tools listed and the tool called').by(inAll, {
    'The client did not list the tools': some('tools/list'),
    'The client did not call test-tool': some(calls),
    'The arguments of a call are an object': first(calls, params({ arguments: is.optional(isRecord) })),
  }),
  row('ends MCP basic/lifecycle#shutdown', 'The client exits without being killed, and closes what it has opened').by(inAll, {
    'The client did not end and was killed': ({ end }) => !end.timedOut,
    'The code': ({ end }) => (end.code ?? 0) === 0 || `The client ended with code ${end.code}: ${end.error ?? ''}`,
    'The error': ({ end }) => end.error === undefined || `The client failed: ${end.error}`,
    'A session that is no longer needed should be ended by DELETE': should(
      seen => seen.carrier !== 'http' || !httpSessions.includes(seen.revision) || seen.visits('DELETE').length > 0,
    ),
  }),
  row('initialize MCP basic/lifecycle#initialization', 'A session begins with a complete initialize').by(inSessions, {
    'The client did not send initialize': some('initialize'),
    'protocolVersion must be a string': first('initialize', params({ protocolVersion: is.string })),
    'capabilities must be an object': first('initialize', params({ capabilities: isRecord })),
    'clientInfo must have name and version': first('initialize', params({ clientInfo: isNamed })),
  }),
  row('offers MCP basic/lifecycle#version-negotiation', 'The client offers the version that it was configured to speak').by(
    inSessions,
    {
      'The offer': should(seen => {
        const offer = seen.requests('initialize')[0]?.params['protocolVersion']
        return offer === seen.wire || `The client offered ${String(offer)} and settled on ${seen.wire}`
      }),
    },
  ),
  row('initialized MCP basic/lifecycle#initialization', 'No request is sent before notifications/initialized').by(
    { revisions: [...sessions, 's3'] },
    (seen, x) => {
      const [ready] = seen.notices(seen.revision === 's3' ? 'initialized' : 'notifications/initialized')
      x.expect(ready !== undefined, 'The client did not send notifications/initialized', seen.fromClient.slice(0, 4))
      const early = seen.requests().filter(({ method, at }) => at < (ready?.at ?? 0) && !isOpening(method))
      x.expect(early.length === 0, 'A request came before notifications/initialized', [...early.slice(0, 2), ready])
    },
  ),
  row('ids MCP basic#requests', 'Ids are strings or integers, and none is used twice').by(inAll, (seen, { expect }) => {
    const used = new Map<string, LoggedMessage>()
    for (const request of seen.requests()) {
      const { id, line } = request
      expect(typeof id === 'string' || Number.isInteger(id), 'An id is a string or an integer, never null', [request])
      // A child that was only probed had its own session.
      const key = `${seen.carrier === 'http' || seen.carrier === 'sse' ? '' : line} ${JSON.stringify(id)}`
      expect(!used.has(key), 'An id was used twice', [used.get(key), request])
      used.set(key, request)
    }
  }),
  row('envelopes MCP basic#messages', 'Every message is one complete JSON-RPC 2.0 object').by(inAll, {
    'A message is one JSON object with jsonrpc "2.0"': each(everything, ({ frame }) => frame?.['jsonrpc'] === '2.0'),
    'params, where there are some, are an object': each(everything, ({ frame }) => is.optional(isRecord)(frame?.['params'])),
  }),
  row('words MCP basic#messages', 'The client uses only methods of the revision').by({
    'The methods': (seen, x, says) => none('*', isUnknown)(seen, x, says) || `${seen.revision} has no such method`,
  }),
  row('undeclared MCP basic/lifecycle#capability-negotiation', 'The client requests nothing that the server did not declare').by({
    'The server declared tools only': none('*', ({ method }) => undeclared.test(String(method))),
  }),
  row('meta MCP 2026-07-28 basic', 'Every request names its version, its client and the capabilities of the client').by(
    inStateless,
    {
      'The version': each(
        afterOpening,
        ({ meta }, { wire }) => meta[keys.version] === wire || `_meta must name the version ${wire}`,
      ),
      '_meta must have clientCapabilities': each(afterOpening, ({ meta }) => isRecord(meta[keys.capabilities])),
      'clientInfo must have name and version': each(afterOpening, ({ meta: { [keys.info]: info } }, { revision }) =>
        info === undefined ? revision === '2026-07-28' : fitsPattern(isNamed, info),
      ),
      '_meta should name the client': should(each(afterOpening, ({ meta }) => meta[keys.info] !== undefined)),
    },
  ),
  row(
    'one-way MCP 2026-07-28 basic/versioning',
    'The client sends requests only: no handshake, no answers, no notifications over HTTP',
  ).by(inStateless, {
    'Clients send no responses at this revision': none(answers),
    'Clients send no notifications at this revision': none(
      everything,
      ({ frame = {}, method }, { carrier }) =>
        'method' in frame && !('id' in frame) && (carrier === 'http' || method !== 'notifications/cancelled'),
    ),
    'A handshake came late': none('initialize', ({ at }, seen) => seen.opened && at >= (seen.calls()[0]?.at ?? 0)),
  }),
  row('declares MCP basic/lifecycle#capability-negotiation', 'Declared capabilities are objects').by({
    'The capabilities': ({ capabilities }) => {
      const odd = Object.keys(capabilities).filter(name => !isRecord(capabilities[name]))
      return odd.length === 0 || `Capabilities are objects: ${odd.join(', ')}`
    },
  }),
]

const httpRow = clientTable('client/run/http-', { play: plainRun, revisions: stateless, carriers: ['http'] })
const streamable = { revisions: [...httpSessions, ...stateless] }

const overHttp = [
  httpRow(
    'accept MCP basic/transports#sending-messages-to-the-server',
    'Every POST accepts JSON and event streams, and has the content type JSON',
  ).by(streamable, {
    'The header Accept': each(everything, ({ headers: { accept = '' } }) => {
      const both = /application\/json|\*\/\*/.test(accept) && /text\/event-stream|\*\/\*/.test(accept)
      return both || `Accept must list application/json and text/event-stream, not "${accept.slice(0, 60)}"`
    }),
    'Content-Type must be application/json': each(everything, ({ headers }) =>
      /^application\/json\b/.test(headers['content-type'] ?? ''),
    ),
  }),
  httpRow(
    'version MCP basic/transports#protocol-version-header',
    'Every request after the handshake has the negotiated version',
  ).by(
    { revisions: ['2025-06-18', '2025-11-25', ...stateless] },
    {
      'The version': each(everything, ({ method, headers }, { wire }) => {
        const right = method === 'initialize' || headers['mcp-protocol-version'] === wire
        return right || `MCP-Protocol-Version must be ${wire}`
      }),
    },
  ),
  httpRow('session MCP basic/transports#session-management', 'Every request of a session has its id, and initialize has none').by(
    { revisions: httpSessions },
    {
      'initialize opens a session; it has none': each('initialize', header('mcp-session-id', undefined)),
      'Mcp-Session-Id must be echoed': none(
        everything,
        ({ method, headers }) =>
          method !== 'initialize' && method !== 'server/discover' && headers['mcp-session-id'] !== 'session-1',
      ),
    },
  ),
  httpRow('routing MCP 2026-07-28 basic/transports/streamable-http', 'Mcp-Method and Mcp-Name match the body').by({
    'Mcp-Method must be the method of the body': each(afterOpening, ({ headers, method }) => headers['mcp-method'] === method),
    'Mcp-Name must be the name of the tool': each(
      seen => seen.calls(),
      ({ headers, params: { name } }) => headers['mcp-name'] === name,
    ),
  }),
]

// ── versions: the client is not told which ──────────────────────────────────────────────────────────────────────────

const versions: readonly unknown[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2024-10-07']
const modern = '2026-07-28'
const tools = { tools: {} }

/** An old server: it knows its own version and no other, and answers a modern first message as old servers do. */
const oldServer = play('old-server', { free: true })

/** It answers with a version that does not exist. */
const unknownVersion = play('unknown-version', {
  free: true,
  ms: 10_000,
  on: { initialize: { protocolVersion: '1999-01-01', capabilities: tools, serverInfo } },
})

/** A new server that is not ready for the first message, and names what it speaks. */
const counterOffer = play('request-metadata-vivarium', {
  free: true,
  on: () => {
    let refused = false
    const second = (answer: unknown) => () => {
      if (refused) return answer
      refused = true
      throw new Refusal(-32022, 'Not this one', { supported: [modern], requested: 'unknown' }, 400)
    }
    return {
      'server/discover': second({ supportedVersions: [modern], capabilities: tools }),
      'tools/list': second({ tools: [{ name: 'test-tool', inputSchema: { type: 'object' } }] }),
    }
  },
})

/** It speaks both eras; whichever the client begins with is the one. */
const bothEras = play('both-eras', {
  free: true,
  on: ({ wire }) => ({
    initialize: ({ params: { protocolVersion } }) => ({
      protocolVersion: versions.includes(protocolVersion) ? protocolVersion : '2025-11-25',
      capabilities: tools,
      serverInfo,
    }),
    'server/discover': { supportedVersions: [wire, '2025-11-25'], capabilities: tools },
    ping: {},
  }),
})

function isModern({ meta }: LoggedMessage): boolean {
  return meta[keys.version] !== undefined
}

function usesTools(seen: Observation): readonly LoggedMessage[] {
  return seen.requests().filter(({ method }) => method === 'tools/list' || method === 'tools/call')
}

const versionRow = clientTable('client/versions/', { play: oldServer, revisions: sessions })
const handshakeDone = { 'the client did not send a handshake': orSkip(some('initialize')) }

const negotiating = [
  versionRow('offers MCP basic/lifecycle#version-negotiation', 'The client offers a version that exists').by({
    ...handshakeDone,
    'The offer': first(
      'initialize',
      ({ params: { protocolVersion: offer } }) =>
        versions.includes(offer) || `There is no version ${JSON.stringify(offer)} with a handshake`,
    ),
  }),
  versionRow('accepts MCP basic/lifecycle#version-negotiation', 'The client accepts a counter-offer or ends').by((seen, x) => {
    const [opening] = seen.requests('initialize')
    if (opening === undefined) return x.leave('the client did not send a handshake')
    const later = afterOpening(seen).filter(({ at }) => at > opening.at)
    const got = opening.params['protocolVersion'] === seen.wire
    x.expect(later.length > 0 || !got, 'The client ended although its offer was accepted', [opening])
    const odd = later.filter(isModern)
    x.expect(odd.length === 0, 'After the handshake the client uses messages of another revision', odd.slice(0, 1))
    if (seen.carrier !== 'http' || seen.revision === '2025-03-26') return
    const unnamed = later.filter(({ headers }) => headers['mcp-protocol-version'] !== seen.wire)
    x.expect(unnamed.length === 0, `MCP-Protocol-Version must be the one that was settled on, ${seen.wire}`, unnamed.slice(0, 1))
  }),
  versionRow(
    'falls-back MCP 2026-07-28 basic/versioning',
    'With a server that does not know server/discover, the client sends a handshake',
  ).by({
    'the client begins with a handshake': orSkip(some('server/discover')),
    'The client did not fall back to initialize': some('initialize'),
  }),
  versionRow('leaves MCP basic/lifecycle#version-negotiation', 'A version that the client does not speak ends the session').by(
    { play: unknownVersion, revisions: ['2024-11-05', '2025-11-25'] },
    { ...handshakeDone, 'The client continues at a version that does not exist': none(usesTools) },
  ),
  versionRow(
    'counter-offer MCP 2026-07-28 basic/versioning',
    'After a refused version the client uses one that the server named',
  ).by(
    { play: counterOffer, revisions: [modern] },
    {
      'The client did not try again with the version that the server named': seen => seen.requests().filter(isModern).length > 1,
      'The client did not list the tools': some('tools/list'),
    },
  ),
  versionRow('both MCP 2026-07-28 basic/versioning', 'With a server that supports both modes the client uses one').by(
    { play: bothEras, revisions: [modern] },
    (seen, x) => {
      const used = usesTools(seen)
      const count = used.filter(isModern).length
      x.expect(used.length > 0, 'The client did not list the tools')
      x.expect(count === 0 || count === used.length, 'Some requests are stateless, others belong to a session', used.slice(0, 2))
      const hadHandshake = seen.requests('initialize').length > 0
      x.expect(count > 0 || hadHandshake, 'Requests came without a handshake and without a version', used.slice(0, 1))
    },
  ),
]

/** What the plain run shows, and how versions are found. */
export const runScenarios = [...running, ...overHttp, ...negotiating]
