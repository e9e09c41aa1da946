import { describe, expect, it } from 'vitest'
import { Client } from '../../src/client/client.ts'
import { pollEvents } from '../../src/features/reliability/events/messages.ts'
import type { GatewayOptions } from '../../src/gateway/index.ts'
import type { GatewayRule } from '../../src/policy/rules/call-policy.ts'
import type { RevisionId } from '../../src/server/index.ts'
import { ScriptedServer } from '../client/scripted-server.ts'
import { openGateway } from '../gateway/open.ts'
import { oracle } from '../oracle/index.ts'
import { clientOf, gatewayOf, payroll, shop } from './tenants.ts'

const shopOnly: GatewayOptions = { clients: { local: { tools: ['shop/*'] } } }
const menuOnly: GatewayOptions = { clients: { local: { tools: ['payroll/*'], resources: ['payroll/payroll://menu'] } } }
const noAda: GatewayRule = { name: 'no-ada', resource: 'payroll://ada', do: 'deny' }
const wires: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

/** The payloads that a client is told of these events, as they come. */
async function hearing(client: Client, ...names: readonly string[]): Promise<string[]> {
  const heard: string[] = []
  const events = client.events(names)
  await events.ready
  void (async () => {
    for await (const { payload } of events) heard.push(String(payload['uri'] ?? payload['list']))
  })().catch(() => {})
  return heard
}

describe.each(wires)('events of a server, at %s,', revision => {
  it('are not there for a client that is not given what they are about', async () => {
    const gateway = await gatewayOf({ payroll: payroll(), shop: shop() }, { events: true, ...shopOnly })
    const client = await clientOf(gateway, { revision })
    const wanted = client.events(['payroll/resource_updated'])
    await expect(wanted.ready).rejects.toThrow('There is no event "payroll/resource_updated"')
    await expect(client.events(['payroll/list_changed']).ready).rejects.toThrow('There is no event')
    await expect(hearing(client, 'shop/resource_updated')).resolves.toEqual([])
  })

  it.each<[string, GatewayOptions]>([
    ['a rule refuses', { rules: [noAda] }],
    ['its list does not name', menuOnly],
    ['a rule refuses though all is listed', { rules: [noAda], listed: 'all' }],
    ['a rule refuses only until some time', { rules: [{ ...noAda, until: '2999-01-01T00:00:00Z' }] }],
  ])('tell a client of what it may read, and not of what %s', async (_, options) => {
    const people = payroll()
    const events = { payroll: ['payroll://ada', 'payroll://menu'] }
    const gateway = await gatewayOf({ payroll: people }, { events, ...options })
    const heard = await hearing(await clientOf(gateway, { revision }), 'payroll/resource_updated')
    people.server.resourceUpdated('payroll://ada')
    people.server.resourceUpdated('payroll://menu')
    await expect.poll(() => heard).toContain('payroll://menu')
    expect(heard).toEqual(['payroll://menu'])
  })

  it('are filtered by the rules that hold when they happen, not by those of the subscription', async () => {
    const people = payroll()
    const options = { events: { payroll: ['payroll://ada', 'payroll://menu'] }, log: 'silent' as const }
    const gateway = await gatewayOf({ payroll: people }, options)
    const heard = await hearing(await clientOf(gateway, { revision }), 'payroll/resource_updated')
    people.server.resourceUpdated('payroll://ada')
    await expect.poll(() => heard).toEqual(['payroll://ada'])
    await gateway.reload({ ...options, servers: { payroll: people.target }, rules: [noAda] })
    people.server.resourceUpdated('payroll://ada')
    people.server.resourceUpdated('payroll://menu')
    await expect.poll(() => heard).toContain('payroll://menu')
    expect(heard).toEqual(['payroll://ada', 'payroll://menu'])
  })
})

it('polling for events brings no more than pushing them', async () => {
  const people = payroll()
  const events = { payroll: ['payroll://ada', 'payroll://menu'] }
  const gateway = await gatewayOf({ payroll: people }, { events, rules: [noAda] })
  const told = await hearing(await clientOf(gateway), 'payroll/resource_updated')
  const { session } = Client.caller(await clientOf(gateway))
  const poll = (cursor?: string) =>
    session.request(pollEvents, { events: ['payroll/resource_updated'], ...(cursor && { cursor }) })
  const { cursor } = await poll()
  people.server.resourceUpdated('payroll://ada')
  people.server.resourceUpdated('payroll://menu')
  await expect.poll(() => told).toEqual(['payroll://menu'])
  expect((await poll(cursor)).events.map(({ payload }) => payload?.['uri'])).toEqual(['payroll://menu'])
})

