/** Manifests (E1), references (E9), media (E10) and recommendations (E13): read, checked, and never followed blindly. */
import { createHash } from 'node:crypto'
import { is, orSkip } from '../../expectations.ts'
import { extensionId } from '../../said.ts'
import type { Json } from '../../scenario.ts'
import { calls, first, none, reported, some, times, unvisited } from '../checks.ts'
import { type ClientScenario, knowing, offering } from '../define.ts'
import type { Observation } from '../log.ts'
import { call, listTools, type Play, reportedPlay, testTool } from '../play.ts'

const revision = `sha256:${createHash('sha256').update('one').digest('base64url')}`
const manifest = {
  manifest_version: '0.1.0',
  server: { name: 'scripted', version: '1.0.0', mcp_spec_version: '2026-07-28' },
  tools: [{ name: 'test-tool', description: 'Called by every run', input_schema: { type: 'object' } }],
}

/** The manifest is asked for twice; it is good for so long. */
function manifests(name: string, ttlMs: number): Play {
  return reportedPlay(name, {
    steps: ['first', 'second'].map(as => ({ do: 'manifest', as }) as const),
    capabilities: offering('manifest'),
    on: {
      'manifest/get': ({ params }) => ({
        ...{ revision, ttlMs, cacheScope: 'private' },
        ...(params['if_revision'] === revision ? { not_modified: true } : { manifest }),
      }),
    },
  })
}

const stored = manifests('manifest-kept', 60_000)
const stale = manifests('manifest-stale', 0)

const CONTENT = 'the data'

/** The result of the tool refers to data, which are these, or are said to be elsewhere. */
function referring(name: string, data: string, status = 200): Play {
  const reference = (origin: string): Json => ({
    ref_id: 'r-1',
    origin_server: 'scripted',
    mime_type: 'text/plain',
    size_bytes: CONTENT.length,
    expires_at: '2999-01-01T00:00:00Z',
    access_url: `${origin}/data/r-1?sig=x`,
    checksum: { algorithm: 'sha256', value: createHash('sha256').update(CONTENT).digest('hex') },
  })
  const link = { type: 'resource_link', uri: 'ref:r-1', name: 'data', mimeType: 'text/plain' }
  return reportedPlay(name, {
    steps: [{ do: 'reference', tool: 'test-tool', as: 'reference' }],
    capabilities: offering('data-references'),
    on: ({ origin }) => ({
      'tools/call': { content: [{ ...link, _meta: { [extensionId('data-references')]: reference(origin) } }] },
    }),
    http:
      ({ origin }) =>
      ({ method, path }, response) => {
        if (method !== 'GET' || !path.startsWith('/data/')) return false
        if (status === 200) response.writeHead(200, { 'content-type': 'text/plain', 'content-length': data.length }).end(data)
        else response.writeHead(status, { location: `${origin}/elsewhere` }).end()
        return true
      },
  })
}

const whole = referring('reference', CONTENT)
const tampered = referring('reference-tampered', 'the bata')
const redirected = referring('reference-redirected', CONTENT, 302)

const image = { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' }
const largeImage = reportedPlay('media-too-large', {
  steps: [listTools, call('large', { image: Buffer.alloc(5_000, 1).toString('base64') })],
  tools: [
    {
      ...testTool,
      inputSchema: { type: 'object', properties: { image } },
      _meta: { [extensionId('media')]: { input_types: ['image/png'], max_input_size_bytes: 1_000 } },
    },
  ],
  capabilities: offering('media', 'problem'),
})

const recommending = reportedPlay('recommend', {
  steps: [{ do: 'recommend', capability: 'translate', as: 'recommend' }],
  capabilities: offering('recommendations'),
  on: ({ origin }) => {
    const babel = { capability: 'translate', server_name: 'babel', match_confidence: 'high' }
    const recommendations = [{ ...babel, registry_url: `${origin}/registry/babel` }]
    return { 'servers/recommend': { capability_needed: 'translate', recommendations } }
  },
})

function isFetched(seen: Observation): boolean {
  return seen.visits('GET', '/data/').length > 0
}

const fetches = { 'the client does not read references': orSkip(isFetched) }
const readsReference = {
  'the client does not read references': orSkip((seen: Observation) => seen.reported.has('reference') && isFetched(seen)),
}

const manifestRow = knowing('manifest')
const referenceRow = knowing('data-references', { carriers: ['http'] })

/** What a client reads beside results. */
export const contentScenarios: readonly ClientScenario[] = [
  manifestRow('E1-6', 'A manifest is not requested again while it is valid').by(stored, {
    'the client did not request the manifest': orSkip(some('manifest/get')),
    'The requests': times('manifest/get', 1, count => `The manifest was requested ${count} times within its ttl`),
  }),
  manifestRow('E1-4', 'An expired manifest is requested with its known revision').by(stale, {
    'the client did not ask twice': orSkip(times('manifest/get', count => count >= 2)),
    'if_revision is not the known revision': first(
      seen => seen.requests('manifest/get').slice(1),
      ({ params }) => is.oneOf(undefined, revision)(params['if_revision']),
    ),
    'The report': reported('second', ({ ok, message = '' }) => ok || `not_modified was not understood: ${message}`),
  }),
  referenceRow('E9-1', 'The content of a reference is fetched from its address').by(whole, {
    ...readsReference,
    'The data': reported('reference', ({ text, message }) => text === CONTENT || `The reference reads "${text ?? message}"`),
    'The session or a token was sent to the address of a reference': seen =>
      !seen.visits('GET', '/data/').some(({ headers }) => 'authorization' in headers || 'mcp-session-id' in headers),
  }),
  referenceRow('E9-4', 'Content that differs from its announcement is refused').by(tampered, {
    ...readsReference,
    'The checksum was not checked': reported('reference', ({ ok }) => !ok),
  }),
  referenceRow('E9-5', 'A reference is fetched only from its own address').by(redirected, {
    ...fetches,
    'A redirect was followed': unvisited('/elsewhere'),
  }),
  knowing('media')('E10-2', 'Media that the tool would refuse are not sent').by(largeImage, {
    'the client did not look at the tools': orSkip(some('tools/list')),
    'An image over the limit was sent': none(calls),
  }),
  knowing('recommendations')('E13-2', 'The client does not connect to a recommended server').by(recommending, {
    'the client did not request recommendations': orSkip(some('servers/recommend')),
    'The address of a recommendation was visited': ({ log }) => !log.visits.some(({ path }) => path.startsWith('/registry')),
  }),
]
