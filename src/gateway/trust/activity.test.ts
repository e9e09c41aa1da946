/** What the operator learns of who calls: entries as they are made, clients, budgets, and whose answer counted. */
import { describe, expect, it } from 'vitest'
import { clientOf, gatewayBefore, upstreamOf } from '../../../test/gateway/world.ts'
import { memoryStore } from '../../stores/memory.ts'
import type { GatewayOptions } from '../gateway.ts'

type Entry = Parameters<NonNullable<GatewayOptions['onAuditEntry']>>[0]

const deny = { name: 'no-etc', tool: 'pay', args: { to: 'mallory' }, do: 'deny' } as const

describe('onAuditEntry', () => {
  it.each([true, false])('tells calls with their time, and refusals with their rule, with audit: %s', async audit => {
    const entries: Entry[] = []
    const options = { audit, rules: [deny], onAuditEntry: (entry: Entry) => void entries.push(entry) }
    const client = await clientOf(await gatewayBefore({ bank: upstreamOf() }, options))
    await client.callTool('pay', { to: 'alice', password: 'hunter2hunter2' })
    await client.callTool('pay', { to: 'mallory' })
    expect(entries).toMatchObject([
      {
        event: 'call_ended',
        target: 'pay',
        outcome: 'success',
        more: { client: 'local', server: 'bank', ms: expect.any(Number) },
      },
      { event: 'call_ended', outcome: 'refused', more: { client: 'local', rule: 'no-etc', code: 'PERMISSION_DENIED' } },
    ])
    expect(JSON.stringify(entries)).not.toContain('hunter2')
  })

  it('does no harm to the call where it throws', async () => {
    const traced: string[] = []
    const onAuditEntry = (): void => {
      throw new Error('broken listener')
    }
    const options = { onAuditEntry, onTrace: (event: string) => void traced.push(event) }
    const client = await clientOf(await gatewayBefore({ bank: upstreamOf() }, options))
    expect((await client.callTool('pay', {})).text).toBe('pay 1')
    expect(traced).toContain('gateway-store')
  })
})

describe('gateway.clients()', () => {
  it('counts calls, failures and refusals of each client, and names what it sees', async () => {
    const clients = { local: { upstreams: ['bank'] }, ci: { tools: ['shop/*'] } }
    const gateway = await gatewayBefore({ bank: upstreamOf(), shop: upstreamOf('shop') }, { rules: [deny], clients })
    const client = await clientOf(gateway)
    await client.callTool('bank_pay', {})
    await client.callTool('bank_bare', {})
    await client.callTool('bank_pay', { to: 'mallory' })
    expect(gateway.clients()).toMatchObject([
      {
        ...{ name: 'local', configured: true, upstreams: ['bank'], calls: 2, failures: 1, refused: 1 },
        refusals: [{ why: 'no-etc', times: 1 }],
      },
      { name: 'ci', configured: true, upstreams: ['shop'], calls: 0, refused: 0, refusals: [] },
    ])
  })

  it('names callers that the settings do not know', async () => {
    const gateway = await gatewayBefore({ bank: upstreamOf() })
    await (await clientOf(gateway)).callTool('pay', {})
    expect(gateway.clients()).toMatchObject([{ name: 'local', configured: false, upstreams: ['bank'], calls: 1 }])
  })
})

describe('gateway.budgets()', () => {
  it('says what each client has used of its budgets, and when they begin again', async () => {
    const clients = { local: { budget: [{ calls: 5, per: '1h' } as const, { units: 9, per: '1d' } as const] } }
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { clients })
    const client = await clientOf(gateway)
    await client.callTool('pay', {})
    await client.callTool('read', {})
    const [calls, units] = await gateway.budgets()
    expect(calls).toMatchObject({ name: 'local.0', client: 'local', unit: 'calls', used: 2, most: 5, perMs: 3_600_000 })
    expect(calls?.resetsAt).toBeGreaterThan(Date.now())
    expect(units).toMatchObject({ name: 'local.1', unit: 'units', most: 9, perMs: 86_400_000 })
  })
})

describe('an approval of a gateway', () => {
  const ask = { name: 'careful', tool: 'pay', do: 'ask', by: 'operator' } as const

  it('is given with long arguments whole, where the list leaves them out', async () => {
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules: [ask] })
    const note = 'x'.repeat(20_000)
    await (await clientOf(gateway)).callTool('pay', { note })
    const [listed] = await gateway.approvals()
    expect(listed).not.toHaveProperty('arguments')
    expect(await gateway.approval(listed?.id ?? '')).toMatchObject({ kind: 'call', arguments: { note } })
    expect(await gateway.approval('nothing')).toBeUndefined()
  })

  it('is answered once: whoever comes second learns by whom, and the log says why', async () => {
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules: [ask] })
    await (await clientOf(gateway)).callTool('pay', {})
    const id = (await gateway.approvals())[0]?.id ?? ''
    const [yes, no] = await Promise.all([gateway.approve(id, 'ann', 'ordered'), gateway.refuse(id, 'bob', 'too dear')])
    expect([yes, no].filter(Boolean)).toHaveLength(1)
    expect(await gateway.answered(id)).toMatchObject(yes ? { yes: true, by: 'ann' } : { yes: false, by: 'bob' })
    const { items } = await gateway.audit.search({ by: yes ? 'ann' : 'bob' })
    expect(items).toMatchObject([{ more: { by: yes ? 'ann' : 'bob', approval: id, reason: yes ? 'ordered' : 'too dear' } }])
  })

  it('of a changed tool is answered once as well, by gateways that share a store', async () => {
    const store = memoryStore()
    const bank = upstreamOf()
    const [one, other] = [await gatewayBefore({ bank }, { store }), await gatewayBefore({ bank }, { store })]
    bank.server.tool('extra', {}, () => 'new')
    await expect.poll(async () => (await other.approvals()).length).toBe(1)
    await expect.poll(async () => (await one.approvals()).length).toBe(1)
    const id = (await one.approvals())[0]?.id ?? ''
    const answers = await Promise.all([one.approve(id, 'ann'), other.refuse(id, 'bob')])
    expect(answers.filter(Boolean)).toHaveLength(1)
    expect(await other.answered(id)).toMatchObject({ yes: answers[0], by: answers[0] ? 'ann' : 'bob' })
    expect([await one.refuse(id), await other.approve(id)]).toEqual([false, false])
  })

  it('is announced to whoever watches the queue', async () => {
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules: [ask] })
    const end = new AbortController()
    const news = gateway.approvalChanges(end.signal)[Symbol.asyncIterator]()
    const first = news.next()
    await (await clientOf(gateway)).callTool('pay', {})
    expect((await first).done).toBe(false)
    end.abort()
  })
})
