import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { errorOf, type Frame, resultOf, speak, type Wire } from '../../../../test/spec/wire.ts'
import { createServer, type Recommendation, type Server, type ServerOptions } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'
import { catalogEntries, listedServerOf, registryPage } from './client.ts'
import { recommendationsExtension, type WireRecommendation } from './messages.ts'
import { fit, fitting } from './ranking.ts'

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
})

function make(options: Partial<ServerOptions>): Server {
  const server = createServer({ name: 'tracker', version: '1.0.0', log: 'silent', ...options })
  servers.push(server)
  return server
}

const list: readonly Recommendation[] = [
  { capability: 'design_review', server: 'com.example/review', confidence: 'high' },
  { capability: 'design_mockup', server: 'com.example/sketch', confidence: 'medium', authFlow: 'oauth2_code' },
  {
    capability: 'design_mockup',
    server: 'com.example/draw',
    confidence: 'high',
    registryUrl: 'https://registry.example.com/draw',
  },
  { capability: 'mockup_design', server: 'com.example/draw', confidence: 'low' },
  { capability: 'wiki', server: 'com.example/wiki' },
]

describe.each(['2025-11-25', '2026-07-28'] as const)('servers/recommend on %s', revision => {
  const open = (server: Server): Promise<Wire> =>
    speak(server, revision, { capabilities: { extensions: { [recommendationsExtension]: {} } } })
  const ask = async (wire: Wire, params: Frame): Promise<Frame> => resultOf(await wire.ask('servers/recommend', params))

  it('E13-1: gives the surest first, each server once, as the schema has them', async () => {
    const wire = await open(make({ recommendations: list }))
    const answer = await ask(wire, { capability_needed: 'design mockup' })
    const found = answer['recommendations'] as readonly WireRecommendation[]
    expect(found.map(({ server_name, match_confidence }) => [server_name, match_confidence])).toEqual([
      ['com.example/draw', 'high'],
      ['com.example/review', 'medium'],
      ['com.example/sketch', 'medium'],
    ])
    expect(answer['capability_needed']).toBe('design mockup')
    for (const one of found) expectFits(one, 'service-manifest.schema.json', 'ServerRecommendation')
    expect((await ask(wire, { capability_needed: 'design mockup', limit: 1 }))['recommendations']).toHaveLength(1)
  })

  it('E13-1: what an author finds himself is sorted and made single, too', async () => {
    const wishes: string[] = []
    const wire = await open(
      make({
        recommendations: async wish => {
          wishes.push(wish)
          return [list[3], list[2], list[1]].filter(one => one !== undefined)
        },
      }),
    )
    const { recommendations } = await ask(wire, { capability_needed: 'a picture of a page' })
    expect((recommendations as WireRecommendation[]).map(({ server_name }) => server_name)).toEqual([
      'com.example/draw',
      'com.example/sketch',
    ])
    expect(wishes).toEqual(['a picture of a page'])
  })

  it('E13-1: is a tool for clients that know no extensions, where the facade is on', async () => {
    const server = make({ recommendations: list, facade: true })
    server.tool('close_ticket', {}, () => 'closed')
    const wire = await speak(server, revision)
    const args = { capability_needed: 'design mockup', limit: 1 }
    const called = resultOf(await wire.ask('tools/call', { name: 'recommend_servers', arguments: args }))
    expect(called['structuredContent']).toMatchObject({ recommendations: [{ server_name: 'com.example/draw' }] })
  })

  it('E13-5: that there is none is an answer', async () => {
    const wire = await open(make({ recommendations: list }))
    expect(await ask(wire, { capability_needed: 'telepathy' })).toMatchObject({ recommendations: [] })
    expect(await ask(await open(make({ recommendations: [] })), { capability_needed: 'wiki' })).toMatchObject({
      recommendations: [],
    })
  })

  it('refuses a wish without words, or beyond measure', async () => {
    const wire = await open(make({ recommendations: list }))
    for (const params of [
      {},
      { capability_needed: ' ' },
      { capability_needed: 'x'.repeat(1_001) },
      { capability_needed: 'x', limit: 0 },
    ])
      expect(errorOf(await wire.ask('servers/recommend', params)).code).toBe(-32602)
  })

  it('is for those who declare it; the manifest names what is listed', async () => {
    const server = make({ recommendations: list, manifest: true })
    const wire = await speak(server, revision)
    expect(errorOf(await wire.ask('servers/recommend', { capability_needed: 'wiki' })).data).toMatchObject({
      requiredCapabilities: { extensions: { [recommendationsExtension]: {} } },
    })
    await using mcp = await connectInMemory(server, { revision })
    expect((await mcp.manifest()).recommendations?.at(-1)).toEqual({
      capability: 'wiki',
      serverName: 'com.example/wiki',
      matchConfidence: 'medium',
    })
  })

  it('mcp.recommend asks it, or looks into the manifest where the server answers no such question', async () => {
    await using mcp = await connectInMemory(make({ recommendations: list }), { revision })
    expect(await mcp.recommend('design mockup', { limit: 1 })).toEqual([
      {
        capability: 'design_mockup',
        server: 'com.example/draw',
        registryUrl: 'https://registry.example.com/draw',
        authFlow: undefined,
        confidence: 'high',
      },
    ])
    await using plain = await connectInMemory(make({}), { revision })
    expect(await plain.recommend('design mockup')).toEqual([])
  })
})

