/** Finding a version that both speak. The client is not told which. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, RUN } from '../play.ts'
import { type ClientScenario, OLDEST, SESSIONS, scenario } from '../scenario.ts'
import { metaIn, paramsOf } from '../stage/book.ts'
import { serverInfo } from '../stage/hello.ts'
import { Refusal } from '../stage/script.ts'
import { header } from './running.ts'

const VERSIONS: readonly unknown[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2024-10-07']
const MODERN = '2026-07-28'

/** An old server: it knows its own version and no other, and answers a modern first message as old servers do. */
const old: Play = { name: 'old-server', steps: RUN, free: true }

/** It answers with a version that does not exist. */
const nonsense: Play = {
  name: 'unknown-version',
  steps: RUN,
  free: true,
  ms: 10_000,
  on: () => ({ initialize: () => ({ protocolVersion: '1999-01-01', capabilities: { tools: {} }, serverInfo }) }),
}

/** A new server that is not ready for the first message, and names what it speaks. */
const counter: Play = {
  name: 'request-metadata-vivarium',
  steps: RUN,
  free: true,
  on: () => {
    let refused = false
    const once = (answer: () => unknown) => () => {
      if (refused) return answer()
      refused = true
      throw new Refusal(-32022, 'Not this one', { supported: [MODERN], requested: 'unknown' }, 400)
    }
    const discover = { supportedVersions: [MODERN], capabilities: { tools: {} } }
    return {
      'server/discover': once(() => discover),
      'tools/list': once(() => ({ tools: [{ name: 'test-tool', inputSchema: { type: 'object' } }] })),
    }
  },
}

/** It speaks both eras; whichever the client begins with is the one. */
const both: Play = {
  name: 'both-eras',
  steps: RUN,
  free: true,
  on: ({ wire }) => ({
    initialize: ({ params: { protocolVersion } }) => ({
      protocolVersion: VERSIONS.includes(protocolVersion) ? protocolVersion : '2025-11-25',
      capabilities: { tools: {} },
      serverInfo,
    }),
    'server/discover': () => ({ supportedVersions: [wire, '2025-11-25'], capabilities: { tools: {} } }),
    ping: () => ({}),
  }),
}

export const negotiating: readonly ClientScenario[] = [
  scenario('client/versions/offers', 'The client offers a version that exists', old, {
    proves: ['MCP basic/lifecycle#version-negotiation'],
    revisions: SESSIONS,
    check: (seen, { expect, skip }) => {
      const [first] = seen.requests('initialize')
      if (first === undefined) return skip('the client did not come to a handshake')
      const { protocolVersion } = paramsOf(first)
      expect(VERSIONS.includes(protocolVersion), `There is no version ${JSON.stringify(protocolVersion)} with a handshake`, [
        first,
      ])
    },
  }),
  scenario('client/versions/accepts', 'A counter-offer is taken, or the client leaves', old, {
    proves: ['MCP basic/lifecycle#version-negotiation'],
    revisions: SESSIONS,
    check: (seen, { expect, skip }) => {
      const [first] = seen.requests('initialize')
      if (first === undefined) return skip('the client did not come to a handshake')
      const later = seen.requests().filter(({ at, frame }) => at > first.at && frame?.['method'] !== 'initialize')
      if (later.length === 0)
        return expect(paramsOf(first)['protocolVersion'] !== seen.wire, 'The client left though it got what it offered', [first])
      const modern = later.filter(said => metaIn(said)['io.modelcontextprotocol/protocolVersion'] !== undefined)
      expect(modern.length === 0, 'After the handshake the client speaks the other wire', modern.slice(0, 1))
      if (seen.carrier === 'http' && seen.revision !== '2025-03-26') {
        const odd = later.filter(said => header(said, 'mcp-protocol-version') !== seen.wire)
        expect(odd.length === 0, `MCP-Protocol-Version must be the one that was settled on, ${seen.wire}`, odd.slice(0, 1))
      }
    },
  }),
  scenario('client/versions/falls-back', 'A server that does not know the modern first message is met with a handshake', old, {
    proves: ['MCP 2026-07-28 basic/versioning'],
    revisions: SESSIONS,
    check: (seen, { expect, skip }) => {
      const probes = seen.requests('server/discover')
      if (probes.length === 0) skip('the client begins with a handshake')
      expect(seen.requests('initialize').length > 0, 'The client did not fall back to initialize', seen.fromClient)
    },
  }),
  scenario('client/versions/leaves', 'A version that the client does not speak ends the session', nonsense, {
    proves: ['MCP basic/lifecycle#version-negotiation'],
    revisions: [OLDEST, '2025-11-25'],
    check: (seen, { expect, skip }) => {
      const [first] = seen.requests('initialize')
      if (first === undefined) return skip('the client did not come to a handshake')
      const asked = seen.requests().filter(({ frame }) => ['tools/list', 'tools/call'].includes(String(frame?.['method'])))
      expect(asked.length === 0, 'The client goes on at a version that does not exist', asked.slice(0, 1))
    },
  }),
  scenario('client/versions/counter-offer', 'A refused version is followed by one that the server named', counter, {
    proves: ['MCP 2026-07-28 basic/versioning'],
    revisions: [MODERN],
    check: (seen, { expect }) => {
      const modern = seen.requests().filter(said => metaIn(said)['io.modelcontextprotocol/protocolVersion'] !== undefined)
      expect(modern.length > 1, 'The client did not try again with the version that the server named', seen.fromClient)
      expect(seen.requests('tools/list').length > 0, 'The client did not come to list the tools', seen.fromClient)
    },
  }),
  scenario('client/versions/both', 'With a server of both eras the client stays in one', both, {
    proves: ['MCP 2026-07-28 basic/versioning'],
    revisions: [MODERN],
    check: (seen, { expect }) => {
      const used = seen.requests().filter(({ frame }) => ['tools/list', 'tools/call'].includes(String(frame?.['method'])))
      expect(used.length > 0, 'The client did not list the tools', seen.fromClient)
      const modern = used.filter(
        said => isRecord(paramsOf(said)['_meta']) && 'io.modelcontextprotocol/protocolVersion' in metaIn(said),
      )
      const shook = seen.requests('initialize').length > 0
      expect(
        modern.length === 0 || modern.length === used.length,
        'Some requests are of one era, some of the other',
        used.slice(0, 2),
      )
      expect(modern.length > 0 || shook, 'Requests came without a handshake and without a version', used.slice(0, 1))
    },
  }),
]
