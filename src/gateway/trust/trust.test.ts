import { describe, expect, it } from 'vitest'
import { clientOf, gatewayBefore, toolNames, upstreamOf } from '../../../test/gateway/world.ts'
import type { GatewayRule } from '../../policy/rules/call-policy.ts'
import type { GatewayOptions } from '../gateway.ts'

describe('rules', () => {
  const noEtc: GatewayRule = {
    name: 'no-etc',
    upstream: 'bank',
    tool: 'pay',
    args: { to: 'mallory*' },
    do: 'deny',
    fix: 'Pay another',
  }

  it('refuse a call by its arguments, and say which rule and what to do', async () => {
    const bank = upstreamOf()
    const client = await clientOf(await gatewayBefore({ bank }, { rules: [noEtc] }))
    const refused = await client.callTool('pay', { to: 'mallory-1' })
    expect(refused.problem).toMatchObject({ code: 'PERMISSION_DENIED', suggestion: 'Pay another', details: { rule: 'no-etc' } })
    expect((await client.callTool('pay', { to: 'alice' })).text).toBe('pay 1')
    expect(bank.ran).toEqual([['pay', { to: 'alice' }]])
  })

  it('see into lists: one forbidden member is enough to refuse, and all must be allowed to allow', async () => {
    const bank = upstreamOf()
    const allow: GatewayRule = { name: 'friends', tool: 'pay', args: { to: ['alice', 'bob'] }, do: 'allow' }
    const closed = await clientOf(await gatewayBefore({ bank }, { rules: [allow], otherwise: 'deny' }))
    expect((await closed.callTool('pay', { to: ['alice', 'mallory'] })).problem?.code).toBe('PERMISSION_DENIED')
    expect((await closed.callTool('pay', { to: ['alice', 'bob'] })).isError).toBe(false)
    const open = await clientOf(await gatewayBefore({ bank }, { rules: [noEtc] }))
    expect((await open.callTool('pay', { to: ['alice', 'mallory'] })).problem?.code).toBe('PERMISSION_DENIED')
  })

  it('count calls: what goes beyond a rate is told when to come back', async () => {
    const rule: GatewayRule = { name: 'slow', tool: 'pay', above: { count: 2, per: '1h' }, do: 'deny' }
    const bank = upstreamOf()
    const client = await clientOf(await gatewayBefore({ bank }, { rules: [rule] }))
    for (const to of ['a', 'b']) expect((await client.callTool('pay', { to })).isError).toBe(false)
    const third = await client.callTool('pay', { to: 'c' })
    expect(third.problem).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED' })
    expect(third.problem?.retryAfter).toBeGreaterThan(0)
    expect(bank.ran).toHaveLength(2)
  })

  it('are explained without a call', async () => {
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules: [noEtc, { name: 'once', tool: 'pay', dedupe: '30s' }] })
    expect(gateway.explain({ upstream: 'bank', tool: 'pay', args: { to: 'mallory' } })).toEqual({
      do: 'deny',
      rule: 'no-etc',
      about: ['no-etc', 'once'],
      message: 'Rule no-etc denies pay of bank. Pay another',
      dedupe: '30s',
    })
    expect(gateway.explain({ upstream: 'bank', tool: 'read' })).toEqual({ do: 'allow', rule: 'otherwise', about: [] })
  })

  it.each([
    [{ rules: [{ name: 'x', tol: 'pay', do: 'deny' }] }, 'rules[0]: tol is not known'],
    [{ rules: [{ name: 'x', do: 'refuse' }] }, 'do must be allow, deny, ask, hold or coalesce, not refuse'],
    [{ rules: [{ name: 'x', tool: 'pay' }] }, 'the rule has no effect'],
    [
      {
        rules: [
          { name: 'x', do: 'deny' },
          { name: 'x', do: 'ask' },
        ],
      },
      'Give each rule its own name',
    ],
    [{ rules: [{ tool: 'pay', do: 'deny' }] }, 'rules[0]: A rule has no name'],
    [{ pins: 'on' }, 'pins cannot be on. Use one of block, warn, off'],
    [{ clients: { ci: { tool: '*' } } }, 'clients.ci.tool: "tool" is not a known setting'],
    [{ clients: { ci: { budget: { per: '1h' } } } }, 'either units or calls'],
    [{ auth: { tokens: { ci: 'short' } } }, 'at least 16 characters'],
    [{ auth: { issuer: 'http://example.com' } }, 'give an https URL'],
  ])('that are mistaken keep the gateway from starting: %j', async (options, message) => {
    await expect(gatewayBefore({}, options as never)).rejects.toThrow(message)
  })
})

