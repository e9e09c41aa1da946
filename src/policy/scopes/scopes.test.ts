import { describe, expect, it } from 'vitest'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import type { ApprovalAnswer, ApprovalQuestion } from '../approvals/question.ts'
import { createPolicy, type PolicyOptions } from '../policy.ts'
import type { Asked, PolicyRules } from '../rules/rule.ts'
import { elevate } from './elevate.ts'

const rules: PolicyRules = {
  servers: {
    files: {
      enable: ['*'],
      scopes: {
        'files.edit': { whitelist: ['/project/**'], blacklist: ['**/.env', '/project/private/**'] },
        'files.plain': { whitelist: ['/project/**'] },
      },
    },
  },
}
const set = (more: Partial<FeatureSetFacts>): FeatureSetFacts => ({ description: 'd', uses: ['tools'], ...more })
const declared = new Map([
  ['files.edit', set({ scoped: true })],
  ['files.plain', set({})],
  ['files.free', set({ scoped: true })],
])

async function opened(options: PolicyOptions = {}) {
  const questions: ApprovalQuestion[] = []
  const onApproval: PolicyOptions['onApproval'] = (question, context) => {
    questions.push(question)
    return options.onApproval?.(question, context) ?? false
  }
  const policy = await createPolicy({ rules, ...options, onApproval })
  policy.select('files', declared)
  const ask = (label: string, featureSet = 'files.edit', payload?: Record<string, unknown>) =>
    elevate(policy, 'files', { featureSet, scope: { label, ...(payload && { payload }) } })
  const call = (payload: unknown, more: Partial<Asked> = {}) =>
    policy.decide({ kind: 'tool', server: 'files', featureSet: 'files.edit', tool: 'edit_file', payload, ...more })
  return { policy, questions, ask, call }
}

describe('elevation', () => {
  it('L7.2-1: lists of a set are globs, by set or by a pattern of sets', async () => {
    const { ask } = await opened()
    expect(await ask('/project/src/main.ts')).toEqual({ approved: true })
    expect((await ask('/projects/x')).approved).toBe(false)
    const wide = { servers: { '*': { scopes: { 'files.*': { whitelist: ['/w/*'] } } } } }
    const other = await opened({ rules: wide })
    expect([(await other.ask('/w/a')).approved, (await other.ask('/w/a/b')).approved]).toEqual([true, false])
  })

  it('L7.5-1: the payload comes back on approval, a reason on denial', async () => {
    const { ask } = await opened()
    const payload = { path: '/project/a.ts', mode: 'append' }
    expect(await ask('/project/a.ts', 'files.edit', payload)).toEqual({ approved: true, payload })
    const denied = await ask('/project/.env')
    expect(denied).toMatchObject({
      approved: false,
      reason: expect.stringContaining('blacklist'),
      data: { code: 'SCOPE_FORBIDDEN' },
    })
    expect(denied).not.toHaveProperty('payload')
  })

  it('L7.6-1: blacklist denies, whitelist approves, and only the rest is asked about; blacklist beats whitelist', async () => {
    const { ask, questions } = await opened({ onApproval: () => true })
    expect([(await ask('/project/private/x')).approved, (await ask('/project/x')).approved]).toEqual([false, true])
    expect(questions).toEqual([])
    expect((await ask('/etc/hosts')).approved).toBe(true)
    expect(questions).toMatchObject([{ about: 'scope', asked: { scope: { label: '/etc/hosts' } } }])
  })

  it('L7.6-3: in a set that is not scoped nothing is approved by itself, also not by a whitelist or a rule', async () => {
    const { ask, questions, policy } = await opened()
    expect((await ask('/project/x', 'files.plain')).approved).toBe(false)
    await policy.update({ ...rules, rules: [{ name: 'all', do: 'allow' }] })
    expect((await ask('/project/x', 'files.plain')).approved).toBe(false)
    expect(questions).toHaveLength(2)
    expect((await ask('/anywhere', 'files.free')).approved).toBe(true)
  })

  it('a label inside and a payload outside is asked about, and both are shown', async () => {
    const { ask, questions } = await opened()
    expect((await ask('/project/x', 'files.edit', { path: '/etc/hosts' })).approved).toBe(false)
    expect(questions[0]?.text).toContain('/project/x')
    expect(questions[0]?.text).toContain('/etc/hosts')
    expect(questions[0]?.asked.scope?.payload).toEqual({ path: '/etc/hosts' })
  })

  it('an unusual spelling is asked about even where a rule allows everything, with what is unusual', async () => {
    const { ask, questions, policy } = await opened()
    await policy.update({ ...rules, rules: [{ name: 'all', do: 'allow' }] })
    expect([(await ask('/x/y')).approved, (await ask('/x/../y')).approved]).toEqual([true, false])
    expect(questions).toMatchObject([{ flaw: expect.stringContaining('dots') }])
  })

  it('a rule that denies beats the whitelist', async () => {
    const { ask, policy } = await opened()
    await policy.update({ ...rules, rules: [{ name: 'frozen', do: 'deny', when: { kind: 'scope' } }] })
    expect(await ask('/project/x')).toMatchObject({ approved: false, data: { rule: 'frozen' } })
  })
})

