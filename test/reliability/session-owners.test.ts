/** Sessions over HTTP in which nobody is known: each is an owner of its own, and what is its own ends with it or without it. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { problems } from '../spec/consent.ts'
import { type HttpPeer, headersFor, httpPeer, send } from '../spec/http.ts'
import { errorOf, type Frame, resultOf } from '../spec/wire.ts'

const revision = '2025-11-25'
const ids = ['idempotency', 'transactions', 'events', 'permissions', 'state']
const capabilities = { extensions: Object.fromEntries([problems, ...ids.map(id => `dev.vivarium/${id}`)].map(id => [id, {}])) }
const named = z.object({ id: z.string() })

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function world(options: Partial<ServerOptions> = {}) {
  const server = createServer({ name: 'sessions', version: '1.0.0', log: 'silent', limits: { rates: false }, ...options })
  servers.push(server)
  const log: string[] = []
  server.tool('do', { input: named, undo: { tool: 'undo' } }, ({ id }) => log.push(`do ${id}`) && 'done')
  server.tool('undo', { input: named }, ({ id }) => log.push(`undo ${id}`) && 'undone')
  const happened = server.event('happened', { payload: named })
  const { url } = await server.listen()
  return { server, log, happened, url, peer: () => httpPeer(url, revision, capabilities) }
}

const call = (peer: HttpPeer, id: string, meta?: Frame) =>
  peer.ask('tools/call', { name: 'do', arguments: { id }, ...(meta === undefined ? {} : { _meta: meta }) })
const within = (transaction_id: string): Frame => ({ 'dev.vivarium/transactions': { transaction_id } })
const key = (idempotency_key: string): Frame => ({ 'dev.vivarium/idempotency': { idempotency_key } })
const codeIn = (frame: Frame): unknown => errorOf(frame).data?.['code']

describe.each(['memory', 'shared'])('on a store that is %s', kind => {
  const store = kind === 'memory' ? {} : { store: 'memory:' }

  it('C8: neither sees the transactions, keys, subscriptions and grants of the other', async () => {
    const { peer, log } = await world({ ...store, permissions: { grant: ({ scopes }) => scopes } })
    const [one, two] = [await peer(), await peer()]
    await one.ask('transaction/begin', { transaction_id: 't' })
    await call(one, 'a', { ...within('t'), ...key('k') })
    expect(codeIn((await two.ask('transaction/get', { transaction_id: 't' })).frame)).toBe('RESOURCE_NOT_FOUND')
    expect(codeIn((await two.ask('transaction/rollback', { transaction_id: 't' })).frame)).toBe('RESOURCE_NOT_FOUND')
    expect(resultOf((await two.ask('idempotency/get', { idempotency_key: 'k' })).frame)['status']).toBe('unknown')
    const wish = { events: ['happened'], subscription_id: 'mine', delivery: 'poll' }
    resultOf((await one.ask('event/subscribe', wish)).frame)
    expect(errorOf((await two.ask('event/poll', { subscription_id: 'mine' })).frame).code).toBe(-32602)
    await two.ask('event/unsubscribe', { subscription_id: 'mine' })
    expect(resultOf((await one.ask('event/poll', { subscription_id: 'mine' })).frame)['events']).toEqual([])
    expect(log).toEqual(['do a'])
  })

  it('E5-16: what a session that was ended has begun is taken back in its time, and nobody else can touch it', async () => {
    const { peer, log, url } = await world({ ...store, transactions: { timeout: '1s' } })
    const one = await peer()
    await one.ask('transaction/begin', { transaction_id: 't' })
    await call(one, 'a', within('t'))
    const ended = await send(url, { method: 'DELETE', headers: headersFor(revision, '', {}, one.session) })
    expect(ended.status).toBeLessThan(300)
    expect((await call(one, 'b', within('t'))).status).toBe(404)
    const two = await peer()
    expect(codeIn((await two.ask('transaction/commit', { transaction_id: 't' })).frame)).toBe('RESOURCE_NOT_FOUND')
    await expect.poll(() => log).toEqual(['do a', 'undo a'])
  })

  it('E15-5: what an ended session listened to tells nobody, and a new one begins anew', async () => {
    const { peer, happened, url } = await world(store)
    const one = await peer()
    const told = resultOf((await one.ask('event/subscribe', { events: ['happened'], subscription_id: 'mine' })).frame)
    expect(told['status']).toBe('active')
    await send(url, { method: 'DELETE', headers: headersFor(revision, '', {}, one.session) })
    await happened.emit({ id: 'a' })
    const two = await peer()
    const again = { events: ['happened'], subscription_id: 'mine', cursor: told['cursor'] }
    expect(resultOf((await two.ask('event/subscribe', again)).frame)['status']).toBe('active')
    const polled = resultOf((await two.ask('event/poll', { events: ['happened'], cursor: told['cursor'] })).frame)
    expect(polled['events']).toHaveLength(1)
  })

  it('X10: of sessions that leave without a word no more is kept than their subscriptions', async () => {
    const { peer } = await world({ ...store, events: { perCaller: 2 } })
    const one = await peer()
    const wish = { events: ['happened'], delivery: 'poll' }
    const ask = async (peer: HttpPeer) => resultOf((await peer.ask('event/subscribe', wish)).frame)['status']
    expect([await ask(one), await ask(one), await ask(one)]).toEqual(['active', 'active', 'denied'])
    expect(await ask(await peer())).toBe('active')
  })
})

it.each(['2025-11-25', '2026-07-28'] as const)(
  'C8: where nobody can be told from others, at %s, no subscription is kept under an id that others may guess',
  async wire => {
    const { url, happened } = await world({ sessions: false, facade: ['events'] })
    const [one, two] = [await httpPeer(url, wire), await httpPeer(url, wire)]
    const tool = async (peer: HttpPeer, name: string, args: Frame) =>
      resultOf((await peer.ask('tools/call', { name, arguments: args })).frame)
    const wish = { events: ['happened'], subscription_id: 'mine' }
    const told = (await tool(one, 'subscribe_events', wish))['structuredContent'] as Frame
    expect(told).toMatchObject({ status: 'active', supported: false })
    await happened.emit({ id: 'a' })
    for (const peer of [one, two]) {
      const byId = await tool(peer, 'poll_events', { subscription_id: 'mine' })
      expect([byId['isError'], JSON.stringify(byId)]).toEqual([true, expect.stringContaining('Give params.events')])
    }
    const named = await tool(one, 'poll_events', { events: ['happened'], cursor: told['cursor'] })
    expect((named['structuredContent'] as Frame)['events']).toHaveLength(1)
  },
)
