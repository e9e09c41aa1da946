import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { consentWorld, places } from '../../../../test/spec/consent.ts'
import { hearing, listener, subscribe, subscriber } from '../../../../test/spec/eventing.ts'
import { errorOf, type Frame, resultOf } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import type { Server, ServerOptions } from '../../../server/index.ts'

const world = consentWorld()
afterEach(() => world.close())

const ticket = z.object({ id: z.string(), project: z.string().optional(), tags: z.array(z.string()).optional() })

function tracker(kind: StoreKind, options: Partial<ServerOptions> = {}) {
  const server: Server = world.serve(kind, options)
  return {
    server,
    created: server.event('ticket_created', { description: 'A ticket is there', payload: ticket }),
    closed: server.event('ticket_closed', { payload: ticket }),
  }
}

const all = { grant: ({ scopes }: { scopes: readonly string[] }) => scopes }
const ids = (events: readonly { readonly payload?: Frame }[]): unknown[] => events.map(({ payload }) => payload?.['id'])

describe.each(places)('at %s on %s', (revision, kind) => {
  it('E15-1: only events arrive that were subscribed to and whose payload agrees with the filter', async () => {
    const { server, created, closed } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['ticket_created'], filter: { project: ['a', 'b'], tags: 'hot' } })
    await closed.emit({ id: '1', project: 'a', tags: ['hot'] })
    await created.emit({ id: '2', project: 'c', tags: ['hot'] })
    await created.emit({ id: '3', project: 'a' })
    await created.emit({ id: '4', project: 'b', tags: ['cold', 'hot'] })
    const [event] = await one.heard(1)
    expect(event).toMatchObject({ type: 'event', event: 'ticket_created', payload: { id: '4', project: 'b' } })
    expect(one.events()).toHaveLength(1)
    if (revision === '2026-07-28')
      expect((event as unknown as Frame)['_meta']).toHaveProperty(['io.modelcontextprotocol/subscriptionId'])
  })

  it('E15-2: what is unknown or cannot be filtered is denied with the reason and what there is', async () => {
    const { server } = tracker(kind)
    const wire = await listener(server, revision)
    const denied = async (wish: Frame) => (await subscribe(wire, revision, wish)).response
    const supported = { supported_events: ['ticket_created', 'ticket_closed'] }
    const unknown = await denied({ events: ['nonsense'] })
    expect(unknown).toMatchObject({ status: 'denied', reason: 'There is no event "nonsense"', ...supported })
    const field = await denied({ events: ['ticket_created'], filter: { projekt: 'a' } })
    expect(field.reason).toMatch(/no payload of these events has a field "projekt". The fields are: id, project, tags/)
    const deep = await denied({ events: ['ticket_created'], filter: { id: { a: { b: { c: { d: { e: 1 } } } } } } })
    expect(deep).toMatchObject({ status: 'denied', ...supported })
    const cursor = await denied({ events: ['ticket_created'], cursor: 'what?' })
    expect(cursor).toMatchObject({ status: 'denied', reason: expect.stringMatching(/^cursor/) })
    expect(await denied({ events: ['ticket_created'], ttl_seconds: 0 })).toMatchObject({ status: 'denied' })
    expect(await denied({ events: [] })).toMatchObject({ status: 'denied' })
  })

  it('E15-2: of a list that is known in part the known ones are active, and the others named', async () => {
    const { server, created } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['nonsense', 'ticket_created'] })
    expect(one.response).toMatchObject({ status: 'active', unsupported_events: ['nonsense'] })
    await created.emit({ id: '1' })
    expect(ids(await one.heard(1))).toEqual(['1'])
  })

  it('E15-3: a subscription is told in order, each event naming the one that it follows', async () => {
    const { server, created, closed } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['ticket_created'] })
    const emit = (i: number): Promise<string> => (i % 3 === 2 ? closed : created).emit({ id: String(i) })
    // Where several connections write, only what is awaited has an order.
    if (kind === 'postgres') for (let i = 0; i < 60; i++) await emit(i)
    else await Promise.all(Array.from({ length: 60 }, (_, i) => emit(i)))
    const events = await one.heard(40)
    expect(ids(events)).toEqual(Array.from({ length: 60 }, (_, i) => String(i)).filter((_, i) => i % 3 < 2))
    const before = [one.response.cursor, ...events.map(({ cursor }) => cursor)]
    expect(events.map(event => event.previous_cursor)).toEqual(before.slice(0, -1))
    expect(events.some(event => event.truncated)).toBe(false)
    expect(new Set(events.map(event => event.event_id)).size).toBe(40)
  })

  it('E15-5: after its time a subscription is told once that it ended, and then nothing', async () => {
    const { server, created } = tracker(kind)
    const wire = await listener(server, revision)
    const short = await subscribe(wire, revision, { events: ['ticket_created'], ttl_seconds: 1 })
    const long = await subscribe(wire, revision, { events: ['ticket_created'] })
    const until = Date.parse(short.response.expires_at ?? '')
    expect(until).toBeLessThan(Date.parse(long.response.expires_at ?? ''))
    await expect.poll(() => short.terminated()).toEqual(['expired'])
    await created.emit({ id: '1' })
    await long.heard(1)
    expect([short.events(), short.terminated(), long.terminated()]).toEqual([[], ['expired'], []])
  })

  it('E15-5: a server that closes says so to every subscriber', async () => {
    const { server } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['ticket_created'] })
    await server.close()
    await expect.poll(() => one.terminated()).toEqual(['shutdown'])
  })

  it('E15-5, X5: when the grant behind it is revoked, a subscription hears no more, and that it ended', async () => {
    const { server } = tracker(kind, { permissions: all })
    const audited = server.event('audited', { scopes: ['audit'] })
    const wire = await listener(server, revision)
    const denied = await subscribe(wire, revision, { events: ['audited'] })
    expect(denied.response).toMatchObject({ status: 'denied', reason: expect.stringContaining('requires the scopes audit') })
    const negotiated = resultOf(await wire.ask('permissions/negotiate', { requested_scopes: ['audit'] }))
    const token = { 'dev.vivarium/permissions': { session_token: (negotiated['session'] as Frame)['token'] } }
    const one = await subscribe(wire, revision, { events: ['audited'] }, token)
    expect(one.response.status).toBe('active')
    await audited.emit({ n: 1 })
    await one.heard(1)
    const [session] = await server.permissions.sessions()
    await server.permissions.revoke(session?.session ?? '')
    await audited.emit({ n: 2 })
    await expect.poll(() => one.terminated()).toEqual(['revoked'])
    expect(one.events()).toHaveLength(1)
  })

  it('E15-5: whoever waits for events that were taken back is told', async () => {
    const { server, created } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['ticket_created'] })
    created.remove()
    await expect.poll(() => one.terminated()).toEqual(['withdrawn'])
    await expect(created.emit({ id: '1' })).rejects.toThrow('removed')
  })

  it('E15-5: when an event needs scopes that it did not need before, who has none is told that it ended, and hears nothing', async () => {
    const { server, created } = tracker(kind)
    const wish = { events: ['ticket_created'] }
    const ann = await subscriber(server, revision, wish, { principal: 'ann', scopes: ['audit'] })
    const bob = await subscriber(server, revision, wish, { principal: 'bob', scopes: [] })
    await created.emit({ id: '1' })
    await Promise.all([ann.heard(1), bob.heard(1)])
    created.update({ scopes: ['audit'] })
    await created.emit({ id: '2' })
    expect(ids(await ann.heard(2))).toEqual(['1', '2'])
    await expect.poll(() => bob.terminated()).toEqual(['revoked'])
    expect([ids(bob.events()), ann.terminated()]).toEqual([['1'], []])
  })

  it('E15-6: whoever comes back with a cursor gets what it missed', async () => {
    const { server, created } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['ticket_created'] })
    for (const id of ['1', '2', '3']) await created.emit({ id })
    const [, second] = await one.heard(3)
    await one.wire.close()
    await created.emit({ id: '4' })
    const again = await subscriber(server, revision, { events: ['ticket_created'], cursor: second?.cursor })
    expect(ids(await again.heard(2))).toEqual(['3', '4'])
    expect(again.response.truncated).toBeUndefined()
    expect(again.events()[0]?.previous_cursor).toBe(second?.cursor)
  })

  it('E15-6, E15-3: whoever comes back too late, or from another feed, gets what there is and is told that something is missing', async () => {
    const { server, created } = tracker(kind, { events: { keep: 10 } })
    const one = await subscriber(server, revision, { events: ['ticket_created'] })
    const start = one.response.cursor
    for (let i = 0; i < 40; i++) await created.emit({ id: String(i) })
    for (const cursor of [start, `otherfeed.${(5).toString(36)}`]) {
      const late = await subscriber(server, revision, { events: ['ticket_created'], cursor })
      expect(late.response).toMatchObject({ status: 'active', truncated: true })
      const events = await late.heard(10)
      expect(events.map(({ truncated = false }) => truncated)).toEqual(events.map((_, at) => at === 0))
      expect(ids(events).at(-1)).toBe('39')
    }
  })

  it('E15-7: after the answer to an unsubscribe nothing comes any more, and asking again is as good', async () => {
    const { server, created } = tracker(kind)
    const wire = await listener(server, revision)
    const one = await subscribe(wire, revision, { events: ['ticket_created'], subscription_id: 'mine' })
    const two = await subscribe(wire, revision, { events: ['ticket_created'], subscription_id: 'other' })
    for (let i = 0; i < 2; i++)
      expect(resultOf(await wire.ask('event/unsubscribe', { subscription_id: 'mine' }))).toMatchObject({ status: 'cancelled' })
    await created.emit({ id: '1' })
    await two.heard(1)
    expect(one.events()).toEqual([])
  })

  it('E15-7: an unsubscribe that overtakes what is being told stops it: nothing comes behind its answer', async () => {
    const { server, created } = tracker(kind)
    const wire = await listener(server, revision)
    const one = await subscribe(wire, revision, { events: ['ticket_created'], subscription_id: 'mine' })
    const emitted = Promise.all(Array.from({ length: 30 }, (_, i) => created.emit({ id: String(i) })))
    const id = wire.begin('event/unsubscribe', { subscription_id: 'mine' })
    const answer = await wire.next(frame => frame['id'] === id)
    await emitted
    await wire.quiet()
    const after = wire.heard.slice(wire.heard.indexOf(answer) + 1)
    expect(after.filter(frame => frame['method'] === 'notifications/event')).toEqual([])
    expect(one.response.status).toBe('active')
  })

  it('E15-8: an id that stands for something else is denied; the same again takes its place', async () => {
    const { server, created } = tracker(kind)
    const wire = await listener(server, revision)
    const wish = { events: ['ticket_created'], subscription_id: 'mine', filter: { project: 'a' } }
    await subscribe(wire, revision, wish)
    const clash = await subscribe(wire, revision, { ...wish, filter: { project: 'b' } })
    expect(clash.response).toMatchObject({ status: 'denied', reason: expect.stringContaining('another id') })
    const again = await subscribe(wire, revision, wish)
    await created.emit({ id: '1', project: 'a' })
    await again.heard(1)
    await created.emit({ id: '2', project: 'a' })
    expect(ids(await again.heard(2))).toEqual(['1', '2'])
    const stranger = await subscriber(server, revision, { ...wish, filter: {} }, { principal: 'bob' })
    expect(stranger.response.status).toBe('active')
    // The same principal, on another connection.
    const his = await subscriber(server, revision, { ...wish, filter: { project: 'c' } }, { principal: 'bob' })
    expect(his.response).toMatchObject({ status: 'denied', reason: expect.stringContaining('another id') })
  })

  it('E15-9: where nothing can be pushed, the same events are polled for', async () => {
    const { server, created, closed } = tracker(kind, { events: { push: false, pollEvery: '2s' } })
    const wish = { events: ['ticket_created'], filter: { project: 'a' } }
    const one = await subscriber(server, revision, wish)
    expect(one.response).toMatchObject({ status: 'active', supported: false, poll_interval_seconds: 2 })
    for (const id of ['1', '2', '3']) {
      await created.emit({ id, project: 'a' })
      await created.emit({ id, project: 'b' })
      await closed.emit({ id, project: 'a' })
    }
    const poll = async (cursor: unknown, more: Frame = {}) =>
      resultOf(await one.wire.ask('event/poll', { ...wish, cursor, ...more }))
    const first = await poll(one.response.cursor, { limit: 5 })
    const second = await poll(first['cursor'])
    const events = [first, second].flatMap(page => page['events'] as { payload: Frame }[])
    expect(ids(events)).toEqual(['1', '2', '3'])
    expect([first['more'], second['more'], second['truncated']]).toEqual([true, false, false])
    expect((await poll(second['cursor']))['events']).toEqual([])
    expect(errorOf(await one.wire.ask('event/poll', { events: ['nonsense'] })).code).toBe(-32602)
    expect(errorOf(await one.wire.ask('event/poll', { cursor: 'what?' })).code).toBe(-32602)
  })

  it('E15-12: more subscriptions than one caller may have, or than its share of all, are denied', async () => {
    const { server } = tracker(kind, { events: { perCaller: 2, total: 5 } })
    const ann = await listener(server, revision, { principal: 'ann' })
    const wish = { events: ['ticket_created'] }
    const opened = [await subscribe(ann, revision, wish), await subscribe(ann, revision, { ...wish, subscription_id: 'mine' })]
    expect((await subscribe(ann, revision, wish)).response.reason).toContain('events.perCaller')
    const bob = await listener(server, revision, { principal: 'bob' })
    expect((await subscribe(bob, revision, wish)).response.status).toBe('active')
    expect((await subscribe(bob, revision, wish)).response.reason).toContain('events.total')
    // It is she who may have so many, not each of her connections.
    const beside = await listener(server, revision, { principal: 'ann' })
    expect((await subscribe(beside, revision, wish)).response).toMatchObject({
      status: 'denied',
      reason: expect.stringContaining('events.perCaller'),
    })
    await ann.ask('event/unsubscribe', { subscription_id: opened[0]?.response.subscription_id })
    expect((await subscribe(bob, revision, wish)).response.status).toBe('active')
  })

  it('an event of one principal is heard by nobody else, and nobody else ends its subscription', async () => {
    const { server, created } = tracker(kind)
    const wish = { events: ['ticket_created'], subscription_id: 'mine' }
    const ann = await subscriber(server, revision, wish, { principal: 'ann' })
    const bob = await subscriber(server, revision, wish, { principal: 'bob' })
    await bob.wire.ask('event/unsubscribe', { subscription_id: ann.response.subscription_id })
    await created.emit({ id: '1' }, { to: 'ann' })
    await created.emit({ id: '2' }, { to: 'bob' })
    await created.emit({ id: '3' })
    expect(ids(await ann.heard(2))).toEqual(['1', '3'])
    expect(bob.events()).toEqual([])
  })

  it('an event with scopes is heard only with a token that has them', async () => {
    const { server } = tracker(kind)
    const audited = server.event('audited', { scopes: ['audit'] })
    const wish = { events: ['audited', 'ticket_created'] }
    const ann = await subscriber(server, revision, wish, { principal: 'ann', scopes: ['audit'] })
    const bob = await subscriber(server, revision, wish, { principal: 'bob', scopes: [] })
    expect(bob.response).toMatchObject({ status: 'active', unsupported_events: ['audited'] })
    await audited.emit({ n: 1 })
    await ann.heard(1)
    expect(bob.events()).toEqual([])
    expect(errorOf(await bob.wire.ask('event/poll', { events: ['audited'] })).message).toContain('audit')
    const listed = async ({ wire }: typeof ann) =>
      (resultOf(await wire.ask('event/list', {}))['events'] as readonly Frame[]).map(({ name }) => name)
    expect(await listed(ann)).toContain('audited')
    expect(await listed(bob)).not.toContain('audited')
    expect(await listed(bob)).toContain('ticket_created')
  })

  it('what is emitted twice under one id happens once', async () => {
    const { server, created } = tracker(kind)
    const one = await subscriber(server, revision, { events: ['ticket_created'] })
    expect(await created.emit({ id: '1' }, { id: 'order-1' })).toBe('order-1')
    expect(await created.emit({ id: '1' }, { id: 'order-1' })).toBe('order-1')
    await created.emit({ id: '2' })
    expect(ids(await one.heard(2))).toEqual(['1', '2'])
  })

  it('one emit tells those who watch the resource that it touches', async () => {
    const { server } = tracker(kind)
    server.resource('ticket://{id}', { name: 'ticket' }, () => 'a ticket')
    const moved = server.event('ticket_moved', { payload: ticket, resource: 'ticket://{id}' })
    const wire = await listener(server, revision)
    if (revision === '2025-11-25') await wire.ask('resources/subscribe', { uri: 'ticket://7' })
    else {
      wire.begin('subscriptions/listen', { notifications: { resourceSubscriptions: ['ticket://7'] } })
      await wire.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
    }
    await moved.emit({ id: '6' })
    await moved.emit({ id: '7' })
    const { params } = await wire.next(({ method }) => method === 'notifications/resources/updated')
    expect((params as Frame)['uri']).toBe('ticket://7')
  })

  it('whoever has not declared events is refused, and learns what is missing', async () => {
    const { server } = tracker(kind)
    const wire = await listener(server, revision, { capabilities: {} })
    for (const method of ['event/subscribe', 'event/poll']) {
      const { data } = errorOf(await wire.ask(method, { events: ['ticket_created'] }))
      expect(JSON.stringify(data)).toContain('dev.vivarium/events')
    }
  })
})