describe('a tool call', () => {
  const scope = (label: string): Scope => ({ label })

  it('L7.7-1: in a scoped set the label is checked before it runs', async () => {
    const { call } = await opened()
    expect((await call({}, { scope: scope('/project/x') })).do).toBe('allow')
    expect((await call({}, { scope: scope('/project/.env') })).do).toBe('deny')
    expect((await call({}, { scope: scope('/etc/x') })).do).toBe('ask')
    expect(await call({})).toMatchObject({ do: 'ask', question: expect.stringContaining('extractor') })
    expect((await call({}, { featureSet: 'files.plain' })).do).toBe('allow')
  })

  it('A12: what its arguments say counts, not what the server says of them', async () => {
    const { call } = await opened({ extract: { 'files/edit_*': 'path' } })
    const lie = { scope: scope('/project/ok') }
    expect((await call({ path: '/project/x' }, { scope: scope('/etc') })).do).toBe('allow')
    expect((await call({ path: '/etc/hosts' }, lie)).do).toBe('ask')
    expect((await call({ path: '/project/.env' }, lie)).do).toBe('deny')
    expect((await call({ path: 7 }, lie)).do).toBe('ask')
    expect((await call({}, lie)).do).toBe('ask')
  })

  it('A12: all that it acts on has to be allowed', async () => {
    const { call } = await opened({
      extract: {
        'files/edit_file': ['from', 'to'],
        'files/batch': args => [{ label: String(args['one']) }, { label: '/project/b' }],
      },
    })
    expect((await call({ from: '/project/a', to: '/project/b' })).do).toBe('allow')
    expect((await call({ from: '/project/a', to: '/etc/b' })).do).toBe('ask')
    expect((await call({ from: '/project/a', to: ['/project/b', '/project/.env'] })).do).toBe('deny')
    expect((await call({ one: '/tmp/x' }, { tool: 'batch' })).do).toBe('ask')
  })

  it('a plain yes counts for the call alone, one to all on the scope counts for the elevation too', async () => {
    const answers: ApprovalAnswer[] = [true, { yes: true, covers: 'scope' }]
    const { call, ask, policy, questions } = await opened({
      extract: { 'files/edit_file': 'path' },
      onApproval: () => answers.shift() ?? false,
    })
    const verdict = await call({ path: '/etc/hosts' })
    if (verdict.do !== 'ask') throw new Error(verdict.do)
    const asked: Asked = {
      kind: 'tool',
      server: 'files',
      featureSet: 'files.edit',
      tool: 'edit_file',
      payload: { path: '/etc/hosts' },
    }
    expect(await policy.approve(asked, verdict)).toEqual({ yes: true, rule: expect.stringMatching(/^approval /) })
    expect((await call({ path: '/etc/hosts' })).do).toBe('allow')
    const elevation = () => ask('/etc/hosts', 'files.edit', { path: '/etc/hosts' })
    expect([await elevation(), await elevation()]).toMatchObject([{ approved: true }, { approved: true }])
    expect(questions).toHaveLength(2)
  })

  it('that a rule wants asked about is approved with exactly its arguments', async () => {
    const { call, policy } = await opened({
      onApproval: () => true,
      rules: { rules: [{ name: 'careful', do: 'ask', when: { tool: 'drop' } }] },
    })
    const drop = (table: string) => call({ table }, { tool: 'drop', featureSet: 'files.plain' })
    const verdict = await drop('a')
    if (verdict.do !== 'ask') throw new Error(verdict.do)
    await policy.approve(
      { kind: 'tool', server: 'files', featureSet: 'files.plain', tool: 'drop', payload: { table: 'a' } },
      verdict,
    )
    expect([(await drop('a')).do, (await drop('b')).do]).toEqual(['allow', 'ask'])
  })
})