describe('what a rule asks about', () => {
  const ask: GatewayRule = { name: 'careful', tool: 'pay', do: 'ask', message: 'Pay {to}?', by: 'operator' }

  it('shows the arguments of the call where the rule has no words of its own', async () => {
    const gateway = await gatewayBefore(
      { bank: upstreamOf() },
      { rules: [{ name: 'ask', tool: 'pay', do: 'ask', by: 'operator' }] },
    )
    const client = await clientOf(gateway)
    await client.callTool('pay', { to: 'Ada', sum: 3 })
    const [waits] = await gateway.approvals()
    expect(waits?.message).toContain('Allow the call with to: Ada, sum: 3?')
  })

  it('waits for whoever runs the gateway, who approves exactly that call once', async () => {
    const bank = upstreamOf()
    const gateway = await gatewayBefore({ bank }, { rules: [ask] })
    const client = await clientOf(gateway)
    expect((await client.callTool('pay', { to: 'a' })).problem?.code).toBe('CONFIRMATION_REQUIRED')
    const [waits] = await gateway.approvals()
    expect(waits).toMatchObject({ kind: 'call', tool: 'pay', arguments: { to: 'a' } })
    expect(waits?.message).toContain('Pay a?')
    expect(await gateway.approve(waits?.id ?? '')).toBe(true)
    expect((await client.callTool('pay', { to: 'b' })).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect((await client.callTool('pay', { to: 'a' })).text).toBe('pay 1')
    expect((await client.callTool('pay', { to: 'a' })).problem?.code).toBe('CONFIRMATION_REQUIRED')
    expect(bank.ran).toHaveLength(1)
  })

  it('goes on by itself where calls wait, and ends where it is refused', async () => {
    const bank = upstreamOf()
    const gateway = await gatewayBefore({ bank }, { rules: [ask], approvals: { wait: '30s' } })
    const client = await clientOf(gateway)
    const [first, second] = [client.callTool('pay', { to: 'a' }), client.callTool('pay', { to: 'b' })]
    await expect.poll(async () => (await gateway.approvals()).length).toBe(2)
    for (const { id, kind, ...each } of await gateway.approvals())
      if (kind === 'call' && 'arguments' in each && each.arguments?.['to'] === 'a') await gateway.approve(id)
      else await gateway.refuse(id)
    expect((await first).text).toBe('pay 1')
    expect((await second).problem?.code).toBe('CONFIRMATION_DECLINED')
  })

  it('is asked of the user of a client that can ask, with the arguments in the question', async () => {
    const bank = upstreamOf()
    const gateway = await gatewayBefore({ bank }, { rules: [{ ...ask, by: 'either' }] })
    const asked: string[] = []
    const client = await clientOf(gateway, {
      onElicit: ({ message }) => {
        asked.push(message)
        return { action: 'accept', content: { confirm: true } }
      },
    })
    expect((await client.callTool('pay', { to: 'a' })).text).toBe('pay 1')
    expect(asked).toEqual(['vivarium-gateway: pay. Pay a?'])
    expect(await gateway.approvals()).toEqual([])
  })

  it('is not what the tools are that no rule is about', async () => {
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules: [ask] })
    expect((await (await clientOf(gateway)).callTool('read', {})).text).toBe('read 1')
  })
})

describe('equal calls', () => {
  it('within the time of a rule are one, but not those of tools that only read', async () => {
    const bank = upstreamOf()
    const client = await clientOf(await gatewayBefore({ bank }, { rules: [{ name: 'once', tool: '*', dedupe: '30s' }] }))
    for (const to of ['a', 'a', 'b']) await client.callTool('pay', { to }, { idempotencyKey: undefined as never })
    for (let i = 0; i < 2; i++) await client.callTool('read', {})
    expect(bank.ran.map(([tool]) => tool)).toEqual(['pay', 'pay', 'read', 'read'])
  })

  it('under the key of a client are one without any rule', async () => {
    const bank = upstreamOf()
    const client = await clientOf(await gatewayBefore({ bank }, { store: 'memory:' }))
    for (let i = 0; i < 2; i++) await client.callTool('pay', { to: 'a' }, { idempotencyKey: 'k1' })
    expect(bank.ran).toHaveLength(1)
  })
})

