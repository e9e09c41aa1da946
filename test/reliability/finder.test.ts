import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { registry, type ServerDetail } from '../../examples/registry/registry.ts'
import { type Client, createFinder, type FinderOptions } from '../../src/client/index.ts'
import { createServer, type Recommendation, type Server } from '../../src/server/index.ts'
import { connectInMemory, fakeClock } from '../../src/testing/index.ts'
import { publicServer, stageOptions } from '../transports/outbound-servers.ts'
import { everyField } from './manifest-fields.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

const remote = (url: string) => ({ remotes: [{ type: 'streamable-http', url }] })
const draw: ServerDetail = {
  name: 'com.example/draw',
  version: '2.0.0',
  description: 'A mockup of a design',
  ...remote('https://draw.example/mcp'),
}
const wiki: ServerDetail = {
  name: 'com.example/wiki',
  version: '1.0.0',
  description: 'Pages',
  ...remote('https://wiki.example/mcp'),
}

/** A site that answers as told, and notes what was asked of it. */
async function site(listener: RequestListener): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = []
  const { url } = await publicServer((req, res) => {
    asked.push(req.url ?? '')
    listener(req, res)
  })
  return { url: url.replace(/\/$/, ''), asked }
}

const says =
  (body: unknown, status = 200): RequestListener =>
  (_, res) => {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

const finderOf = (options: FinderOptions) => createFinder({ outbound: stageOptions, ...options })

async function recommender(recommendations: readonly Recommendation[], revision: '2025-11-25' | '2026-07-28'): Promise<Client> {
  const server: Server = createServer({ name: 'tracker', version: '1.0.0', log: 'silent', recommendations })
  const mcp = await connectInMemory(server, { revision })
  open.push(server, mcp)
  return mcp
}

describe('the finder', () => {
  it('E13-1: gives the surest of all sources first, each server once', async () => {
    const found = [
      { ...draw, name: 'com.example/mockups', description: 'Other things' },
      { ...draw, name: 'com.example/design' },
    ]
    const { url } = await site(registry(() => found))
    const mcp = await recommender(
      [{ capability: 'design mockup', server: 'com.example/design', confidence: 'medium' }],
      '2026-07-28',
    )
    const { candidates, faults } = await finderOf({ servers: [mcp], registries: [url] }).find('design mockup')
    expect(candidates.map(({ name, confidence, source }) => [name, confidence, source.kind])).toEqual([
      ['com.example/design', 'high', 'registry'],
      ['com.example/mockups', 'low', 'registry'],
    ])
    expect(faults).toEqual([])
  })

  it('E13-2: connects to nothing and installs nothing: the host does, or nobody', async () => {
    const asked: string[] = []
    const target = await publicServer((req, res) => {
      asked.push(req.url ?? '')
      res.end()
    })
    const found = {
      ...draw,
      ...remote(`${target.url}mcp`),
      packages: [{ registryType: 'npm', identifier: 'evil', version: '1' }],
    }
    const { url } = await site(registry(() => [found]))
    const { candidates } = await finderOf({ registries: [url] }).find('draw')
    expect(candidates[0]).toMatchObject({
      remotes: [{ url: `${target.url}mcp` }],
      packages: [{ registry: 'npm', identifier: 'evil', version: '1' }],
    })
    expect(asked).toEqual([])
  })

  it('E13-3: asks no stranger unless it was told whom, and then only if what is at hand is not enough', async () => {
    const { url, asked } = await site(registry(() => [draw, wiki]))
    expect((await finderOf({}).find('wiki')).candidates).toEqual([])
    const finder = finderOf({ manifests: [everyField], registries: [url] })
    const { candidates } = await finder.find('wiki', { limit: 1 })
    expect(candidates[0]).toMatchObject({ name: 'com.example/wiki', source: { kind: 'manifest', name: 'every-field' } })
    expect((await finder.find('wiki', { remote: false })).candidates).toHaveLength(1)
    expect(asked).toEqual([])
    await finder.find('wiki')
    expect(asked).toEqual(['/v0.1/servers?search=wiki&version=latest&limit=50'])
  })

  it('E13-3: what is at hand comes before what strangers say, where both are as sure', async () => {
    const manifest = { ...everyField, server: { ...everyField.server, name: 'own-wiki', description: 'Our wiki' } }
    const { url } = await site(registry(() => [{ ...wiki, description: 'A wiki' }]))
    const { candidates } = await finderOf({ manifests: [manifest], registries: [url] }).find('wiki')
    expect(candidates.map(({ name, trusted }) => [name, trusted])).toEqual([
      ['own-wiki', true],
      ['com.example/wiki', false],
    ])
  })

  it.each(['2025-11-25', '2026-07-28'] as const)('E13-4: marks who is not trusted, on %s', async revision => {
    const mcp = await recommender([{ capability: 'wiki', server: 'com.example/wiki' }], revision)
    const trustedBy = async (trusted: readonly string[]) =>
      (await finderOf({ servers: [mcp], trusted }).find('wiki')).candidates.map(({ trusted: yes, source }) => [source.name, yes])
    expect(await trustedBy([])).toEqual([['tracker', false]])
    expect(await trustedBy(['tracker'])).toEqual([['tracker', true]])
  })

  it('E13-4: an address is trusted only if whoever told it is', async () => {
    const { url } = await site(registry(() => [wiki]))
    const mcp = await recommender([{ capability: 'wiki', server: 'com.example/wiki', confidence: 'high' }], '2026-07-28')
    const found = async (trusted: readonly string[]) =>
      (await finderOf({ servers: [mcp], registries: [url], trusted }).find('wiki')).candidates[0]
    expect(await found(['tracker'])).toMatchObject({
      source: { name: 'tracker' },
      ...remote('https://wiki.example/mcp'),
      trusted: false,
    })
    expect(await found(['tracker', url])).toMatchObject({ version: '1.0.0', trusted: true })
  })

  it('E13-4: what was told is held against what the server says of itself', async () => {
    const { url } = await site(registry(() => [draw]))
    const finder = finderOf({ registries: [url] })
    const { candidates } = await finder.find('draw')
    const [candidate] = candidates
    if (candidate === undefined) throw new Error('Nothing was found')
    const warnings = (server: { name: string; version: string } | undefined) => finder.check(candidate, { server }).warnings
    expect(warnings({ name: 'draw', version: '2.0.0' })).toEqual([])
    expect(warnings({ name: 'com.example/draw', version: '2.0.0' })).toEqual([])
    expect(warnings({ name: 'draw', version: '1.9.9' })).toEqual([
      'Version 2.0.0 was recommended, but the server reports version 1.9.9',
    ])
    expect(warnings({ name: 'miner', version: '2.0.0' })).toEqual([
      'The recommended server is named "com.example/draw", but this one reports the name "miner"',
    ])
    expect(warnings(undefined)).toEqual(['The server does not report its name and version'])
  })

  it('E13-5: finding none is success', async () => {
    const { url } = await site(registry(() => []))
    expect(await finderOf({ registries: [url] }).find('telepathy')).toEqual({ candidates: [], faults: [] })
  })

  it.each([
    'http://127.0.0.1:8080/mcp',
    'https://localhost/mcp',
    'https://10.0.0.7/mcp',
    'https://169.254.169.254/latest',
    'https://[::1]/mcp',
    'https://[fd00::1]/mcp',
    'http://draw.example/mcp',
    'https://user:secret@draw.example/mcp',
    'file:///etc/passwd',
    'no address',
  ])('E13-6: %s is refused as what a stranger says', async address => {
    const { url } = await site(registry(() => [{ ...draw, ...remote(address) }, wiki]))
    const { candidates, faults } = await finderOf({ registries: [url] }).find('draw wiki')
    expect(candidates.map(({ name }) => name)).toEqual(['com.example/wiki'])
    expect(faults).toEqual([{ source: url, reason: expect.stringContaining('refused') }])
    expect(JSON.stringify(faults)).not.toContain('secret')
  })

  it('E13-6: who tells of other ways keeps those; a recommended page inside is not shown', async () => {
    const both = { ...draw, remotes: [{ type: 'sse', url: 'https://10.0.0.7/sse' }, ...(draw.remotes as object[])] }
    const { url } = await site(registry(() => [both as ServerDetail]))
    expect((await finderOf({ registries: [url] }).find('draw')).candidates[0]?.remotes).toEqual(draw['remotes'])
    const mcp = await recommender([{ capability: 'wiki', server: 'x', registryUrl: 'http://192.168.0.1/' }], '2026-07-28')
    const { candidates } = await finderOf({ servers: [mcp] }).find('wiki')
    expect(candidates[0]).toMatchObject({ registryUrl: undefined, warnings: [expect.stringContaining('refused')] })
  })

  it('E13-6: a source inside is refused itself, and so is a catalog that sends us inside', async () => {
    const { faults } = await finderOf({ registries: ['http://127.0.0.1:1', 'https://name.inside'] }).find('draw')
    expect(faults.map(({ reason }) => reason)).toEqual([
      expect.stringContaining('is an address of this machine'),
      expect.stringContaining('only public addresses'),
    ])
    const type = 'application/mcp-server-card+json'
    const { url, asked } = await site(says({ entries: [{ identifier: 'draw', type, url: 'http://localhost:1/card' }] }))
    const found = await finderOf({ catalogs: [url] }).find('draw')
    expect(found).toMatchObject({ candidates: [], faults: [{ reason: expect.stringContaining('refused') }] })
    expect(asked).toEqual(['/.well-known/mcp/catalog.json'])
  })

  it('E13-7: answers are kept until their time is over; failures are not', async () => {
    const clock = fakeClock()
    let up = false
    const serve = registry(() => [draw])
    const { url, asked } = await site((req, res) => (up ? serve(req, res) : says({}, 503)(req, res)))
    const finder = createFinder({ registries: [url], clock, ttl: '1m', outbound: stageOptions })
    expect((await finder.find('draw')).faults).toEqual([{ source: url, reason: 'The registry answered with HTTP status 503' }])
    up = true
    expect(await finder.find('draw')).toEqual(await finder.find('draw'))
    expect(asked).toHaveLength(2)
    clock.advance(60_000)
    await finder.find('draw')
    expect(asked).toHaveLength(3)
  })

  it('reads the catalog of a site and the cards it names, and the card of a server', async () => {
    const card = { name: 'com.example/draw', version: '2.0.0', title: 'Draw', description: 'A mockup', remotes: draw['remotes'] }
    const type = 'application/mcp-server-card+json'
    const { url, asked } = await site((req, res) => {
      if (req.url === '/.well-known/mcp/catalog.json') {
        const entries = [
          { identifier: 'urn:mcp:server:com.example/draw', description: 'mockup', type, url: `${url}/draw/server-card` },
          { identifier: 'urn:mcp:server:com.example/other', description: 'else', type, url: `${url}/other/server-card` },
          {
            identifier: 'urn:mcp:server:com.example/inline',
            description: 'mockup',
            type,
            data: { ...card, name: 'com.example/inline' },
          },
        ]
        says({ entries })(req, res)
      } else says(card)(req, res)
    })
    const { candidates } = await finderOf({ catalogs: [url] }).find('mockup')
    expect(candidates.map(({ name, title, source }) => [name, title, source.kind])).toEqual([
      ['com.example/draw', 'Draw', 'catalog'],
      ['com.example/inline', 'Draw', 'catalog'],
    ])
    expect(asked).toEqual(['/.well-known/mcp/catalog.json', '/draw/server-card'])
    const found = await finderOf({ cards: [`${url}/mcp`] }).find('mockup')
    expect(found.candidates).toMatchObject([{ name: 'com.example/draw', source: { kind: 'card' } }])
    expect(asked.at(-1)).toBe('/mcp/server-card')
  })

  it.each<readonly [string, RequestListener, string]>([
    ['no JSON', says('<html>'), 'not valid JSON'],
    ['another shape', says({ servers: 7 }), "The registry's response is not valid: servers must be an array"],
    ['too many entries', says({ servers: Array(201).fill({ server: {} }) }), 'The limit is 200'],
    ['too deep a nest', says(`{"servers":${'['.repeat(200)}${']'.repeat(200)}}`), 'nested deeper'],
    ['too large an answer', says({ servers: [], pad: 'x'.repeat(1_100_000) }), 'larger than'],
    ['a status', says({}, 500), 'status 500'],
    [
      'entries that are none',
      says({ servers: [{ server: { name: '' } }, {}] }),
      'Skipped entries that are not valid server descriptions: 2',
    ],
  ])('refuses a registry that answers with %s, and says so', async (_, listener, reason) => {
    const { url } = await site(listener)
    const good = await site(registry(() => [draw]))
    const { candidates, faults } = await finderOf({ registries: [url, good.url] }).find('draw')
    expect(candidates.map(({ name }) => name)).toEqual(['com.example/draw'])
    expect(faults).toEqual([{ source: url, reason: expect.stringContaining(reason) }])
  })

  it('reads so many pages of a registry that never ends, and no more', async () => {
    const { url, asked } = await site(says({ servers: [{ server: draw }], metadata: { nextCursor: 'again' } }))
    const { candidates } = await finderOf({ registries: [url] }).find('draw')
    expect([candidates.length, asked.length]).toEqual([1, 3])
    expect(asked[1]).toContain('cursor=again')
  })

  it('warns of what its publisher has withdrawn', async () => {
    const _meta = { 'io.modelcontextprotocol.registry/official': { status: 'deprecated' } }
    const { url } = await site(says({ servers: [{ server: draw, _meta }] }))
    const { candidates } = await finderOf({ registries: [url] }).find('draw')
    expect(candidates).toMatchObject([
      { confidence: 'low', warnings: [expect.stringContaining('marked this server as deprecated')] },
    ])
  })

  it('gives up when it is told to, and refuses what is no wish', async () => {
    const { url } = await site(() => {})
    const stop = new AbortController()
    const finding = finderOf({ registries: [url] }).find('draw', { signal: stop.signal })
    stop.abort(new Error('Never mind'))
    await expect(finding).rejects.toThrow('Never mind')
    await expect(finderOf({}).find('…')).rejects.toThrow('the capability in words')
    await expect(finderOf({}).find('draw', { limit: 0 })).rejects.toThrow('1 to 100')
    expect(() => finderOf({ manifests: [{}] })).toThrow('manifest_version')
    expect(() => createFinder({ registry: [] } as never)).toThrow('has no option "registry"')
  })
})
