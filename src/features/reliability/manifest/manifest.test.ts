import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { subscribe } from '../../../../test/spec/eventing.ts'
import { errorOf, type Frame, resultOf, speak, type Wire } from '../../../../test/spec/wire.ts'
import { digest } from '../../../core/digest.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server, type ServerOptions } from '../../../server/index.ts'
import { memoryStore } from '../../../stores/memory.ts'
import { fakeClock } from '../../../testing/index.ts'
import { eventsExtension } from '../events/messages.ts'
import { manifestExtension, manifestUri, type WireManifest } from './messages.ts'

const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const capabilities = { extensions: { [manifestExtension]: {} } }
const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
})

function make(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'tracker',
    version: '1.4.2',
    description: 'Tickets',
    websiteUrl: 'https://example.com/tracker',
    log: 'silent',
    pageSize: 2,
    manifest: { auth: ['oauth2_code'], scopes: { 'tickets:write': 'Create and change tickets' } },
    ...options,
  })
  servers.push(server)
  const id = z.object({ id: z.string() })
  server.tool('get_ticket', { description: 'Reads a ticket', input: id, annotations: { readOnlyHint: true } }, () => 'read')
  server.tool(
    'list_tickets',
    {
      description: 'Lists tickets',
      input: z.object({ cursor: z.string().optional() }),
      output: z.object({ ids: z.array(z.string()), next: z.string().optional() }),
      pagination: { cursor: 'cursor', next: 'next' },
      rate: { perSecond: 2 },
    },
    () => ({ ids: [] }),
  )
  server.tool(
    'create_ticket',
    {
      description: 'Creates a ticket',
      input: id,
      scopes: ['tickets:write'],
      idempotent: true,
      task: 'optional',
      undo: { tool: 'delete_ticket', description: 'Deletes it again' },
    },
    () => 'created',
  )
  server.tool(
    'delete_ticket',
    { description: 'Deletes it', input: id, scopes: ['tickets:write', 'admin'], confirm: { message: 'Delete {id}?' } },
    () => 'deleted',
  )
  server.tool('Odd.name', {}, () => 'odd')
  return server
}

async function got(wire: Wire, params: Frame = {}): Promise<Frame> {
  return resultOf(await wire.ask('manifest/get', params))
}

async function manifestOf(wire: Wire): Promise<Frame> {
  return (await got(wire))['manifest'] as Frame
}

async function listed(wire: Wire): Promise<readonly Frame[]> {
  const tools: Frame[] = []
  for (let cursor: unknown, pages = 0; pages < 10; pages++) {
    const page = resultOf(await wire.ask('tools/list', cursor === undefined ? {} : { cursor }))
    tools.push(...(page['tools'] as Frame[]))
    cursor = page['nextCursor']
    if (cursor === undefined) break
  }
  return tools
}

