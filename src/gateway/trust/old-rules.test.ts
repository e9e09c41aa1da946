import { describe, expect, it } from 'vitest'
import { gatewayBefore, upstreamOf } from '../../../test/gateway/world.ts'
import { createPolicy } from '../../policy/policy.ts'
import { modernRule, readTargetRule, type WrittenRule } from '../../policy/rules/call-policy.ts'
import type { Rule } from '../../policy/rules/rule.ts'
import { fakeClock } from '../../testing/clock.ts'

const old: WrittenRule[] = [
  { name: 'etc', upstream: 'bank', tool: 'read', args: { path: '/etc/*' }, do: 'deny' },
  { name: 'ask', tool: 'pay', client: 'ci', do: 'ask', by: 'either', wait: '1s' },
  { name: 'often', tool: 'pay', above: { count: 2, per: '1m', by: 'all' }, do: 'deny' },
]

describe('a rule in the old form of gateways', () => {
  it('is the same rule with its conditions in when', () => {
    expect(old.map(modernRule)).toEqual([
      { name: 'etc', when: { server: 'bank', tool: 'read', arguments: { path: '/etc/*' } }, do: 'deny' },
      { name: 'ask', when: { tool: 'pay', client: 'ci' }, do: 'ask', approver: 'either', wait: '1s' },
      { name: 'often', when: { tool: 'pay', above: { count: 2, per: '1m', by: 'server' } }, do: 'deny' },
    ])
  })

  it('decides as before, and the log says once how to write it now', async () => {
    const traced: unknown[] = []
    const onTrace = (event: string, detail: unknown): void => void (event === 'rules-deprecated' && traced.push(detail))
    const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules: old, onTrace })
    const path = (path: string) => gateway.explain({ upstream: 'bank', tool: 'read', args: { path } })
    expect([path('/etc/hosts').do, path('/etc/hosts').rule, path('/srv/x').do]).toEqual(['deny', 'etc', 'allow'])
    expect(traced.map(String)).toEqual([
      expect.stringMatching(/etc, ask, often.*into when \(upstream becomes server, args becomes arguments\)/),
    ])
  })

  it.each([
    [{ name: 'a', upstream: 'bank', when: { tool: 'x' }, do: 'deny' }, 'upstream must be inside when, where it is called server'],
    [{ name: 'a', tool: 'pay', when: { server: 'x' }, do: 'deny' }, 'tool must be inside when'],
    [{ name: 'a', when: { tool: 'x' }, do: 'ask', by: 'client' }, 'by: client is the old form. Use approver: client'],
    [{ name: 'a', when: { upstream: 'x' }, do: 'deny' }, 'upstream is not known. Use server instead'],
    [{ name: 'a', when: { args: { id: 'x' } }, do: 'deny' }, 'args is not known. Use arguments instead'],
  ])('is refused with its correction where it is mixed with the new one: %j', (rule, message) => {
    expect(() => readTargetRule(rule as unknown as WrittenRule)).toThrow(new TypeError(message))
  })
})

it('the same rules decide alike about calls in a host and in a gateway', async () => {
  const rules: Rule[] = [
    { name: 'no-etc', when: { server: 'bank', tool: 're*', arguments: { path: '/etc/*' } }, do: 'deny' },
    { name: 'srv', when: { kind: 'tool', tool: 'read', arguments: { path: '/srv/*' } }, do: 'allow' },
    { name: 'careful', when: { kind: 'tool' }, do: 'ask', approver: 'operator' },
    { name: 'nights', when: { kind: 'tool', tool: 'pay' }, do: 'hold', for: '1h' },
  ]
  const clock = fakeClock(Date.parse('2026-01-10T12:00:00Z'))
  const host = await createPolicy({ rules: { rules }, clock, id: () => 'a1' })
  const gateway = await gatewayBefore({ bank: upstreamOf() }, { rules })
  const calls = [
    ['read', { path: '/etc/hosts' }, 'no-etc'],
    ['read', { path: ['/srv/a', '/tmp/../etc/hosts'] }, 'no-etc'],
    ['read', { path: '/srv/a' }, 'srv'],
    ['read', { path: ['/srv/a', '/home/b'] }, 'careful'],
    ['pay', {}, 'nights'],
  ] as const
  for (const [tool, args, rule] of calls) {
    const { verdict } = host.explain({ kind: 'tool', server: 'bank', tool, payload: args })
    expect('why' in verdict ? verdict.why.rule : verdict.rule).toBe(rule)
    expect(gateway.explain({ upstream: 'bank', tool, args }).rule).toBe(rule)
  }
  host.close()
})
