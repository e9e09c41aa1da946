/** Two gateways on one Postgres behind a proxy, one of which is killed over and over under load: what was acknowledged, and how soon all works. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, connect } from '../../src/client/index.ts'
import { type GatewayProcess, roundRobin, startBank, startGateway } from '../gateway/fleet.ts'
import { startPostgres } from '../real-postgres.ts'

export interface GatewayReport {
  readonly kills: number
  readonly acknowledged: number
  /** Acknowledged, and later answered otherwise. */
  readonly lost: number
  readonly doubled: number
  /** From a kill until calls, a session and keys work again: the longest. */
  readonly slowestMs: number
  /** Whether the audit log is as it was written. */
  readonly clean: boolean
}

const loops = 8
const mostMs = 15_000

export async function killGateways(kills: number): Promise<GatewayReport> {
  const [postgres, bank] = await Promise.all([startPostgres({ synced: true }), startBank()])
  const env = { STORE: postgres.url, UPSTREAM: bank.url }
  let gateways: GatewayProcess[] = [await startGateway(env), await startGateway(env)]
  const proxy = await roundRobin(gateways.map(({ url }) => url))
  const client = await connect(proxy.url, { revisions: ['2026-07-28'] })
  const session = await connect(proxy.url, { revisions: ['2025-11-25'] })
  const acknowledged = new Map<string, string>()
  const over = { now: false }
  let count = 0
  const load = Array.from({ length: loops }, async () => {
    while (!over.now) if (!(await pay(client, `n ${count++}`, acknowledged))) await wait(5)
  })
  let slowestMs = 0
  try {
    for (let kill = 0; kill < kills; kill++) {
      await wait(200)
      const [dies, lives] = [gateways[kill % 2], gateways[(kill + 1) % 2]] as [GatewayProcess, GatewayProcess]
      await dies.kill()
      slowestMs = Math.max(slowestMs, await works(client, session, `probe ${kill}`, acknowledged))
      const next = await startGateway(env)
      gateways = kill % 2 === 0 ? [next, lives] : [lives, next]
      proxy.targets = gateways.map(({ url }) => url)
    }
    over.now = true
    await Promise.all(load)
    let lost = 0
    for (const [id, text] of acknowledged) if ((await answerOf(client, id)) !== text) lost++
    const doubled = [...bank.done.values()].filter(times => times > 1).length
    const verdict = (await gateways[0]?.ask('audit')) as { readonly ok: boolean }
    return { kills, acknowledged: acknowledged.size, lost, doubled, slowestMs, clean: verdict.ok }
  } finally {
    over.now = true
    await Promise.allSettled([client.close(), session.close(), proxy.close()])
    await Promise.allSettled(gateways.map(gateway => gateway.end()))
    await bank.close()
    await postgres.stop()
  }
}

async function answerOf(client: Client, id: string): Promise<string | undefined> {
  const key = { idempotencyKey: id.replaceAll(' ', '-') }
  const answer = await client.callTool('pay', { id }, key).catch(() => undefined)
  return answer?.isError === false ? answer.text : undefined
}

async function pay(client: Client, id: string, acknowledged: Map<string, string>): Promise<boolean> {
  const text = await answerOf(client, id)
  if (text !== undefined) acknowledged.set(id, text)
  return text !== undefined
}

/** Milliseconds until a new call under a key and one in an old session both go well. */
async function works(client: Client, session: Client, id: string, acknowledged: Map<string, string>): Promise<number> {
  const began = performance.now()
  for (let n = 0; performance.now() - began < mostMs; n++) {
    const paid = await pay(client, `${id} ${n}`, acknowledged)
    const read = await session.callTool('read').then(
      ({ text }) => text === 'read',
      () => false,
    )
    if (paid && read) return performance.now() - began
    await wait(20)
  }
  return Number.POSITIVE_INFINITY
}
