/** Whoever calls does not answer the question that its call raises: the operator does, unless a rule says in words that the client may. */
import { describe, expect, it } from 'vitest'
import type { ConnectOptions } from '../../src/client/index.ts'
import type { GatewayOptions } from '../../src/gateway/index.ts'
import type { GatewayRule } from '../../src/policy/rules/call-policy.ts'
import { clientOf, gatewayBefore, upstreamOf } from '../gateway/world.ts'
import { httpPeer } from '../spec/http.ts'
import { bearerOf, clientAt, everyone, guardedGateway } from './guarded-gateway.ts'

const money: GatewayRule = { name: 'money', tool: 'pay', do: 'ask' }
const extension = 'dev.vivarium/confirmation'

/** Says yes to whatever it is asked, in every way there is. */
const yes: ConnectOptions = {
  onConfirm: () => true,
  onElicit: ({ mode }) => (mode === 'form' ? { action: 'accept', content: { confirm: true } } : { action: 'accept' }),
}

async function asked(options: GatewayOptions, client: ConnectOptions = yes) {
  const bank = upstreamOf()
  const gateway = await gatewayBefore({ bank }, options)
  return { bank, gateway, client: await clientOf(gateway, client) }
}

describe('a rule that asks, and does not say whom', () => {
  it.each(['2025-06-18', '2025-11-25', '2026-07-28'] as const)(
    'is not answered by the client that calls (%s)',
    async revision => {
      const { bank, gateway, client } = await asked({ rules: [money] }, { ...yes, revisions: [revision] })
      expect((await client.callTool('pay', { to: 'eve' })).problem?.code).toBe('CONFIRMATION_REQUIRED')
      expect([bank.ran, (await gateway.approvals()).length]).toEqual([[], 1])
    },
  )

  it('is not answered by a client that only declares that it knows confirmations', async () => {
    const { gateway, url, bank } = await guardedGateway({ ...everyone, rules: [money] })
    const peer = await httpPeer(url, '2026-07-28', { extensions: { [extension]: {} } }, bearerOf('ann'))
    const call = { name: 'pay', arguments: { to: 'eve' } }
    const first = await peer.ask('tools/call', call)
    const offered = (first.frame['result'] as { _meta?: Record<string, { confirmation_token?: string }> })._meta?.[extension]
    const meta = { [extension]: { confirmation_token: offered?.confirmation_token ?? 'made-up', user_confirmed: true } }
    await peer.ask('tools/call', { ...call, _meta: meta })
    expect([offered, bank.ran, (await gateway.approvals()).length]).toEqual([undefined, [], 1])
  })

  it('is not what `otherwise: ask` is without any rule', async () => {
    const { bank, client } = await asked({ otherwise: 'ask' })
    expect((await client.callTool('pay', {})).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect(bank.ran).toEqual([])
  })

  it('is not answered as the input of a task', async () => {
    const { bank, client } = await asked({ rules: [money] }, { ...yes, revisions: ['2025-11-25'] })
    const ended = await client.callTool('pay', {}, { task: true } as never).catch(error => error)
    expect(String(ended?.problem?.code ?? ended)).toContain('CONFIRMATION_REQUIRED')
    expect(bank.ran).toEqual([])
  })

  it('is answered by the operator, for that caller and once', async () => {
    const { bank, gateway, client } = await asked({ rules: [money] })
    await client.callTool('pay', { to: 'eve' })
    const [waiting] = await gateway.approvals()
    expect(await gateway.approve(waiting?.id ?? '', 'ops')).toBe(true)
    expect((await client.callTool('pay', { to: 'eve' })).text).toBe('pay 1')
    expect((await client.callTool('pay', { to: 'eve' })).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect(bank.ran).toHaveLength(1)
  })
})

describe('a yes', () => {
  it('that one client has got is not used by another one that repeats the call, under the same key', async () => {
    const { gateway, url, bank } = await guardedGateway({ ...everyone, rules: [money] })
    const [ann, bob] = [await clientAt(url, 'ann', yes), await clientAt(url, 'bob', yes)]
    const options = { idempotencyKey: 'the-same-key' }
    await ann.callTool('pay', { to: 'eve' }, options)
    const [waiting] = await gateway.approvals()
    await gateway.approve(waiting?.id ?? '')
    expect((await bob.callTool('pay', { to: 'eve' }, options)).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect((await ann.callTool('pay', { to: 'eve' }, options)).text).toBe('pay 1')
    // Nor is what came of it shown to the other one.
    expect((await bob.callTool('pay', { to: 'eve' }, options)).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect(bank.ran).toHaveLength(1)
  })

  it('that a client could give before a reload is none after it', async () => {
    const { gateway, url, bank, reload } = await guardedGateway({ ...everyone, rules: [{ ...money, by: 'client' }] })
    const peer = await httpPeer(url, '2026-07-28', { extensions: { [extension]: {} } }, bearerOf('ann'))
    const call = { name: 'pay', arguments: { to: 'eve' } }
    const { frame } = await peer.ask('tools/call', call)
    const offered = (frame['result'] as { _meta: Record<string, { confirmation_token: string }> })._meta[extension]
    await reload({ ...everyone, rules: [money] })
    const meta = { [extension]: { confirmation_token: offered?.confirmation_token, user_confirmed: true } }
    await peer.ask('tools/call', { ...call, _meta: meta })
    expect([bank.ran, (await gateway.approvals()).length]).toEqual([[], 1])
  })

  it('is the client’s to give where the rule says so in words', async () => {
    for (const by of ['client', 'either'] as const) {
      const { bank, client } = await asked({ rules: [{ ...money, by }] })
      expect((await client.callTool('pay', {})).text).toBe('pay 1')
      expect(bank.ran).toHaveLength(1)
    }
  })
})
