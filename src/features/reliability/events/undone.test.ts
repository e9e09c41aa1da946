/** Events of steps that are taken back. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { consentWorld, eras, places } from '../../../../test/spec/consent.ts'
import { subscribe } from '../../../../test/spec/eventing.ts'
import { errorOf, type Frame, resultOf, speak } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import { createServer, type Server } from '../../../server/index.ts'
import { connectInMemory, fakeClock } from '../../../testing/index.ts'

const world = consentWorld()
afterEach(() => world.close())

const transactions = 'dev.vivarium/transactions'
const capabilities = {
  extensions: { 'dev.vivarium/events': {}, [transactions]: {}, 'dev.vivarium/idempotency': {} },
}
const named = z.object({ id: z.string() })

function tracker(kind: StoreKind) {
  const server = world.serve(kind)
  const log: string[] = []
  const created = server.event('ticket_created', { payload: named, resource: 'ticket://{id}' })
  const deleted = server.event('ticket_deleted', { payload: named })
  server.resource('ticket://{id}', { name: 'ticket' }, ({ id }) => `${id}`)
  server.tool('create', { input: named, undo: { tool: 'delete' } }, async ({ id }) => {
    log.push(`create ${id}`)
    const hint = { tool: 'create', reason: 'One is not enough' }
    await created.emit({ id }, { hint })
    await new Promise(setImmediate)
    await created.emit({ id: `${id}-too` })
    return 'created'
  })
  server.tool('delete', { input: named, idempotent: true }, async ({ id }) => {
    log.push(`delete ${id}`)
    await deleted.emit({ id })
    return 'deleted'
  })
  return { server, log, created }
}

const brief = (events: readonly { readonly event: string; readonly payload?: Frame }[]): unknown[] =>
  events.map(({ event, payload }) => `${event} ${payload?.['id']}`)

describe.each(places)('at %s on %s', (revision, kind) => {
  const open = (server: Server, principal?: string) =>
    speak(server, revision, { capabilities, ...(principal === undefined ? {} : { principal }) })
  const call = (name: string, id: string, transaction_id?: string): Frame => ({
    name,
    arguments: { id },
    ...(transaction_id === undefined ? {} : { _meta: { [transactions]: { transaction_id } } }),
  })

  it('X3: the events of a step that is taken back stay, and each is followed by one that says so', async () => {
    const { server } = tracker(kind)
    const wire = await open(server)
    const wish = { events: ['ticket_created', 'ticket_deleted'] }
    const one = await subscribe(wire, revision, wish)
    const some = await subscribe(wire, revision, { ...wish, filter: { id: ['a', 'b'] } })
    await wire.ask('transaction/begin', { transaction_id: 't' })
    await wire.ask('tools/call', call('create', 'a', 't'))
    expect(brief(await one.heard(2))).toEqual(['ticket_created a', 'ticket_created a-too'])
    expect(one.events().some(event => event.compensates !== undefined)).toBe(false)
    expect(resultOf(await wire.ask('transaction/rollback', { transaction_id: 't' }))['status']).toBe('rolled_back')
    const events = await one.heard(5)
    expect(brief(events.slice(2))).toEqual(['ticket_deleted a', 'ticket_created a-too', 'ticket_created a'])
    expect(events.map(({ compensates }) => compensates)).toEqual([
      ...[undefined, undefined, undefined],
      events[1]?.event_id,
      events[0]?.event_id,
    ])
    expect(events[4]).not.toHaveProperty('action_hint')
    expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(5)
    expect(brief(await some.heard(3))).toEqual(['ticket_created a', 'ticket_deleted a', 'ticket_created a'])
  })

  it('X3: what a step of a transaction that is kept has told, or a call outside of any, is not taken back', async () => {
    const { server, created } = tracker(kind)
    const wire = await open(server)
    const one = await subscribe(wire, revision, { events: ['ticket_created'] })
    for (const transaction_id of ['kept', 'lost']) await wire.ask('transaction/begin', { transaction_id })
    await wire.ask('tools/call', call('create', 'a', 'kept'))
    await wire.ask('tools/call', call('create', 'b'))
    await wire.ask('tools/call', call('create', 'c', 'lost'))
    await wire.ask('transaction/commit', { transaction_id: 'kept' })
    await wire.ask('transaction/rollback', { transaction_id: 'lost' })
    await created.emit({ id: 'last' })
    const events = await one.heard(9)
    expect(brief(events.filter(({ compensates }) => compensates !== undefined))).toEqual([
      'ticket_created c-too',
      'ticket_created c',
    ])
    expect(brief(events).at(-1)).toBe('ticket_created last')
  })

  it('X3: whoever polls, and whoever watches the resource, learns of it too', async () => {
    const { server } = tracker(kind)
    await using mcp = await connectInMemory(server, { revision })
    const events = mcp.events(['ticket_created'])
    await events.ready
    const tx = await mcp.transaction()
    await tx.callTool('create', { id: 'a' })
    await tx.rollback()
    const heard: (string | undefined)[] = []
    for await (const { id, compensates } of events) {
      heard.push(compensates ?? id)
      if (heard.length === 4) break
    }
    expect(heard.slice(2)).toEqual([heard[1], heard[0]])
    const wire = await open(server)
    const since = resultOf(await wire.ask('event/poll', { events: ['ticket_created'] }))['cursor']
    await wire.ask('transaction/begin', { transaction_id: 'p' })
    await wire.ask('tools/call', call('create', 'b', 'p'))
    await wire.ask('transaction/rollback', { transaction_id: 'p' })
    const polled = resultOf(await wire.ask('event/poll', { events: ['ticket_created'], cursor: since }))['events'] as Frame[]
    expect(polled.map(event => event['compensates'] !== undefined)).toEqual([false, false, true, true])
  })

  it('X3, C8: an event for one principal is taken back for that one alone', async () => {
    const { server } = tracker(kind)
    const secret = server.event('secret', { payload: named })
    server.tool('tell', { input: named, undo: { tool: 'delete' } }, async ({ id }) => {
      await secret.emit({ id }, { to: 'ann' })
      return 'told'
    })
    const [ann, bob] = [await open(server, 'ann'), await open(server, 'bob')]
    const hers = await subscribe(ann, revision, { events: ['secret'] })
    const his = await subscribe(bob, revision, { events: ['secret'] })
    await bob.ask('transaction/begin', { transaction_id: 't' })
    await bob.ask('tools/call', call('tell', 'a', 't'))
    await bob.ask('transaction/rollback', { transaction_id: 't' })
    await hers.heard(2)
    await secret.emit({ id: 'open' })
    expect(brief(await his.heard(1))).toEqual(['secret open'])
    expect(errorOf(await ann.ask('transaction/get', { transaction_id: 't' })).data?.['code']).toBe('RESOURCE_NOT_FOUND')
  })
})

it.each(eras)('at %s, X3: a step that was taken back while its handler still ran tells nothing more', async revision => {
  const clock = fakeClock()
  await using server = createServer({ name: 'tracker', version: '1.0.0', clock, log: 'silent' })
  const created = server.event('ticket_created', { payload: named })
  const gate = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const told = Promise.withResolvers<unknown>()
  server.tool('delete', { input: named }, () => 'deleted')
  server.tool('slow', { input: named, undo: { tool: 'delete' } }, async ({ id }) => {
    await created.emit({ id })
    entered.resolve()
    await gate.promise
    await created.emit({ id: 'late' }).then(told.resolve, told.resolve)
    return 'done'
  })
  const wire = await speak(server, revision, { capabilities })
  const one = await subscribe(wire, revision, { events: ['ticket_created'] })
  await wire.ask('transaction/begin', { transaction_id: 't' })
  wire.begin('tools/call', { name: 'slow', arguments: { id: 'a' }, _meta: { [transactions]: { transaction_id: 't' } } })
  await entered.promise
  let over = false
  const rolling = wire.ask('transaction/rollback', { transaction_id: 't' }).finally(() => {
    over = true
  })
  // Until it is no longer waited for.
  while (!over) {
    clock.advance(500)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  await rolling
  gate.resolve()
  expect(await told.promise).toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  const events = await one.heard(2)
  expect([brief(events), events[1]?.compensates]).toEqual([['ticket_created a', 'ticket_created a'], events[0]?.event_id])
})
