import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { clientOf, gatewayBefore, type Upstream, upstreamOf } from '../../../test/gateway/world.ts'
import type { GatewayRule } from '../../policy/rules/call-policy.ts'
import { memoryStore, type Store } from '../../stores/index.ts'
import type { GatewayOptions } from '../gateway.ts'

/** Two gateways on one store before one server, and a client of each. */
async function two(bank: Upstream, options: GatewayOptions, store: string | Store = memoryStore()) {
  const shared = { ...options, store, secret: 'a secret of both, of some length', limits: { rates: false } } as const
  const gateways = await Promise.all([gatewayBefore({ bank }, shared), gatewayBefore({ bank }, shared)])
  return Promise.all(gateways.map(gateway => clientOf(gateway)))
}

const refused = (results: readonly { problem?: { code: string } | undefined }[]): Record<string, number> => {
  const codes: Record<string, number> = {}
  for (const { problem } of results) codes[problem?.code ?? 'ok'] = (codes[problem?.code ?? 'ok'] ?? 0) + 1
  return codes
}

describe('two gateways on one store', () => {
  it.each([2, 10, 100])('let in together as many calls as a rate says, and not one more: %i', async count => {
    const bank = upstreamOf()
    const rule: GatewayRule = { name: 'slow', tool: 'read', above: { count, per: '10h' }, do: 'deny' }
    const clients = await two(bank, { rules: [rule] })
    const calls = clients.flatMap(client => Array.from({ length: count }, () => client.callTool('read', {})))
    expect(refused(await Promise.all(calls))).toEqual({ ok: count, RATE_LIMIT_EXCEEDED: count })
    expect(bank.ran).toHaveLength(count)
  })

  it('do so on a file of SQLite too, and keep to it after they were closed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vivarium-rates-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const store = `sqlite:${join(folder, 'gateway.db')}`
    const bank = upstreamOf()
    const rule: GatewayRule = { name: 'slow', tool: 'read', above: { count: 9, per: '10h' }, do: 'deny' }
    for (const expected of [{ ok: 9, RATE_LIMIT_EXCEEDED: 3 }, { RATE_LIMIT_EXCEEDED: 12 }]) {
      const clients = await two(bank, { rules: [rule] }, store)
      const calls = clients.flatMap(client => Array.from({ length: 6 }, () => client.callTool('read', {})))
      expect(refused(await Promise.all(calls))).toEqual(expected)
    }
  })

  it('give back what they took of a rate and did not use', async () => {
    const bank = upstreamOf()
    const rule: GatewayRule = { name: 'slow', tool: 'read', above: { count: 80, per: '10h' }, do: 'deny' }
    const [one, other] = await two(bank, { rules: [rule] })
    // Takes 10 of the 80, and uses one.
    await one?.callTool('read', {})
    const most = async (): Promise<number> => {
      const results = await Promise.all(Array.from({ length: 80 }, () => other?.callTool('read', {})))
      return results.filter(result => result?.isError === false).length
    }
    let done = await most()
    expect(done).toBeGreaterThanOrEqual(70)
    await expect
      .poll(
        async () => {
          done += await most()
          return done
        },
        { interval: 300, timeout: 10_000 },
      )
      .toBe(79)
    expect(bank.ran).toHaveLength(80)
  })

  it('ask about what goes beyond a rate, and not about the last call within it', async () => {
    const bank = upstreamOf()
    const rule: GatewayRule = { name: 'many', tool: 'pay', above: { count: 2, per: '10h' }, do: 'ask', by: 'operator' }
    const [one, other] = await two(bank, { rules: [rule] })
    expect((await one?.callTool('pay', { to: 'a' }))?.text).toBe('pay 1')
    expect((await other?.callTool('pay', { to: 'b' }))?.text).toBe('pay 2')
    expect((await one?.callTool('pay', { to: 'c' }))?.problem?.code).toBe('CONFIRMATION_REQUIRED')
  })

  it('spend one budget of a client, and not more than there is of it', async () => {
    const bank = upstreamOf()
    const clients = await two(bank, {
      rules: [{ name: 'price', tool: 'pay', cost: { units: 2 } }],
      clients: { local: { budget: { units: 21, per: '24h' } } },
    })
    const calls = clients.flatMap(client => Array.from({ length: 15 }, (_, i) => client.callTool('pay', { to: `${i}` })))
    expect(refused(await Promise.all(calls))).toEqual({ ok: 10, QUOTA_EXHAUSTED: 20 })
    expect(bank.ran).toHaveLength(10)
  })
})

it('a gateway alone asks about what goes beyond a rate, and not about the last call within it', async () => {
  const bank = upstreamOf()
  const rule: GatewayRule = { name: 'many', tool: 'pay', above: { count: 1, per: '10h' }, do: 'ask', by: 'operator' }
  const client = await clientOf(await gatewayBefore({ bank }, { rules: [rule] }))
  expect((await client.callTool('pay', {})).text).toBe('pay 1')
  expect((await client.callTool('pay', {})).problem?.code).toBe('CONFIRMATION_REQUIRED')
})