describe.each(revisions)('the manifest on %s', revision => {
  const open = (server: Server): Promise<Wire> => speak(server, revision, { capabilities })

  it('E1-1: is as the schema wants it; a name that the schema does not allow is the true one, and marked', async () => {
    const manifest = await manifestOf(await open(make()))
    const tools = manifest['tools'] as readonly Frame[]
    expect(tools.at(-1)).toMatchObject({ name: 'Odd.name', nonconforming_name: true })
    expectFits({ ...manifest, tools: tools.slice(0, -1) }, 'service-manifest.schema.json')
    expect(manifest['server']).toMatchObject({
      name: 'tracker',
      version: '1.4.2',
      mcp_spec_version: revision,
      description: 'Tickets',
      homepage: 'https://example.com/tracker',
    })
  })

  it('E1-1: tells of each tool what its author said', async () => {
    const manifest = await manifestOf(await open(make()))
    expect(manifest['tools']).toMatchObject([
      { name: 'get_ticket', risk_level: 'safe' },
      { name: 'list_tickets', supports_pagination: true, rate_limits: { requests_per_minute: 120 } },
      {
        name: 'create_ticket',
        idempotent: true,
        risk_level: 'reversible',
        required_scopes: ['tickets:write'],
        compensation: { tool: 'delete_ticket', description: 'Deletes it again' },
        task_support: 'optional',
      },
      {
        name: 'delete_ticket',
        requires_confirmation: true,
        confirmation_message: 'Delete {id}?',
        risk_level: 'destructive',
        required_scopes: ['tickets:write', 'admin'],
      },
      { name: 'Odd.name', description: '' },
    ])
    expect(manifest['auth']).toEqual({
      methods: ['oauth2_code'],
      scopes: [
        { name: 'tickets:write', description: 'Create and change tickets', grants: ['create_ticket', 'delete_ticket'] },
        { name: 'admin', description: 'admin', grants: ['delete_ticket'] },
      ],
    })
  })

  it('says nothing that is not so: no stream, no page, no batch, no limit that is not there', async () => {
    const all = await manifestOf(await open(make()))
    expect(JSON.stringify(all)).not.toContain('supports_streaming')
    expect(all['server']).toMatchObject({ supports_batch: true })
    expect(all['rate_limits']).toEqual({ requests_per_minute: 60_000 })
    const less = await manifestOf(await open(make({ revisions: [revision], limits: { rates: false } })))
    expect(less['server']).not.toHaveProperty('supports_batch')
    expect(less).not.toHaveProperty('rate_limits')
    const slow = await manifestOf(await open(make({ limits: { rates: { calls: { perSecond: 0.5, burst: 1 } } } })))
    expect(slow['rate_limits']).toEqual({ requests_per_minute: 30 })
  })

  it('E1-2: has the tools of all pages of the list, with the same schemas', async () => {
    const wire = await open(make())
    const tools = (await manifestOf(wire))['tools'] as readonly Frame[]
    const list = await listed(wire)
    expect(tools.map(({ name }) => name)).toEqual(list.map(({ name }) => name))
    expect(tools.map(tool => tool['input_schema'])).toEqual(list.map(tool => tool['inputSchema']))
    expect(tools.map(tool => tool['output_schema'])).toEqual(list.map(tool => tool['outputSchema']))
  })

  it('E1-2: shows a caller no tool that its list does not show', async () => {
    const server = make()
    server.use(async (call, next) => {
      const result = await next(call)
      return call.method === 'tools/list'
        ? { ...(result as Frame), tools: (result as { tools: Frame[] }).tools.filter(({ name }) => name !== 'delete_ticket') }
        : result
    })
    const wire = await open(server)
    const result = await got(wire)
    const names = ((result['manifest'] as Frame)['tools'] as Frame[]).map(({ name }) => name)
    expect(names).toEqual((await listed(wire)).map(({ name }) => name))
    expect(names).not.toContain('delete_ticket')
    expect(JSON.stringify(result)).not.toContain('"name":"admin"')
    expect(result['cacheScope']).toBe('private')
    expect(await settings(wire)).toEqual({ manifest_version: '0.1.0' })
  })

  it('E1-3: has a revision that is the digest of it, the same after a restart, another after a change and only then', async () => {
    const [one, other] = [make(), make()]
    const { revision: first, manifest } = await got(await open(one))
    expect(first).toBe(`sha256:${await digest(manifest)}`)
    expect((await got(await open(other)))['revision']).toBe(first)
    const extra = one.tool('extra', {}, () => '')
    expect((await got(await open(one)))['revision']).not.toBe(first)
    extra.remove()
    expect((await got(await open(one)))['revision']).toBe(first)
  })

  it('E1-3: the opening names the revision', async () => {
    const wire = await open(make())
    expect(await settings(wire)).toEqual({ manifest_version: '0.1.0', revision: (await got(wire))['revision'] })
  })

  it('E1-3: counters are in no revision', async () => {
    const clock = fakeClock()
    const server = make({ clock, manifest: { counters: true }, limits: { rates: { calls: { perSecond: 1, burst: 5 } } } })
    const wire = await open(server)
    const before = await got(wire)
    await wire.ask('tools/call', { name: 'get_ticket', arguments: { id: '1' } })
    const after = await got(wire)
    expect(before['manifest']).toMatchObject({ rate_limits: { requests_per_minute: 60, remaining: 5 } })
    const resets_at = new Date(clock.now() + 1000).toISOString()
    expect(after['manifest']).toMatchObject({ rate_limits: { requests_per_minute: 60, remaining: 4, resets_at } })
    expect(after['revision']).toBe(before['revision'])
    expect(await got(wire, { if_revision: after['revision'] })).toMatchObject({
      not_modified: true,
      rate_limits: { remaining: 4 },
    })
  })

  it('E1-4: is not sent again to whoever has that revision', async () => {
    const wire = await open(make())
    const { revision: current } = await got(wire)
    const again = await got(wire, { if_revision: current })
    expect(again).toMatchObject({ not_modified: true, revision: current })
    expect(again).not.toHaveProperty('manifest')
    expect(await got(wire, { if_revision: 'sha256:old' })).toHaveProperty('manifest')
  })

  it('E1-5: one burst of edits is one list_changed and one update of the resource', async () => {
    const server = make()
    const wire = await open(server)
    if (revision === '2025-11-25') await wire.ask('resources/subscribe', { uri: manifestUri })
    else {
      wire.begin('subscriptions/listen', {
        notifications: { toolsListChanged: true, resourceSubscriptions: [manifestUri] },
      })
      await wire.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
    }
    const tool = server.tool('burst', {}, () => '')
    for (let edits = 0; edits < 20; edits++) tool.update({ description: `Edit ${edits}` })
    await wire.next(({ method }) => method === 'notifications/resources/updated')
    const told = (await wire.quiet()).map(({ method }) => method).filter(method => String(method).startsWith('notifications/'))
    expect(told.filter(method => method === 'notifications/tools/list_changed')).toHaveLength(1)
    expect(told.filter(method => method === 'notifications/resources/updated')).toHaveLength(1)
  })

  it('E1-1, E15-2: lists the events: what they tell, what filters may name, who may hear them, and how', async () => {
    const server = make({ events: { push: revision === '2026-07-28' } })
    server.event('ticket_created', { description: 'A ticket is there', payload: z.object({ id: z.string() }), scopes: ['audit'] })
    server.event('odd', {})
    const wire = await speak(server, revision, {
      capabilities: { extensions: { [manifestExtension]: {}, [eventsExtension]: {} } },
    })
    const { events, auth, supported_extensions } = (await manifestOf(wire)) as unknown as WireManifest
    const delivery = revision === '2026-07-28' ? ['push', 'poll'] : ['poll']
    expect(events).toMatchObject([
      {
        name: 'ticket_created',
        description: 'A ticket is there',
        payload_schema: { type: 'object', properties: { id: { type: 'string' } } },
        filter_fields: ['id'],
        required_scopes: ['audit'],
        delivery,
      },
      { name: 'odd', description: '', delivery },
    ])
    expect(events?.[1]).not.toHaveProperty('filter_fields')
    expect([auth?.scopes?.find(({ name }) => name === 'audit'), supported_extensions?.includes('subscribe_notify')]).toEqual([
      { name: 'audit', description: 'audit', grants: [] },
      true,
    ])
    const wish = { events: ['odd'], filter: { anything: 1 } }
    const told = await subscribe(wire, revision, wish)
    expect([told.response.status, told.response.supported]).toEqual(['active', delivery.length === 1 ? false : undefined])
  })

  it('E1-3, E1-5: an event that comes or goes makes another revision, and one notice', async () => {
    const server = make({ pageSize: 500 })
    const wire = await open(server)
    const before = await got(wire)
    const watch = { uri: manifestUri }
    if (revision === '2026-07-28') {
      wire.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [manifestUri] } })
      await wire.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
    } else await wire.ask('resources/subscribe', watch)
    const events = [server.event('one', {}), server.event('two', {})]
    await wire.next(({ method }) => method === 'notifications/resources/updated')
    expect((await wire.quiet()).filter(({ method }) => method === 'notifications/resources/updated')).toHaveLength(1)
    const after = await got(wire)
    expect(after['revision']).not.toBe(before['revision'])
    expect(((after['manifest'] as Frame)['events'] as Frame[]).map(({ name }) => name)).toEqual(['one', 'two'])
    for (const event of events) event.remove()
    expect((await got(wire))['revision']).toBe(before['revision'])
  })

  it('E1-7: names the extensions that are on, and no other', async () => {
    const tokens = async (server: Server) => (await manifestOf(await open(server)))['supported_extensions']
    const bare = createServer({ name: 'bare', version: '1.0.0', manifest: true, log: 'silent' })
    servers.push(bare)
    expect(await tokens(bare)).toEqual(['structured_errors'])
    const full = make({ store: memoryStore(), recommendations: [{ capability: 'wiki', server: 'com.example/wiki' }] })
    expect(await tokens(full)).toEqual([
      'idempotency',
      'transactions',
      'human_in_the_loop',
      'server_recommendations',
      'structured_errors',
    ])
    full.tool('remembers', { state: 'branch' }, () => '')
    expect(await tokens(full)).toContain('session_state')
  })

  it('E1-7: the words for extensions are those of the ids that the opening declares, one by one', async () => {
    const words: Readonly<Record<string, readonly string[]>> = {
      streaming: ['streaming', 'progress_notifications'],
      idempotency: ['idempotency'],
      transactions: ['transactions'],
      state: ['session_state'],
      intent: ['intent_hints'],
      provenance: ['provenance'],
      confirmation: ['human_in_the_loop'],
      'data-references': ['data_references'],
      events: ['subscribe_notify'],
      recommendations: ['server_recommendations'],
      problem: ['structured_errors'],
      media: ['multimodal_signatures'],
    }
    const bare = (options: Partial<ServerOptions> = {}): Server => {
      const server = createServer({ name: 'bare', version: '1.0.0', manifest: true, log: 'silent', ...options })
      servers.push(server)
      return server
    }
    const adding = (options: object, handler: () => unknown = () => ''): Server => {
      const server = bare()
      server.tool('one', options, handler as () => string)
      return server
    }
    const eventful = bare()
    eventful.event('told', {})
    const streaming = async function* () {
      yield 'a'
    }
    for (const server of [
      bare(),
      bare({ store: memoryStore() }),
      bare({ intent: {} }),
      bare({ references: true }),
      bare({ recommendations: [{ capability: 'wiki', server: 'com.example/wiki' }] }),
      adding({ state: 'branch' }),
      adding({ provenance: true }),
      adding({ media: { input: ['image/png'] } }),
      adding({ confirm: true }),
      adding({}, streaming),
      eventful,
      make({ store: memoryStore() }),
    ]) {
      const wire = await open(server)
      const hello = resultOf(wire.hello ?? (await wire.ask('server/discover')))
      const ids = Object.keys((hello['capabilities'] as { extensions: Frame }).extensions)
      const expected = ids.flatMap(id => words[id.replace('dev.vivarium/', '')] ?? [])
      expect(((await manifestOf(wire))['supported_extensions'] as string[]).toSorted()).toEqual(expected.toSorted())
    }
  })

  it('E1-8: is for everybody, unless it has counters of one caller', async () => {
    const cache = { ttl: '1m', scope: 'public' } as const
    expect(await got(await open(make({ cache })))).toMatchObject({ ttlMs: 60_000, cacheScope: 'public' })
    expect(await got(await open(make({ cache, manifest: { counters: true } })))).toMatchObject({ cacheScope: 'private' })
    expect(await got(await open(make({ cache, manifest: { cache: { ttl: '5m' } } })))).toMatchObject({ ttlMs: 300_000 })
  })

  it('is the resource manifest:///service, too', async () => {
    const wire = await open(make())
    const [contents] = resultOf(await wire.ask('resources/read', { uri: manifestUri }))['contents'] as readonly Frame[]
    const { revision: current, manifest } = await got(wire)
    expect(JSON.parse(String(contents?.['text']))).toEqual(manifest)
    expect(contents).toMatchObject({ mimeType: 'application/json', _meta: { [manifestExtension]: { revision: current } } })
  })

  it('E1-2: has the tools of the facade too, from the first word on', async () => {
    const wire = await open(make({ facade: true }))
    const { revision: named } = (await settings(wire)) as { revision: string }
    const { revision: current, manifest } = await got(wire)
    const names = ((manifest as Frame)['tools'] as Frame[]).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['begin_transaction', 'get_manifest']))
    expect(names).toEqual((await listed(wire)).map(({ name }) => name))
    expect(current).toBe(named)
  })

  it('is a tool for clients that know no extensions, where the facade is on', async () => {
    const wire = await speak(make({ facade: ['manifest'] }), revision)
    const called = resultOf(await wire.ask('tools/call', { name: 'get_manifest', arguments: {} }))
    expect(called['structuredContent']).toMatchObject({ manifest: { server: { name: 'tracker' } } })
    const { revision: if_revision } = called['structuredContent'] as { revision: string }
    const again = resultOf(await wire.ask('tools/call', { name: 'get_manifest', arguments: { if_revision } }))
    expect(again['structuredContent']).toMatchObject({ not_modified: true, revision: if_revision })
  })

  it('is given only to whoever declared it', async () => {
    const wire = await speak(make(), revision)
    expect(errorOf(await wire.ask('manifest/get'))).toMatchObject({
      data: { requiredCapabilities: { extensions: { [manifestExtension]: {} } } },
    })
  })

  it('is not there unless it is wanted', async () => {
    const server = createServer({ name: 'plain', version: '1.0.0', log: 'silent' })
    servers.push(server)
    const wire = await open(server)
    expect(errorOf(await wire.ask('manifest/get'))).toMatchObject({ code: -32601 })
    expect(await settings(wire)).toBeUndefined()
  })

  async function settings(wire: Wire): Promise<unknown> {
    const hello = resultOf(wire.hello ?? (await wire.ask('server/discover')))
    const { extensions } = hello['capabilities'] as { extensions?: Frame }
    return extensions?.[manifestExtension]
  }
})

