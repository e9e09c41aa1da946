import { describe, expect, it } from 'vitest'
import { everyRevision, type Frame, rawWire } from '../../../../test/raw-wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/server.ts'
import { type FakeClock, fakeClock } from '../../../testing/clock.ts'

const sessionWires: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const key = 'io.modelcontextprotocol/subscriptionId'

interface Desk {
  readonly server: Server
  readonly clock: FakeClock
}

/** What changes is told when the clock is moved on. */
function desk(limits: NonNullable<Parameters<typeof createServer>[0]['limits']> = {}): Desk {
  const clock = fakeClock()
  const server = createServer({ name: 'desk', version: '1', revisions: everyRevision, clock, limits })
  server.tool('first', {}, () => 'x')
  server.prompt('first', {}, () => 'x')
  server.resource('note://first', { name: 'first' }, () => 'x')
  return { server, clock }
}

const idOf = (frame: Frame): unknown => ((frame['params'] as Frame)['_meta'] as Frame)[key]

describe('a list that changes', () => {
  it.each(sessionWires)('is told unasked on %s, once for all that changed in one turn (trap 14)', async revision => {
    const { server, clock } = desk()
    const wire = await rawWire(server.acceptor, revision)
    const second = server.tool('second', {}, () => 'x')
    server.tool('third', {}, () => 'x')
    second.remove()
    clock.advance(0)
    expect(await wire.all('notifications/tools/list_changed')).toEqual([
      { jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: {} },
    ])
  })

  it('is told for prompts, resources and templates alike', async () => {
    const { server, clock } = desk()
    const wire = await rawWire(server.acceptor, '2025-11-25')
    server.prompt('second', {}, () => 'x')
    server.resource('note://{id}', { name: 'note' }, () => 'x')
    clock.advance(0)
    expect(await wire.all('notifications/prompts/list_changed')).toHaveLength(1)
    expect(await wire.all('notifications/resources/list_changed')).toHaveLength(1)
    expect(await wire.all('notifications/tools/list_changed')).toHaveLength(0)
  })

  it.each<RevisionId>(['2026-07-28', 'draft-2026-v1'])(
    'is not told to a client of %s that does not listen (trap 14)',
    async revision => {
      const { server, clock } = desk()
      const wire = await rawWire(server.acceptor, revision)
      server.tool('second', {}, () => 'x')
      clock.advance(0)
      expect(await wire.all('notifications/tools/list_changed')).toEqual([])
    },
  )

  it('is not told to a client that has not said that it is ready', async () => {
    const { server, clock } = desk()
    const wire = await rawWire(server.acceptor, '2025-11-25', false)
    server.tool('second', {}, () => 'x')
    clock.advance(0)
    expect(await wire.all('notifications/tools/list_changed')).toEqual([])
  })
})

describe('a resource that changes', () => {
  it.each(sessionWires)('is told to those who subscribed to it on %s, and to nobody else', async revision => {
    const { server, clock } = desk()
    const [watcher, other] = [await rawWire(server.acceptor, revision), await rawWire(server.acceptor, revision)]
    expect(await watcher.ask('resources/subscribe', { uri: 'note://first' })).toMatchObject({ result: {} })
    server.resourceUpdated('note://first')
    server.resourceUpdated('note://first')
    server.resourceUpdated('note://second')
    clock.advance(0)
    expect((await watcher.all('notifications/resources/updated')).map(({ params }) => params)).toEqual([{ uri: 'note://first' }])
    expect(await other.all('notifications/resources/updated')).toEqual([])
  })

  it('is no longer told after unsubscribe', async () => {
    const { server, clock } = desk()
    const wire = await rawWire(server.acceptor, '2025-11-25')
    await wire.ask('resources/subscribe', { uri: 'note://first' })
    expect(await wire.ask('resources/unsubscribe', { uri: 'note://first' })).toMatchObject({ result: {} })
    server.resourceUpdated('note://first')
    clock.advance(0)
    expect(await wire.all('notifications/resources/updated')).toEqual([])
  })

  it('can be watched only so often by one client, and the refusal names the limit', async () => {
    const { server } = desk({ subscriptions: 1 })
    const wire = await rawWire(server.acceptor, '2025-11-25')
    await wire.ask('resources/subscribe', { uri: 'note://first' })
    expect(await wire.ask('resources/subscribe', { uri: 'note://first' })).toHaveProperty('result')
    const refused = await wire.ask('resources/subscribe', { uri: 'note://second' })
    expect(refused).toMatchObject({ error: { message: expect.stringContaining('1 subscriptions') } })
  })

  it.each<RevisionId>(['2026-07-28', 's3'])('cannot be subscribed to on %s (§1.4)', async revision => {
    const wire = await rawWire(desk().server.acceptor, revision)
    expect(await wire.ask('resources/subscribe', { uri: 'note://first' })).toMatchObject({ error: { code: -32601 } })
  })
})