describe.each(wires)('watching, at %s,', revision => {
  const watch = (client: Client, uri: string, seen: string[]): void =>
    void (async () => {
      for await (const each of client.resourceUpdates(uri)) seen.push(each)
    })().catch(() => {})

  it.each<[string, GatewayOptions]>([
    ['a rule refuses though all is listed', { rules: [noAda], listed: 'all' }],
    ['a rule refuses only until some time', { rules: [{ ...noAda, until: '2999-01-01T00:00:00Z' }] }],
    ['its client is not given', menuOnly],
  ])('a resource that %s tells nothing', async (_, options) => {
    const people = payroll()
    const gateway = await gatewayOf({ payroll: people }, options)
    const client = await clientOf(gateway, { revision })
    const seen: string[] = []
    watch(client, 'payroll://ada', seen)
    watch(client, 'payroll://menu', seen)
    await expect
      .poll(() => {
        people.server.resourceUpdated('payroll://ada')
        people.server.resourceUpdated('payroll://menu')
        return seen.includes('payroll://menu')
      })
      .toBe(true)
    expect(seen).not.toContain('payroll://ada')
  })

  it('tells nothing more of a resource that a rule refuses from some time on', async () => {
    const people = payroll()
    const gateway = await gatewayOf({ payroll: people })
    const client = await clientOf(gateway, { revision })
    const seen: string[] = []
    watch(client, 'payroll://ada', seen)
    watch(client, 'payroll://menu', seen)
    await expect
      .poll(() => {
        people.server.resourceUpdated('payroll://ada')
        people.server.resourceUpdated('payroll://menu')
        return new Set(seen).size
      })
      .toBe(2)
    await gateway.reload({ log: 'silent', servers: { payroll: people.target }, rules: [noAda] })
    const before = seen.length
    // Of what was on its way, at most one of each may still come.
    people.server.resourceUpdated('payroll://ada')
    people.server.resourceUpdated('payroll://menu')
    await expect.poll(() => seen.slice(before)).toContain('payroll://menu')
    const from = seen.length
    people.server.resourceUpdated('payroll://ada')
    people.server.resourceUpdated('payroll://menu')
    await expect.poll(() => seen.slice(from)).toContain('payroll://menu')
    expect(seen.slice(from)).not.toContain('payroll://ada')
  })
})

it.each(wires)('a list that changes for others alone is not told as changed, at %s', async revision => {
  const [people, store] = [payroll(), shop()]
  const gateway = await gatewayOf({ payroll: people, shop: store }, { ...shopOnly, pins: 'off' })
  const frames: string[] = []
  const client = await clientOf(gateway, { revision, onFrame: ({ text }) => void frames.push(text) })
  const changed: string[] = []
  const follow = client.changes('tools')
  void (async () => {
    for await (const each of follow) changed.push(String(each))
  })().catch(() => {})
  await client.callTool('buy')
  people.server.tool('bonus', {}, () => 'paid')
  await expect.poll(() => gateway.names().some(({ name }) => name === 'bonus')).toBe(true)
  const told = (): number => frames.filter(frame => frame.includes('notifications/tools/list_changed')).length
  await client.callTool('buy')
  expect(told()).toBe(0)
  await expect
    .poll(() => {
      store.server.tool(`sell${Math.random()}`, {}, () => 'sold')
      return told()
    })
    .toBeGreaterThan(0)
})

describe('what a tool of an allowed server answers', () => {
  it('holds no resource, and no link to one, that its caller may not read', async () => {
    const client = await clientOf(await gatewayOf({ payroll: payroll() }, { rules: [noAda] }))
    const { content } = await client.callTool('salaries')
    expect(JSON.stringify(content)).not.toMatch(/Ada earns|payroll:\/\/ada/)
    expect(content).toMatchObject([{ type: 'text' }, { type: 'text' }, { uri: 'payroll://menu' }, { text: 'done' }])
  })

  it('is the same for who may read all of it', async () => {
    const rules: GatewayRule[] = [{ ...noAda, client: 'somebody-else' }]
    const client = await clientOf(await gatewayOf({ payroll: payroll() }, { rules }))
    expect(JSON.stringify((await client.callTool('salaries')).content)).toContain('Ada earns 1')
  })
})