it('what an author recommends is checked at once', () => {
  expect(() => make({ recommendations: 'many' as never })).toThrow('must be a list, or a function')
  expect(() => make({ recommendations: [{ capability: 'x' } as Recommendation] })).toThrow('needs a capability and a server')
  expect(() => make({ recommendations: [{ capability: 'x', server: 'y', confidence: 0.9 as never }] })).toThrow('confidence')
})

describe('ranking', () => {
  it('fits by whole words of any script, whatever parts them', () => {
    expect([fit('design mockup', 'design_mockup'), fit('Design-Mockup', 'a MOCKUP of the design')]).toEqual(['high', 'high'])
    expect([fit('design mockup', 'design'), fit('one two three', 'three')]).toEqual(['medium', 'low'])
    expect([fit('Übersetzung', 'eine übersetzung'), fit('git', 'github')]).toEqual(['high', undefined])
  })

  it('E13-1: is sorted and single, whatever comes', () => {
    const confidence = fc.constantFrom('high', 'medium', 'low', undefined)
    const entry = fc.record({
      capability: fc.constantFrom('a', 'a b', 'b c'),
      server_name: fc.constantFrom('1', '2', '3'),
      confidence,
    })
    fc.assert(
      fc.property(fc.array(entry), entries => {
        const wire = entries.map(({ confidence: match_confidence, ...rest }) => ({ ...rest, match_confidence }))
        const found = fitting('a b', wire)
        const order = found.map(one => ['high', 'medium', 'low'].indexOf(one.match_confidence ?? ''))
        expect(order).toEqual([...order].sort())
        expect(new Set(found.map(one => one.server_name)).size).toBe(found.length)
      }),
    )
  })
})

describe('what strangers say of servers', () => {
  it('is read entry by entry: one that is none harms no other', () => {
    const official = (said: object) => ({ 'io.modelcontextprotocol.registry/official': said })
    const page = registryPage({
      servers: [
        { server: { name: 'com.example/a', version: '1.0.0', remotes: [{ type: 'sse', url: 'https://a.example' }, 7, {}] } },
        { server: { name: 7 } },
        { server: { name: 'com.example/gone' }, _meta: official({ status: 'deleted' }) },
        { server: { name: 'com.example/old' }, _meta: official({ isLatest: false }) },
        { server: { name: 'com.example/tired' }, _meta: official({ status: 'deprecated' }) },
      ],
      metadata: { nextCursor: 'x' },
    })
    expect(page.servers.map(({ name, deprecated }) => [name, deprecated])).toEqual([
      ['com.example/a', false],
      ['com.example/tired', true],
    ])
    expect(page.servers[0]?.remotes).toEqual([{ type: 'sse', url: 'https://a.example' }])
    expect([page.skipped, page.next]).toEqual([1, 'x'])
  })

  it('is refused where there is too much of it, and shortened where it is too long', () => {
    expect(() => registryPage({ servers: Array(201).fill({}) })).toThrow('The limit is 200')
    expect(() => registryPage({ server: [] })).toThrow("The registry's response is not valid: servers must be an array")
    expect(() => listedServerOf({ name: 'x'.repeat(201) })).toThrow('1 to 200 characters')
    const long = listedServerOf({
      name: 'x',
      description: 'y\u0000'.repeat(5_000),
      remotes: Array(99).fill({ type: 'sse', url: 'https://x.example' }),
    })
    expect([long.description?.length, long.description?.includes('\u0000'), long.remotes.length]).toEqual([1_000, false, 16])
  })

  it('in a catalog counts only where it is about server cards', () => {
    const entries = [
      {
        identifier: 'urn:mcp:server:com.example/a',
        displayName: 'A',
        type: 'application/mcp-server-card+json',
        url: 'https://a.example/card',
      },
      { identifier: 'b', mediaType: 'application/mcp-server+json', data: { name: 'b' } },
      { identifier: 'c', type: 'application/a2a-agent-card+json', url: 'https://c.example' },
      { identifier: 'd', type: 'application/mcp-server-card+json' },
    ]
    expect(catalogEntries({ entries }).map(({ about }) => about)).toEqual(['urn:mcp:server:com.example/a A', 'b'])
  })

  it('never fails otherwise than by a TypeError, whatever comes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const entry = value as object
        for (const read of [
          () => registryPage(value),
          () => registryPage({ servers: [{ server: value, _meta: value }], metadata: value }),
          () => catalogEntries(value),
          () => catalogEntries({ entries: [entry] }),
          () => listedServerOf(value),
        ]) {
          try {
            read()
          } catch (error) {
            expect(error).toBeInstanceOf(TypeError)
          }
        }
      }),
    )
  })
})