describe('older wires', () => {
  it.each(['2024-11-05', '2025-03-26', '2025-06-18'] as const)('%s: E1-2 holds, though lists say less', async revision => {
    const wire = await speak(make(), revision, { capabilities: { experimental: { [manifestExtension]: {} } } })
    const tools = (await manifestOf(wire))['tools'] as readonly Frame[]
    const list = await listed(wire)
    expect(tools.map(tool => tool['input_schema'])).toEqual(list.map(tool => tool['inputSchema']))
    expect(tools[3]).toMatchObject({ requires_confirmation: true, required_scopes: ['tickets:write', 'admin'] })
  })

  it('s3 reads it as a resource', async () => {
    const wire = await speak(make({ revisions: ['s3'] }), 's3')
    expect(JSON.stringify(await wire.ask('resources/read', { uri: manifestUri }))).toContain('delete_ticket')
  })
})

describe('what an author says', () => {
  it('of pages is believed only where the schemas have them', () => {
    const server = createServer({ name: 'x', version: '1.0.0', log: 'silent' })
    servers.push(server)
    const input = z.object({ cursor: z.string().optional() })
    const output = z.object({ next: z.string().optional() })
    const add = (options: object) => () => server.tool('x', options, () => ({}))
    expect(add({ input, pagination: { cursor: 'cursor', next: 'next' } })).toThrow('the output schema has no property "next"')
    expect(add({ output, pagination: { cursor: 'cursor', next: 'next' } })).toThrow('the input schema has no property "cursor"')
    expect(add({ input, output, pagination: { cursor: 'cursor', after: 'next' } })).toThrow('has no option "after"')
  })

  it('of the manifest is checked at once', () => {
    const bad = (manifest: object) => () => createServer({ name: 'x', version: '1.0.0', manifest })
    expect(bad({ homepages: 'https://example.com' })).toThrow('manifest has no option "homepages"')
    expect(() => createServer({ name: 'x', version: '1.0.0', manifest: 'yes' as never })).toThrow('manifest')
  })
})