it.each(wires)('what only a link names is read by who was told, and not on other connections, at %s', async revision => {
  const { gateway } = await openGateway({
    payroll: () =>
      new ScriptedServer({
        initialize: () => ({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {}, resources: {} },
          serverInfo: { name: 'payroll', version: '1.0.0' },
        }),
        'resources/templates/list': () => ({ resourceTemplates: [] }),
        'tools/list': () => ({ tools: [{ name: 'slip', inputSchema: { type: 'object' } }] }),
        'tools/call': () => ({ content: [{ type: 'resource_link', uri: 'slip://of-ada', name: 'slip' }] }),
        'resources/list': () => ({ resources: [] }),
        'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'Ada earns 1' }] }),
      }).connection,
  })
  const [told, other] = [await clientOf(gateway, { revision }), await clientOf(gateway, { revision })]
  await told.callTool('slip')
  expect((await told.readResource('slip://of-ada')).contents).toMatchObject([{ text: 'Ada earns 1' }])
  await expect(other.readResource('slip://of-ada')).rejects.toThrow('There is no resource "slip://of-ada"')
})

it('a resource that holds several is read without those that are refused', async () => {
  const people = payroll()
  people.server.resource('payroll://all', { name: 'all' }, () => [
    { uri: 'payroll://ada', text: 'Ada earns 1' },
    { uri: 'payroll://menu', text: 'Soup' },
  ])
  const client = await clientOf(await gatewayOf({ payroll: people }, { rules: [noAda] }))
  expect((await client.readResource('payroll://all')).contents.map(({ uri }) => uri)).toEqual(['payroll://menu'])
})

it('values that complete an address name nothing that may not be read', async () => {
  const client = await clientOf(await gatewayOf({ payroll: payroll() }, { rules: [noAda] }))
  const { values } = await client.complete({ template: 'payroll://{id}' }, { name: 'id', value: '' })
  expect(values).toEqual(['bob', 'menu'])
})

it('that a server is down is not told to who is not given what it has', async () => {
  const people = payroll()
  const gateway = await gatewayOf({ payroll: people, shop: shop() }, shopOnly)
  const client = await clientOf(gateway)
  await people.server.close()
  await expect.poll(() => gateway.upstreams()[0]?.status).not.toBe('up')
  await gateway.ready()
  await expect(client.callTool('salaries')).rejects.toThrow('There is no tool "salaries"')
  await expect(client.getPrompt('review')).rejects.toThrow('There is no prompt "review"')
  await expect(client.readResource('payroll://ada')).rejects.toThrow('There is no resource "payroll://ada"')
  await expect(client.readResource('payroll://bob')).rejects.toThrow('There is no resource "payroll://bob"')
})

it('that a server is down is not told either to who asks for what it has as if it were something else', async () => {
  const people = payroll()
  const gateway = await gatewayOf({ payroll: people, shop: shop() }, shopOnly)
  const client = await clientOf(gateway)
  people.leave()
  await expect.poll(() => gateway.upstreams()[0]?.status).not.toBe('up')
  await gateway.ready()
  await expect(client.readResource('salaries')).rejects.toThrow('There is no resource "salaries"')
  await expect(client.getPrompt('salaries')).rejects.toThrow('There is no prompt "salaries"')
  await expect(client.readResource('review')).rejects.toThrow('There is no resource "review"')
  await expect(client.callTool('review')).rejects.toThrow('There is no tool "review"')
  await expect(client.callTool('payroll://ada')).rejects.toThrow('There is no tool "payroll://ada"')
  // No address of a resource looks like that: the schemas say so of our own requests.
  oracle?.take()
})

it('what a server logs beside any call is not told to who sees only some of it', async () => {
  const people = payroll({ revisions: ['2025-11-25'] })
  const { server } = people
  server.tool('slow', {}, async (_, ctx) => {
    // On a pipe that calls share nothing says to which of them this belongs.
    ctx.log('info', 'Ada was paid')
    return 'done'
  })
  const logged = async (options: GatewayOptions): Promise<string> => {
    const frames: string[] = []
    const gateway = await gatewayOf({ payroll: people }, options)
    const client = await clientOf(gateway, { revision: '2025-11-25', onFrame: ({ text }) => void frames.push(text) })
    await client.setLogLevel('debug')
    await client.callTool('slow')
    return frames.join('\n')
  }
  expect(await logged({})).toContain('Ada was paid')
  expect(await logged({ clients: { local: { tools: ['payroll/slow'] } } })).not.toContain('Ada was paid')
})
