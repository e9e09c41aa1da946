/** What the plain run shows: opening, envelopes, headers, words, end. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, RUN } from '../play.ts'
import { ALL, type ClientScenario, EVERY, HTTP_SESSIONS, SESSIONS, STATELESS, scenario } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import { metaIn, paramsOf, type Said } from '../stage/book.ts'

export const run: Play = { name: 'run', steps: RUN }

/** What a client may send at all. */
const COMMON = [
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/read',
  'resources/templates/list',
  'prompts/list',
  'prompts/get',
  'completion/complete',
]
const OLD = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']
const NEW = ['server/discover', 'subscriptions/listen', 'tasks/get', 'tasks/update', 'tasks/cancel']
const TASKS = ['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel']
/** What needs a capability that the server of the run has not declared. */
const UNDECLARED = /^(resources|prompts|logging|completion|tasks)\//

export const running: readonly ClientScenario[] = [
  scenario('client/run/lists-and-calls', 'The run ends with the tools listed and the tool called', run, {
    proves: ['MCP basic#messages'],
    revisions: ALL,
    check: (seen, { expect, fail }) => {
      expect(seen.requests('tools/list').length > 0, 'The client did not list the tools', seen.fromClient.slice(-4))
      const [call] = seen.calls('test-tool')
      if (call === undefined) return fail('The client did not call test-tool', seen.fromClient.slice(-4))
      const { arguments: args } = paramsOf(call)
      expect(args === undefined || isRecord(args), 'The arguments of a call are an object', [call])
    },
  }),
  scenario('client/run/ends', 'The client ends by itself and takes what it has opened with it', run, {
    proves: ['MCP basic/lifecycle#shutdown'],
    revisions: ALL,
    check: (seen, { expect, warn }) => {
      expect(!seen.end.timedOut, 'The client had to be ended')
      expect((seen.end.code ?? 0) === 0, `The client ended with code ${seen.end.code}: ${seen.end.error ?? ''}`)
      expect(seen.end.error === undefined, `The client failed: ${seen.end.error}`)
      const closes = seen.carrier === 'http' && HTTP_SESSIONS.includes(seen.revision)
      if (closes && seen.visits('DELETE').length === 0) warn('A session that is no longer needed should be ended by DELETE')
    },
  }),
  scenario('client/run/initialize', 'A session begins with a whole initialize', run, {
    proves: ['MCP basic/lifecycle#initialization'],
    revisions: SESSIONS,
    check: (seen, { expect, fail }) => {
      const [first] = seen.requests('initialize')
      if (first === undefined) return fail('The client did not send initialize', seen.fromClient.slice(0, 2))
      const { protocolVersion, capabilities, clientInfo } = paramsOf(first)
      expect(typeof protocolVersion === 'string', 'protocolVersion must be a string', [first])
      expect(isRecord(capabilities), 'capabilities must be an object', [first])
      const named = isRecord(clientInfo) && typeof clientInfo['name'] === 'string' && typeof clientInfo['version'] === 'string'
      expect(named, 'clientInfo must have name and version', [first])
    },
  }),
  scenario('client/run/offers', 'The client offers the version that it was told to speak', run, {
    proves: ['MCP basic/lifecycle#version-negotiation'],
    revisions: SESSIONS,
    check: (seen, { warn }) => {
      const { protocolVersion } = paramsOf(seen.requests('initialize')[0])
      if (protocolVersion !== seen.wire) warn(`It offered ${String(protocolVersion)} and was talked down to ${seen.wire}`)
    },
  }),
  scenario('client/run/initialized', 'Nothing is asked before the session is announced as open', run, {
    proves: ['MCP basic/lifecycle#initialization'],
    revisions: [...SESSIONS, 's3'],
    check: (seen, { expect, fail }) => {
      const ready = seen.notices(seen.revision === 's3' ? 'initialized' : 'notifications/initialized')[0]
      if (ready === undefined) return fail('The client did not announce that it is ready', seen.fromClient.slice(0, 4))
      const early = seen.requests().filter(({ frame, at }) => at < ready.at && !isOpening(frame?.['method']))
      expect(early.length === 0, 'A request came before the client was ready', [...early.slice(0, 2), ready])
    },
  }),
  scenario('client/run/ids', 'Ids are strings or integers, and none is used twice', run, {
    proves: ['MCP basic#requests'],
    revisions: ALL,
    check: (seen, { expect }) => {
      const used = new Map<string, Said>()
      for (const request of seen.requests()) {
        const id = request.frame?.['id']
        expect(typeof id === 'string' || Number.isInteger(id), 'An id is a string or an integer, never null', [request])
        // A child that was only probed had its own session.
        const key = `${seen.carrier === 'http' || seen.carrier === 'sse' ? '' : request.line} ${JSON.stringify(id)}`
        expect(!used.has(key), 'An id was used twice', [used.get(key), request])
        used.set(key, request)
      }
    },
  }),
  scenario('client/run/envelopes', 'Every message is one whole JSON-RPC 2.0 object', run, {
    proves: ['MCP basic#messages'],
    revisions: ALL,
    check: (seen, { expect }) => {
      for (const said of seen.fromClient) {
        expect(said.frame?.['jsonrpc'] === '2.0', 'A message is one JSON object with jsonrpc "2.0"', [said])
        const params = said.frame?.['params']
        expect(params === undefined || isRecord(params), 'params, where there are some, are an object', [said])
      }
    },
  }),
  scenario('client/run/words', 'The client uses only words that the revision has', run, {
    proves: ['MCP basic#messages'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const known = new Set([...COMMON, ...(seen.stateless ? NEW : OLD), ...(seen.revision === '2025-11-25' ? TASKS : [])])
      if (seen.revision === 'draft-2026-v1') for (const word of TASKS) known.add(word)
      const probes = new Set(['server/discover', 'initialize'])
      const odd = seen.requests().filter(({ frame }) => {
        const method = String(frame?.['method'])
        return !known.has(method) && !probes.has(method) && /^[a-z]+\/|^ping$/.test(method) && !method.includes('.')
      })
      expect(odd.length === 0, `${seen.revision} has no such method`, odd.slice(0, 2))
    },
  }),
  scenario('client/run/undeclared', 'What the server did not declare is not asked for', run, {
    proves: ['MCP basic/lifecycle#capability-negotiation'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const odd = seen.requests().filter(({ frame }) => UNDECLARED.test(String(frame?.['method'])))
      expect(odd.length === 0, 'The server declared tools only', odd.slice(0, 2))
    },
  }),
  scenario('client/run/meta', 'Every request names its version, its sender and what the sender can do', run, {
    proves: ['MCP 2026-07-28 basic'],
    revisions: STATELESS,
    check: (seen, { expect, warn }) => {
      for (const request of seen.requests().filter(({ frame }) => frame?.['method'] !== 'initialize')) {
        const meta = metaIn(request)
        expect(meta['io.modelcontextprotocol/protocolVersion'] === seen.wire, `_meta must name the version ${seen.wire}`, [
          request,
        ])
        expect(isRecord(meta['io.modelcontextprotocol/clientCapabilities']), '_meta must have clientCapabilities', [request])
        const info = meta['io.modelcontextprotocol/clientInfo']
        const named = isRecord(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string'
        expect(named || (info === undefined && seen.revision === '2026-07-28'), 'clientInfo must have name and version', [
          request,
        ])
        if (info === undefined) warn('_meta should name the client')
      }
    },
  }),
  scenario('client/run/one-way', 'The client sends requests only: no handshake, no answers, no notifications over HTTP', run, {
    proves: ['MCP 2026-07-28 basic/versioning'],
    revisions: STATELESS,
    check: (seen, { expect }) => {
      expect(seen.answers.length === 0, 'Answers are not sent on this wire', seen.answers.slice(0, 2))
      const told = seen.fromClient.filter(({ frame }) => frame !== undefined && 'method' in frame && !('id' in frame))
      const odd = told.filter(({ frame }) => seen.carrier === 'http' || frame?.['method'] !== 'notifications/cancelled')
      expect(odd.length === 0, 'Notifications of clients do not exist on this wire', odd.slice(0, 2))
      expect(
        !seen.opened || seen.requests('initialize').every(({ at }) => at < (seen.calls()[0]?.at ?? 0)),
        'A handshake came late',
        seen.requests('initialize'),
      )
    },
  }),
  scenario('client/run/http-accept', 'Every POST takes JSON and streams, and says that it brings JSON', run, {
    proves: ['MCP basic/transports#sending-messages-to-the-server'],
    revisions: [...HTTP_SESSIONS, ...STATELESS],
    carriers: ['http'],
    check: (seen, { expect }) => {
      for (const post of seen.fromClient) {
        const accept = header(post, 'accept') ?? ''
        const both = /application\/json|\*\/\*/.test(accept) && /text\/event-stream|\*\/\*/.test(accept)
        expect(both, `Accept must list application/json and text/event-stream, not "${accept.slice(0, 60)}"`, [post])
        expect(/^application\/json\b/.test(header(post, 'content-type') ?? ''), 'Content-Type must be application/json', [post])
      }
    },
  }),
  scenario('client/run/http-version', 'Every request after the opening carries the version it was settled on', run, {
    proves: ['MCP basic/transports#protocol-version-header'],
    revisions: ['2025-06-18', '2025-11-25', ...STATELESS],
    carriers: ['http'],
    check: (seen, { expect }) => {
      const posts = seen.fromClient.filter(({ frame }) => frame?.['method'] !== 'initialize')
      for (const post of posts) {
        expect(header(post, 'mcp-protocol-version') === seen.wire, `MCP-Protocol-Version must be ${seen.wire}`, [post])
      }
    },
  }),
  scenario('client/run/http-session', 'Every request of a session carries its id, and the opening carries none', run, {
    proves: ['MCP basic/transports#session-management'],
    revisions: HTTP_SESSIONS,
    carriers: ['http'],
    check: (seen, { expect }) => {
      for (const post of seen.fromClient) {
        const sent = header(post, 'mcp-session-id')
        if (post.frame?.['method'] === 'initialize') expect(sent === undefined, 'initialize opens a session; it has none', [post])
        else if (post.frame?.['method'] !== 'server/discover')
          expect(sent === 'session-1', 'Mcp-Session-Id must be echoed', [post])
      }
    },
  }),
  scenario('client/run/http-routing', 'Mcp-Method and Mcp-Name say what the body says', run, {
    proves: ['MCP 2026-07-28 basic/transports/streamable-http'],
    revisions: STATELESS,
    carriers: ['http'],
    check: (seen, { expect }) => {
      for (const post of seen.requests().filter(({ frame }) => frame?.['method'] !== 'initialize')) {
        expect(header(post, 'mcp-method') === post.frame?.['method'], 'Mcp-Method must be the method of the body', [post])
      }
      for (const post of seen.calls()) {
        expect(header(post, 'mcp-name') === paramsOf(post)['name'], 'Mcp-Name must be the name of the tool', [post])
      }
    },
  }),
  scenario('client/run/declares', 'What the client declares are objects', run, {
    proves: ['MCP basic/lifecycle#capability-negotiation'],
    revisions: EVERY,
    check: (seen, { expect }) => {
      const declared = Object.entries(seen.capabilities)
      const odd = declared.filter(([, value]) => !isRecord(value)).map(([name]) => name)
      expect(odd.length === 0, `Capabilities are objects: ${odd.join(', ')}`, seen.requests().slice(0, 1))
    },
  }),
]

function isOpening(method: unknown): boolean {
  return method === 'initialize' || method === 'ping' || method === 'server/discover'
}

export function header({ http }: Said, name: string): string | undefined {
  return http?.headers[name]
}

/** Whether the plain run got anywhere: the ground of all further verdicts. */
export function speaks(seen: Seen): boolean {
  return seen.opened
}
