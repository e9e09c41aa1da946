import { describe, expect, it, onTestFinished } from 'vitest'
import { clientOf, gatewayBefore, toolNames, upstreamOf } from '../../../test/gateway/world.ts'
import { connect } from '../../client/index.ts'
import type { GatewayRule } from '../../policy/rules/call-policy.ts'
import type { GatewayOptions } from '../gateway.ts'

const tokens = { ci: 'a-token-of-the-ci-0123456789', ops: 'a-token-of-operations-0123456' }
const rules: readonly GatewayRule[] = [
  { name: 'nobody', tool: 'bare', do: 'deny' },
  { name: 'ops-only', tool: 'pay', client: 'ci', do: 'deny', fix: 'Ask operations' },
]

/** The tools that each of two clients sees over HTTP. */
async function seenBy(options: GatewayOptions) {
  const bank = upstreamOf()
  const gateway = await gatewayBefore({ bank }, { auth: { tokens }, clients: { ci: {}, ops: {} }, ...options })
  const { url } = await gateway.listen()
  const clients = await Promise.all(
    [tokens.ci, tokens.ops].map(token => connect(url, { headers: { authorization: `Bearer ${token}` } })),
  )
  for (const client of clients) onTestFinished(() => client.close())
  const lists = async () => Promise.all(clients.map(toolNames))
  return { gateway, bank, clients, lists }
}

describe('a tool that a rule refuses', () => {
  it('always is not listed to whom it is refused, and refused by name when it is called', async () => {
    const { gateway, bank, clients, lists } = await seenBy({ rules, pins: 'off' })
    expect(await lists()).toEqual([['read'], ['pay', 'read']])
    // Out of what was kept of the list.
    expect(await lists()).toEqual([['read'], ['pay', 'read']])
    const refused = await clients[0]?.callTool('pay', { to: 'a' })
    expect(refused?.problem).toMatchObject({
      code: 'PERMISSION_DENIED',
      suggestion: 'Ask operations',
      details: { rule: 'ops-only' },
    })
    expect((await clients[1]?.callTool('pay', { to: 'a' }))?.text).toBe('pay 1')
    expect(gateway.explain({ upstream: 'bank', tool: 'pay', client: 'ci' })).toMatchObject({ do: 'deny', listed: false })
    expect(gateway.explain({ upstream: 'bank', tool: 'pay', client: 'ops' })).not.toHaveProperty('listed')
    bank.server.tool('news', {}, () => 'news')
    await expect.poll(lists).toEqual([
      ['news', 'read'],
      ['news', 'pay', 'read'],
    ])
  })

  it('comes and goes with the rules, and clients hear of it', async () => {
    const bank = upstreamOf()
    const gateway = await gatewayBefore({ bank }, {})
    const changed = (options: GatewayOptions) => gateway.reload({ servers: { bank: bank.target }, ...options })
    const client = await clientOf(gateway)
    expect(await toolNames(client)).toEqual(['bare', 'pay', 'read'])
    const changes = client.changes('tools')
    const heard = changes.next()
    await toolNames(client)
    await changed({ rules: [{ name: 'no-pay', tool: 'pay', do: 'deny' }] })
    expect((await heard).done).toBe(false)
    expect(await toolNames(client)).toEqual(['bare', 'read'])
    expect((await client.callTool('pay', {})).problem?.details).toMatchObject({ rule: 'no-pay' })
    await changed({ otherwise: 'deny' })
    expect(await toolNames(client)).toEqual([])
    await changed({ otherwise: 'deny', listed: 'all' })
    expect(await toolNames(client)).toEqual(['bare', 'pay', 'read'])
    await changes.return()
  })

  it('is listed all the same where the settings say so', async () => {
    const { lists } = await seenBy({ rules, listed: 'all' })
    const all = ['bare', 'pay', 'read']
    expect(await lists()).toEqual([all, all])
  })

  it('for some arguments, at some hours or beyond a rate is listed', async () => {
    const gateway = await gatewayBefore(
      { bank: upstreamOf() },
      {
        rules: [
          { name: 'args', tool: 'pay', args: { to: 'x' }, do: 'deny' },
          { name: 'hours', tool: 'read', hours: { from: '00:00', to: '23:59', zone: 'UTC' }, do: 'deny' },
          { name: 'rate', tool: 'bare', above: { count: 1, per: '1h' }, do: 'deny' },
        ],
      },
    )
    expect(await toolNames(await clientOf(gateway))).toEqual(['bare', 'pay', 'read'])
  })

  it('is what no rule allows, where all else is refused', async () => {
    const allow: readonly GatewayRule[] = [
      { name: 'read', tool: 'read', do: 'allow' },
      { name: 'friends', tool: 'pay', args: { to: 'alice' }, client: 'ops', do: 'ask' },
    ]
    const { lists } = await seenBy({ rules: allow, otherwise: 'deny' })
    expect(await lists()).toEqual([['read'], ['pay', 'read']])
  })
})

it('a tool whose scopes a token lacks is not listed', async () => {
  const { lists } = await seenBy({ rules: [{ name: 'scoped', tool: 'pay', scopes: ['pay:write'] }] })
  const seen = ['bare', 'read']
  expect(await lists()).toEqual([seen, seen])
})

it('what somebody does not see he is not told of by a wire that names what has changed', async () => {
  const bank = upstreamOf()
  const gateway = await gatewayBefore({ bank }, { rules: [{ name: 'no', tool: 'secret*', do: 'deny' }], pins: 'off' })
  const frames: string[] = []
  const client = await clientOf(gateway, { revision: 's3', onFrame: ({ text }) => frames.push(text) })
  await toolNames(client)
  bank.server.tool('secret_plan', {}, () => 'no')
  bank.server.tool('open_plan', {}, () => 'yes')
  await expect.poll(() => frames.some(text => text.includes('open_plan'))).toBe(true)
  expect(frames.filter(text => text.includes('secret_plan'))).toEqual([])
})

it('who does not see a server hears of none of its events, and not that there are any', async () => {
  const [bank, mail] = [upstreamOf('bank'), upstreamOf('mail')]
  const gateway = await gatewayBefore({ bank, mail }, { clients: { local: { upstreams: 'bank' } }, events: true })
  const client = await clientOf(gateway)
  await expect(client.events(['mail/list_changed']).next()).rejects.toThrow('There is no event "mail/list_changed"')
  const heard: string[] = []
  const events = client.events(['bank/list_changed', 'mail/list_changed'])
  await events.ready
  void (async () => {
    for await (const { event } of events) heard.push(event)
  })().catch(() => {})
  mail.server.tool('more', {}, () => '')
  bank.server.tool('more', {}, () => '')
  await expect.poll(() => heard).toEqual(['bank/list_changed'])
})

it('a rule that asks for scopes, or names a price, for some calls only is a mistake', async () => {
  const some: Partial<GatewayRule>[] = [{ scopes: ['a'] }, { cost: { units: 1 } }, { timeout: '1s' }, { idempotent: true }]
  for (const more of some)
    await expect(gatewayBefore({}, { rules: [{ name: 'x', tool: 'pay', client: 'ci', ...more }] })).rejects.toThrow(
      'applies to all calls of a tool',
    )
})
