import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { sharedPostgres } from '../shared-postgres.ts'
import { headersFor, httpPeer, send } from '../spec/http.ts'
import { type Frame, textOf } from '../spec/wire.ts'
import { type Bank, type GatewayProcess, type RoundRobin, roundRobin, startBank, startGateway } from './fleet.ts'

let bank: Bank
let gateways: readonly [GatewayProcess, GatewayProcess]
let proxy: RoundRobin
beforeAll(async () => {
  bank = await startBank()
  const env = { STORE: `${await sharedPostgres()}?schema=gateway_processes`, UPSTREAM: bank.url }
  // One after the other: the first makes the tables.
  gateways = [await startGateway(env), await startGateway(env)]
  proxy = await roundRobin(gateways.map(({ url }) => url))
}, 90_000)
afterAll(async () => {
  await proxy?.close()
  await Promise.all((gateways ?? []).map(gateway => gateway.end()))
  await bank?.close()
})

const revisions = ['2025-11-25', '2026-07-28'] as const

it.each(revisions)('%s: one session is served by both, each request by another', async revision => {
  proxy.counts.clear()
  await using client = await connect(proxy.url, { revisions: [revision] })
  for (let i = 0; i < 6; i++) expect((await client.callTool('read')).text).toBe('read')
  expect(Math.min(...gateways.map(({ url }) => proxy.counts.get(url) ?? 0))).toBeGreaterThan(0)
})

/** A call of one session, to whichever process. */
function inSession(session: string | undefined, params: Frame) {
  const body = { jsonrpc: '2.0', id: 7, method: 'tools/call', params }
  return { headers: headersFor('2025-11-25', 'tools/call', params, session), body }
}

it.each(revisions)('%s: a call under one key is done once, whichever of them it comes to', async revision => {
  const id = `key ${revision}`
  await using client = await connect(proxy.url, { revisions: [revision] })
  const texts = await Promise.all(
    Array.from(
      { length: 6 },
      async () => (await client.callTool('pay', { id }, { idempotencyKey: `k-${revision}-8f4b2c1e7d9a3b5c` })).text,
    ),
  )
  expect(new Set(texts)).toEqual(new Set([`paid ${id} 1`]))
  expect(bank.done.get(id)).toBe(1)
})

it('equal calls without a key are done once on both together, by the rule that says so', async () => {
  const params = { name: 'pay', arguments: { id: 'equal' } }
  const { session } = await httpPeer(gateways[0].url, '2025-11-25')
  for (const { url } of gateways) await send(url, inSession(session, params))
  expect(bank.done.get('equal')).toBe(1)
})

it('what one of them asks about is seen and approved at the other', async () => {
  const [one, other] = gateways
  await using client = await connect(one.url, { revisions: ['2026-07-28'] })
  const answer = client.callTool('close', { id: 'account' })
  await expect.poll(async () => ((await other.ask('approvals')) as string[]).length).toBe(1)
  const ids = (await other.ask('approvals')) as string[]
  expect(bank.done.get('account')).toBeUndefined()
  expect(await other.ask(`approve ${ids[0]}`)).toBe(true)
  expect((await answer).text).toBe('closed account 1')
})

it('an update at the server reaches a client that watches it through the proxy', async () => {
  await using client = await connect(proxy.url, { revisions: ['2025-11-25'] })
  const updates = client.resourceUpdates('note://1')[Symbol.asyncIterator]()
  const heard = updates.next()
  const telling = setInterval(() => bank.server.resourceUpdated('note://1'), 100)
  try {
    expect((await heard).value).toBe('note://1')
  } finally {
    clearInterval(telling)
    await updates.return?.()
  }
})

it('when one is killed, the other goes on within 3 s with sessions, keys and approvals, and nothing acknowledged is lost', async () => {
  const [dies, lives] = gateways
  await using session = await connect(proxy.url, { revisions: ['2025-11-25'] })
  await using client = await connect(proxy.url, { revisions: ['2026-07-28'] })
  const acknowledged = new Map<string, string>()
  const pay = async (n: number): Promise<boolean> => {
    const id = `kill ${n}`
    const answer = await client
      .callTool('pay', { id }, { idempotencyKey: `kill-${n}-8f4b2c1e7d9a3b5c6e0f` })
      .catch(() => undefined)
    if (answer?.isError === false) acknowledged.set(id, answer.text)
    return answer?.isError === false
  }
  const late = { name: 'close', arguments: { id: 'late' } }
  const other = await httpPeer(dies.url, '2025-11-25')
  const waiting = other.ask('tools/call', late).catch(() => 'cut')
  await expect.poll(async () => ((await lives.ask('approvals')) as string[]).length).toBe(1)
  for (let n = 0; n < 10; n++) await pay(n)
  await dies.kill()
  const killed = performance.now()
  let again = Number.NaN
  for (let n = 10; Number.isNaN(again) && performance.now() - killed < 10_000; n++) {
    const fine = await pay(n)
    const alive = await session.callTool('read').then(
      ({ text }) => text === 'read',
      () => false,
    )
    if (fine && alive) again = performance.now() - killed
    else await wait(20)
  }
  expect(again).toBeLessThan(3_000)
  // What was acknowledged is known, and was done once.
  for (const [id, text] of acknowledged) {
    const n = id.slice('kill '.length)
    expect((await client.callTool('pay', { id }, { idempotencyKey: `kill-${n}-8f4b2c1e7d9a3b5c6e0f` })).text).toBe(text)
    expect(bank.done.get(id)).toBe(1)
  }
  // What waited for an approval at the dead one still does.
  expect(await waiting).toBe('cut')
  const [id] = (await lives.ask('approvals')) as string[]
  expect(await lives.ask(`approve ${id}`)).toBe(true)
  expect(textOf((await send(lives.url, inSession(other.session, late))).frame)).toBe('closed late 1')
  expect(await lives.ask('audit')).toMatchObject({ ok: true })
})
