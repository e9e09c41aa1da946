/** Manifests (E1), references (E9), media (E10) and recommendations (E13): read, checked, and never followed blindly. */
import { createHash } from 'node:crypto'
import { type Play, said, testTool } from '../play.ts'
import type { ClientScenario } from '../scenario.ts'
import { paramsOf } from '../stage/book.ts'
import type { Stage } from '../stage/open.ts'
import { extending, key, offering } from './define.ts'

const revision = `sha256:${createHash('sha256').update('one').digest('base64url')}`
const manifest = {
  manifest_version: '0.1.0',
  server: { name: 'scripted', version: '1.0.0', mcp_spec_version: '2026-07-28' },
  tools: [{ name: 'test-tool', description: 'Called by every run', input_schema: { type: 'object' } }],
}

function manifests(name: string, ttlMs: number): Play {
  return {
    name,
    report: true,
    steps: [
      { do: 'manifest', as: 'first' },
      { do: 'manifest', as: 'second' },
    ],
    capabilities: offering('manifest'),
    on: () => ({
      'manifest/get': ({ params }) => {
        const same = params['if_revision'] === revision
        return { revision, ttlMs, cacheScope: 'private', ...(same ? { not_modified: true } : { manifest }) }
      },
    }),
  }
}

const kept = manifests('manifest-kept', 60_000)
const stale = manifests('manifest-stale', 0)

const CONTENT = 'the data'

function referring(name: string, data: string, status = 200): Play {
  const reference = ({ origin }: Stage) => ({
    ref_id: 'r-1',
    origin_server: 'scripted',
    mime_type: 'text/plain',
    size_bytes: CONTENT.length,
    expires_at: '2999-01-01T00:00:00Z',
    access_url: `${origin}/data/r-1?sig=x`,
    checksum: { algorithm: 'sha256', value: createHash('sha256').update(CONTENT).digest('hex') },
  })
  return {
    name,
    report: true,
    steps: [{ do: 'reference', tool: 'test-tool', as: 'reference' }],
    capabilities: offering('data-references'),
    on: stage => ({
      'tools/call': () => ({
        content: [
          {
            type: 'resource_link',
            uri: 'ref:r-1',
            name: 'data',
            mimeType: 'text/plain',
            _meta: { [key('data-references')]: reference(stage) },
          },
        ],
      }),
    }),
    http:
      stage =>
      ({ method, path }, response) => {
        if (method !== 'GET' || !path.startsWith('/data/')) return false
        if (status === 200) response.writeHead(200, { 'content-type': 'text/plain', 'content-length': data.length }).end(data)
        else response.writeHead(status, { location: `${stage.origin}/elsewhere` }).end()
        return true
      },
  }
}

const whole = referring('reference', CONTENT)
const tampered = referring('reference-tampered', 'the bata')
const redirected = referring('reference-redirected', CONTENT, 302)

const image = { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' }
const media: Play = {
  name: 'media-too-large',
  report: true,
  steps: [
    { do: 'list', what: 'tools' },
    { do: 'call', tool: 'test-tool', arguments: { image: Buffer.alloc(5_000, 1).toString('base64') }, as: 'large' },
  ],
  tools: [
    {
      ...testTool,
      inputSchema: { type: 'object', properties: { image } },
      _meta: { [key('media')]: { input_types: ['image/png'], max_input_size_bytes: 1_000 } },
    },
  ],
  capabilities: offering('media', 'problem'),
  on: () => ({ 'tools/call': () => said('done') }),
}

const recommending: Play = {
  name: 'recommend',
  report: true,
  steps: [{ do: 'recommend', capability: 'translate', as: 'recommend' }],
  capabilities: offering('recommendations'),
  on: ({ origin }) => ({
    'servers/recommend': () => ({
      capability_needed: 'translate',
      recommendations: [
        { capability: 'translate', server_name: 'babel', registry_url: `${origin}/registry/babel`, match_confidence: 'high' },
      ],
    }),
  }),
}

export const things: readonly ClientScenario[] = [
  extending('E1-6', 'A manifest is not asked for again while it is good', kept, {
    proves: ['E1-6'],
    knows: 'manifest',
    check: (seen, { expect, skip }) => {
      const asked = seen.requests('manifest/get')
      if (asked.length === 0) skip('the client did not ask for the manifest')
      expect(asked.length === 1, `It was asked for ${asked.length} times within its ttl`, asked)
    },
  }),
  extending('E1-4', 'A manifest that may be old is asked for by the revision that is there', stale, {
    proves: ['E1-4'],
    knows: 'manifest',
    check: (seen, { expect, skip }) => {
      const asked = seen.requests('manifest/get')
      if (asked.length < 2) skip('the client did not ask twice')
      const sent = paramsOf(asked[1])['if_revision']
      expect(sent === undefined || sent === revision, 'if_revision is not the revision that was given', asked.slice(1))
      const entry = seen.reported.get('second')
      expect(entry === undefined || entry.ok, `not_modified was not understood: ${entry?.message ?? ''}`, asked.slice(1))
    },
  }),
  extending('E9-1', 'What a reference stands for is fetched from where it lies', whole, {
    proves: ['E9-1'],
    knows: 'data-references',
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      const entry = seen.reported.get('reference')
      if (entry === undefined || seen.visits('GET', '/data/').length === 0) return skip('the client does not read references')
      expect(entry.text === CONTENT, `The reference reads "${entry.text ?? entry.message}"`)
      const credentials = seen
        .visits('GET', '/data/')
        .some(({ headers }) => 'authorization' in headers || 'mcp-session-id' in headers)
      expect(!credentials, 'The session or a token was sent to the address of a reference')
    },
  }),
  extending('E9-4', 'Content that is not what was announced is refused', tampered, {
    proves: ['E9-4'],
    knows: 'data-references',
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      const entry = seen.reported.get('reference')
      if (entry === undefined || seen.visits('GET', '/data/').length === 0) return skip('the client does not read references')
      expect(!entry.ok, 'The checksum was not checked')
    },
  }),
  extending('E9-5', 'A reference leads nowhere but to its own address', redirected, {
    proves: ['E9-5'],
    knows: 'data-references',
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      if (seen.visits('GET', '/data/').length === 0) skip('the client does not read references')
      expect(seen.visits('GET', '/elsewhere').length === 0, 'A redirect was followed')
    },
  }),
  extending('E10-2', 'Media that the tool would refuse are not sent', media, {
    proves: ['E10-2'],
    knows: 'media',
    check: (seen, { expect, skip }) => {
      if (seen.requests('tools/list').length === 0) skip('the client did not look at the tools')
      expect(seen.calls('test-tool').length === 0, 'An image over the limit was sent', [])
    },
  }),
  extending('E13-2', 'A server that is recommended is connected to by nobody', recommending, {
    proves: ['E13-2'],
    knows: 'recommendations',
    check: (seen, { expect, skip }) => {
      if (seen.requests('servers/recommend').length === 0) skip('the client did not ask for recommendations')
      expect(
        seen.book.visits.filter(({ path }) => path.startsWith('/registry')).length === 0,
        'The address of a recommendation was visited',
      )
    },
  }),
]
