/** Events of a server (`server.event`) that a host subscribes to become turns, as those that MCP Live pushes do. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { connect } from '../../src/client/connect.ts'
import { createHost, type Host, type HostOptions, type Noted } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { memoryPair } from '../../src/transports/memory.ts'

function tickets() {
  const server = createServer({ name: 'tickets', version: '1.0.0' })
  const created = server.event('ticket_created', {
    description: 'A ticket was created',
    payload: z.object({ id: z.string(), project: z.string() }),
  })
  const closed = server.event('ticket_closed', { description: 'A ticket was closed' })
  onTestFinished(() => server.close())
  return { server, created, closed }
}

function inMemory(server: Server) {
  return () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
}

async function hosted(server: Server, options: HostOptions, events: readonly string[] = ['ticket_created']) {
  const notes: Noted[] = []
  const host = await createHost({
    servers: { tickets: { target: inMemory(server), events } },
    onNote: noted => notes.push(noted),
    ...options,
  })
  onTestFinished(() => host.close())
  await host.open()
  await expect.poll(() => notes.find(({ kind }) => kind === 'events')?.outcome).toBeDefined()
  return { host, notes }
}

const states = async (host: Host) =>
  (await host.inbox.list({ server: 'tickets' })).map(({ eventId, featureSet, state }) => [eventId, featureSet, state])

test('an event that the config names becomes a turn, once, and one that it does not name is not heard', async () => {
  const { server, created, closed } = tickets()
  const model = scripted('I will look.', { again: true })
  const { host, notes } = await hosted(server, { model })
  expect(notes.find(({ kind }) => kind === 'events')).toMatchObject({ outcome: 'success', rule: 'config.tickets.events' })
  await closed.emit({})
  const id = await created.emit({ id: 'T-1', project: 'home' }, { id: 'one' })
  await created.emit({ id: 'T-1', project: 'home' }, { id: 'one' })
  await expect.poll(() => states(host)).toEqual([[`event/${id}`, 'events/ticket_created', 'done']])
  expect(JSON.stringify(model.requests[0]?.messages)).toContain('T-1')
  const { notes: story } = await host.explain(`event/${id}`)
  expect(story.map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual(expect.arrayContaining(['push success', 'turn success']))
})

test('what happens while the host is away is taken in when it comes back, and rules and budgets are about it', async () => {
  const { server, created } = tickets()
  const store = memoryStore()
  const model = scripted('Well.', { again: true })
  const first = await hosted(server, { model, store })
  await created.emit({ id: 'T-1', project: 'home' }, { id: 'one' })
  await expect.poll(async () => (await states(first.host)).map(([, , state]) => state)).toEqual(['done'])
  await first.host.close()
  await created.emit({ id: 'T-2', project: 'home' }, { id: 'two' })
  const policy = { rules: [{ name: 'quiet', do: 'deny', when: { featureSet: 'events/*' } }] } as const
  const second = await hosted(server, { model, store, policy })
  await expect
    .poll(() => second.notes.find(({ kind }) => kind === 'push'))
    .toMatchObject({ outcome: 'refused', why: { rule: 'quiet' } })
  expect(model.requests).toHaveLength(1)
})

describe('an event that waits', () => {
  /** An event of a server at an address waits, and the host is closed before it runs. */
  async function left() {
    const from = tickets()
    const { url } = await from.server.listen()
    const given = { model: scripted('Well.', { again: true }), store: memoryStore() }
    const host = await createHost({ ...given, servers: { tickets: { url, events: ['ticket_created'] } } })
    onTestFinished(() => host.close())
    await expect.poll(async () => (await host.audit({ kind: 'events' })).notes).toHaveLength(1)
    await from.created.emit({ id: 'T-1', project: 'home' }, { id: 'one' })
    await expect.poll(async () => (await states(host)).map(([, , state]) => state)).toEqual(['waiting'])
    const [[eventId = ''] = []] = await states(host)
    await host.close()
    return { ...from, given, url, eventId }
  }

  async function reopened(options: HostOptions) {
    const host = await createHost(options)
    onTestFinished(() => host.close())
    await host.open()
    return host
  }

  test('runs after a restart, also where no feature set is enabled, and while its server is down', async () => {
    for (const down of [false, true]) {
      const { server, given, url, eventId } = await left()
      if (down) await server.close()
      const servers = { tickets: { url, events: ['ticket_created'], live: { enable: ['other'] } } }
      const host = await reopened({ ...given, servers, startMs: 100, policy: { otherwise: { set: 'deny' } } })
      await expect.poll(async () => (await host.inbox.get('tickets', eventId))?.state).toBe('done')
      expect(given.model.requests).toHaveLength(1)
    }
  })

  test('is refused where its server is now another program, whose own events are taken in', async () => {
    const { given, eventId } = await left()
    const other = tickets()
    const { url } = await other.server.listen()
    const host = await reopened({ ...given, servers: { tickets: { url, events: ['ticket_created'] } } })
    const why = { code: 'SERVER_CHANGED' }
    await expect.poll(() => host.inbox.get('tickets', eventId)).toMatchObject({ state: 'refused', why })
    expect(given.model.requests).toEqual([])
    const { notes } = await host.audit({ kind: 'inbox' })
    expect(notes).toMatchObject([{ outcome: 'refused', eventId, featureSet: 'events/ticket_created', why }])
    await expect.poll(async () => (await host.audit({ kind: 'events' })).notes).toHaveLength(2)
    const id = await other.created.emit({ id: 'T-2', project: 'home' }, { id: 'two' })
    await expect.poll(async () => (await host.inbox.get('tickets', `event/${id}`))?.state).toBe('done')
    expect(JSON.stringify(given.model.requests[0]?.messages)).toContain('T-2')
  })

  test('is refused where the entry does not subscribe to it any more', async () => {
    const { given, url, eventId } = await left()
    const host = await reopened({ ...given, servers: { tickets: { url, events: ['ticket_closed'] } } })
    const why = { code: 'CONSENT_WITHDRAWN', rule: 'config.tickets.events' }
    await expect.poll(() => host.inbox.get('tickets', eventId)).toMatchObject({ state: 'refused', why })
    expect(given.model.requests).toEqual([])
  })

  test('to be taken in is not taken for one of another program that gets the name meanwhile', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'events-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const config = join(folder, 'mcp.json')
    const [one, two] = [tickets(), tickets()]
    const [first, second] = [await one.server.listen(), await two.server.listen()]
    const write = (url: string) =>
      writeFile(config, JSON.stringify({ mcpServers: { tickets: { url, events: ['ticket_created'] } } }))
    await write(first.url)
    const clock = fakeClock()
    const notes: Noted[] = []
    const rules = [{ name: 'few', do: 'deny', when: { kind: 'push', above: { count: 1, per: '1h' } } }] as const
    const model = scripted('Well.', { again: true })
    const host = await createHost({ model, clock, config, policy: { rules }, onNote: noted => notes.push(noted) })
    onTestFinished(() => host.close())
    await host.open()
    const subscribed = () => {
      clock.advance(1_000)
      return notes.filter(({ kind, outcome }) => kind === 'events' && outcome === 'success').length
    }
    await expect.poll(subscribed).toBe(1)
    for (const id of ['T-1', 'T-2']) await one.created.emit({ id, project: 'home' }, { id })
    await expect.poll(() => notes.map(({ why }) => why?.rule)).toContain('few')
    await write(second.url)
    await expect.poll(subscribed).toBe(2)
    clock.advance(2 * 3_600_000)
    const id = await two.created.emit({ id: 'T-3', project: 'home' }, { id: 'T-3' })
    await expect.poll(async () => (await host.inbox.get('tickets', `event/${id}`))?.state).toBe('done')
    expect(JSON.stringify(model.requests.map(({ messages }) => messages))).not.toContain('T-2')
  })
})

test('a name that the server does not have is said, with those that it has', async () => {
  const { server } = tickets()
  const { notes } = await hosted(server, { model: scripted([]) }, ['ticket_made'])
  expect(notes.find(({ kind }) => kind === 'events')).toMatchObject({
    outcome: 'failure',
    why: { code: 'EVENTS_UNHEARD', rule: 'config.tickets.events', message: expect.stringContaining('ticket_created') },
  })
})

test.each(['2025-06-18', '2025-11-25', '2026-07-28'] as const)('events are listed without a manifest: %s', async revision => {
  const { server } = tickets()
  const client = await connect(inMemory(server)(), { revisions: [revision] })
  onTestFinished(() => client.close())
  const types = await client.eventTypes()
  expect(types.map(({ name }) => name).sort()).toEqual(['ticket_closed', 'ticket_created'])
  expect(types.find(({ name }) => name === 'ticket_created')).toMatchObject({
    description: 'A ticket was created',
    filterFields: ['id', 'project'],
  })
  const plain = createServer({ name: 'plain', version: '1.0.0' })
  onTestFinished(() => plain.close())
  const other = await connect(inMemory(plain)(), { revisions: [revision] })
  onTestFinished(() => other.close())
  expect(await other.eventTypes()).toEqual([])
})