describe('subscriptions/listen', () => {
  const everything = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: ['note://first'],
  }

  it.each([7, '7', 'listen:1'])(
    'marks every message with the id %j in its own type, the acknowledgement first (trap 13)',
    async id => {
      const { server, clock } = desk()
      const wire = await rawWire(server.acceptor, '2026-07-28')
      wire.begin('subscriptions/listen', { notifications: everything }, id)
      await wire.next('notifications/subscriptions/acknowledged')
      server.tool('second', {}, () => 'x')
      server.prompt('second', {}, () => 'x')
      server.resource('note://second', { name: 'second' }, () => 'x')
      server.resourceUpdated('note://first')
      clock.advance(0)
      await wire.next('notifications/resources/updated')
      expect(wire.heard.map(({ method }) => method)).toEqual([
        'notifications/subscriptions/acknowledged',
        'notifications/tools/list_changed',
        'notifications/prompts/list_changed',
        'notifications/resources/list_changed',
        'notifications/resources/updated',
      ])
      expect(wire.heard.map(idOf)).toEqual([id, id, id, id, id])
      expect(wire.heard[0]?.['params']).toMatchObject({ notifications: everything })
    },
  )

  it('writes the id as text on the draft (S4 §2.8)', async () => {
    const wire = await rawWire(desk().server.acceptor, 'draft-2026-v1')
    wire.begin('subscriptions/listen', { notifications: everything }, 7)
    expect(idOf(await wire.next('notifications/subscriptions/acknowledged'))).toBe('7')
  })

  it('brings nothing that was not asked for', async () => {
    const { server, clock } = desk()
    const wire = await rawWire(server.acceptor, '2026-07-28')
    wire.begin('subscriptions/listen', {
      notifications: { promptsListChanged: true, toolsListChanged: false, resourceSubscriptions: ['note://x'] },
    })
    const { params } = await wire.next('notifications/subscriptions/acknowledged')
    expect((params as Frame)['notifications']).toEqual({ promptsListChanged: true, resourceSubscriptions: ['note://x'] })
    server.tool('second', {}, () => 'x')
    server.resourceUpdated('note://first')
    clock.advance(0)
    await wire.all('none')
    expect(wire.heard.map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged', undefined])
  })

  it('honours only what the server declares (trap 13)', async () => {
    const server = createServer({ name: 'tools alone', version: '1' })
    server.tool('only', {}, () => 'x')
    const wire = await rawWire(server.acceptor, '2026-07-28')
    wire.begin('subscriptions/listen', { notifications: { ...everything, weather: true } })
    const { params } = await wire.next('notifications/subscriptions/acknowledged')
    expect((params as Frame)['notifications']).toEqual({ toolsListChanged: true })
  })

  it('does not exist on session wires', async () => {
    const wire = await rawWire(desk().server.acceptor, '2025-11-25')
    expect(await wire.ask('subscriptions/listen', { notifications: {} })).toMatchObject({ error: { code: -32601 } })
  })

  it('refuses a filter of the wrong form', async () => {
    const wire = await rawWire(desk().server.acceptor, '2026-07-28')
    const answer = await wire.ask('subscriptions/listen', { notifications: { toolsListChanged: 'yes' } })
    expect(answer).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('params.notifications.toolsListChanged') },
    })
  })

  it('ends when the client cancels it, and is not answered (trap 12)', async () => {
    const { server, clock } = desk()
    const wire = await rawWire(server.acceptor, '2026-07-28')
    const id = wire.begin('subscriptions/listen', { notifications: everything })
    await wire.next('notifications/subscriptions/acknowledged')
    wire.tell('notifications/cancelled', { requestId: id })
    await wire.all('none')
    server.tool('second', {}, () => 'x')
    clock.advance(0)
    expect(await wire.all('notifications/tools/list_changed')).toEqual([])
    expect(wire.heard.filter(frame => frame['id'] === id)).toEqual([])
  })

  it('gives its place free when the connection ends', async () => {
    const { server } = desk({ listeners: 1 })
    const gone = await rawWire(server.acceptor, '2026-07-28')
    gone.begin('subscriptions/listen', { notifications: everything })
    await gone.next('notifications/subscriptions/acknowledged')
    const wire = await rawWire(server.acceptor, '2026-07-28')
    expect(await wire.ask('subscriptions/listen', { notifications: everything })).toHaveProperty('error')
    await gone.close()
    wire.begin('subscriptions/listen', { notifications: everything })
    expect(await wire.next('notifications/subscriptions/acknowledged')).toBeDefined()
  })
})