describe('what clients see', () => {
  it('is what their settings name; the rest is as if it were not there', async () => {
    const [bank, mail] = [upstreamOf('bank'), upstreamOf('mail')]
    const clients = { local: { upstreams: 'bank', tools: ['bank/*', '!bank/pay'] } }
    const client = await clientOf(await gatewayBefore({ bank, mail }, { clients }))
    expect(await toolNames(client)).toEqual(['bank_bare', 'bank_read'])
    await expect(client.callTool('bank_pay', {})).rejects.toThrow('There is no tool "bank_pay"')
    await expect(client.callTool('mail_read', {})).rejects.toThrow('There is no tool "mail_read"')
    await expect(client.readResource('mail+note://1')).rejects.toThrow('There is no resource')
    expect((await client.readResource('bank+note://1')).contents[0]).toMatchObject({ text: 'note of bank' })
    await expect(client.getPrompt('mail_greet')).rejects.toThrow('There is no prompt')
    expect([bank.ran, mail.ran]).toEqual([[], []])
  })

  it('is nothing where the list is empty', async () => {
    const client = await clientOf(await gatewayBefore({ bank: upstreamOf() }, { clients: { local: { tools: [] } } }))
    expect(await toolNames(client)).toEqual([])
  })
})

describe('what calls cost', () => {
  it('is taken from the budget of the client by the price of a rule, and refused beyond it', async () => {
    const bank = upstreamOf()
    const options: GatewayOptions = {
      rules: [{ name: 'price', tool: 'pay', cost: { units: 4, label: 'cent' } }],
      clients: { local: { budget: { units: 10, per: '1h' } } },
    }
    const client = await clientOf(await gatewayBefore({ bank }, options))
    for (const to of ['a', 'b']) expect((await client.callTool('pay', { to })).isError).toBe(false)
    expect((await client.callTool('pay', { to: 'c' })).problem).toMatchObject({ code: 'QUOTA_EXHAUSTED' })
    expect((await client.callTool('read', {})).isError).toBe(false)
    expect(bank.ran).toHaveLength(3)
  })

  it('is what the server advertises and reports, where no rule says it', async () => {
    const bank = upstreamOf()
    bank.server.tool('print', { cost: { category: 'metered', estimatedUnits: 1 } }, (_, ctx) => {
      ctx.cost.add(6)
      return 'printed'
    })
    const client = await clientOf(await gatewayBefore({ bank }, { clients: { local: { budget: { units: 10, per: '1h' } } } }))
    for (let i = 0; i < 2; i++) expect((await client.callTool('print', {})).text).toBe('printed')
    expect((await client.callTool('print', {})).problem).toMatchObject({ code: 'QUOTA_EXHAUSTED' })
  })

  it('is a number of calls, where a client has only so many', async () => {
    const client = await clientOf(
      await gatewayBefore({ bank: upstreamOf() }, { clients: { local: { budget: { calls: 2, per: '1h' } } } }),
    )
    for (let i = 0; i < 2; i++) expect((await client.callTool('read', {})).isError).toBe(false)
    expect((await client.callTool('read', {})).problem).toMatchObject({ code: 'QUOTA_EXHAUSTED' })
  })
})

describe('results', () => {
  it('that only say that they failed say so to programs, with the server', async () => {
    const client = await clientOf(await gatewayBefore({ bank: upstreamOf() }))
    const failed = await client.callTool('bare')
    expect(failed.text).toBe('The account is closed')
    expect(failed.problem).toMatchObject({
      code: 'TOOL_FAILED',
      category: 'permanent',
      details: { upstream: 'bank', tool: 'bare' },
    })
  })

  it('say which tool of which server they are from', async () => {
    const client = await clientOf(await gatewayBefore({ bank: upstreamOf() }))
    const { provenance } = await client.callTool('read', {})
    expect(provenance?.stamp).toMatchObject({ source: 'bank:read', stamp: { server: 'vivarium-gateway', tool: 'read' } })
  })

  it('of a call amid which its server went away are unknown, and stay so under their key', async () => {
    const bank = upstreamOf()
    let calls = 0
    bank.server.tool('crash', {}, async () => {
      calls++
      await bank.server.close()
    })
    const client = await clientOf(await gatewayBefore({ bank }, { store: 'memory:' }))
    const key = { idempotencyKey: 'k' }
    const lost = await client.callTool('crash', {}, key)
    expect(lost.problem).toMatchObject({ code: 'OUTCOME_UNKNOWN', details: { upstream: 'bank' } })
    expect(calls).toBe(1)
  })
})

describe('the audit log', () => {
  it('holds a line for each call and each refusal, chained', async () => {
    const rules: GatewayRule[] = [{ name: 'no', tool: 'pay', do: 'deny' }]
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules })
    const client = await clientOf(gateway)
    await client.callTool('read', {})
    await client.callTool('pay', {})
    await client.callTool('bare', {})
    const lines = await gateway.audit.read()
    expect(lines.map(({ owner, target, outcome, more }) => [owner, target, outcome, more?.['rule'] ?? more?.['client']])).toEqual(
      [
        ['~process', 'read', 'success', 'local'],
        ['~process', 'pay', 'refused', 'no'],
        ['~process', 'bare', 'failure', 'local'],
      ],
    )
    expect(await gateway.audit.verify()).toMatchObject({ ok: true, lines: 3 })
  })
})