it('payloads are held against their schema, and the author hears what is wrong', async () => {
  const { created } = tracker('memory')
  await expect(created.emit({ id: 1 } as never)).rejects.toThrow(
    /payload of event "ticket_created" does not match its schema: id/,
  )
  await expect(created.emit('text' as never)).rejects.toThrow(TypeError)
  await expect(created.emit({ id: '1' }, { hint: {} as never })).rejects.toThrow('needs a tool')
  expect(await created.emit({ id: '1' })).toMatch(/^[0-9a-f-]{36}$/)
})

it.each([
  [{ payload: z.string() }, 'must be an object schema'],
  [{ resource: 7 }, 'resource must be a URI template or a function'],
  [{ schema: {} }, 'has no option "schema"'],
])('what an author got wrong of an event is told where it is written', (facts, message) => {
  const { server } = tracker('memory')
  expect(() => server.event('x', facts as never)).toThrow(message)
})

it('a server without events neither declares them nor has their methods', async () => {
  const server = world.serve('memory')
  server.tool('t', {}, () => '')
  const wire = await listener(server, '2025-11-25')
  expect(JSON.stringify(wire.hello)).not.toContain('dev.vivarium/events')
  expect(errorOf(await wire.ask('event/subscribe', { events: ['x'] })).code).toBe(-32601)
  expect(hearing.extensions).toHaveProperty(['dev.vivarium/events'])
})