describe('the limits of listening', () => {
  const listen = { notifications: { toolsListChanged: true } }

  it('are its own: open subscriptions take no room from calls', async () => {
    const { server } = desk({ callsPerConversation: 1, calls: 1 })
    const wire = await rawWire(server.acceptor, '2026-07-28')
    for (const id of ['a', 'b', 'c']) wire.begin('subscriptions/listen', listen, id)
    expect(await wire.ask('tools/call', { name: 'first' })).toHaveProperty('result')
    expect(await wire.all('notifications/subscriptions/acknowledged')).toHaveLength(3)
  })

  it('hold for each caller, and the refusal names them', async () => {
    const { server } = desk({ listenersPerCaller: 2 })
    const [wire, other] = [await rawWire(server.acceptor, '2026-07-28'), await rawWire(server.acceptor, '2026-07-28')]
    for (const id of ['a', 'b']) wire.begin('subscriptions/listen', listen, id)
    const refused = await wire.ask('subscriptions/listen', listen)
    expect(refused).toMatchObject({ error: { message: expect.stringContaining('2 subscriptions') } })
    other.begin('subscriptions/listen', listen)
    expect(await other.next('notifications/subscriptions/acknowledged')).toBeDefined()
  })

  it('hold for the URIs of one request', async () => {
    const wire = await rawWire(desk({ subscriptions: 2 }).server.acceptor, '2026-07-28')
    const uris = ['a://1', 'a://2', 'a://3']
    const refused = await wire.ask('subscriptions/listen', { notifications: { resourceSubscriptions: uris } })
    expect(refused).toMatchObject({ error: { code: -32602, message: expect.stringContaining('the limit is 2') } })
  })
})

describe('a server that closes', () => {
  const listen = { notifications: { toolsListChanged: true } }

  it('tells what is pending, then ends each subscription by a cancel and a result that name it (rev E §2.7)', async () => {
    const { server } = desk()
    const wire = await rawWire(server.acceptor, '2026-07-28')
    wire.begin('subscriptions/listen', listen, 7)
    await wire.next('notifications/subscriptions/acknowledged')
    server.tool('second', {}, () => 'x')
    await server.close()
    expect(wire.heard.slice(1)).toMatchObject([
      { method: 'notifications/tools/list_changed' },
      { method: 'notifications/cancelled', params: { requestId: 7, _meta: { [key]: 7 } } },
      { id: 7, result: { resultType: 'complete', _meta: { [key]: 7 } } },
    ])
  })

  it('ends it by the cancel alone on the draft, which has no result for it (S4 §2.8)', async () => {
    const { server } = desk()
    const wire = await rawWire(server.acceptor, 'draft-2026-v1')
    wire.begin('subscriptions/listen', listen, 7)
    await wire.next('notifications/subscriptions/acknowledged')
    await server.close()
    expect(wire.heard.slice(1)).toMatchObject([
      { method: 'notifications/cancelled', params: { requestId: 7, _meta: { [key]: '7' } } },
    ])
    expect(wire.heard).toHaveLength(2)
  })
})
