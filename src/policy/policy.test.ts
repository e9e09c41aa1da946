import { describe, expect, it } from 'vitest'
import { storeKinds, storesUnderTest } from '../../test/stores-under-test.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ApprovalQuestion } from './approvals/question.ts'
import { createPolicy, type PolicyOptions } from './policy.ts'
import type { Asked, PolicyRules } from './rules/rule.ts'
import type { Verdict } from './rules/verdict.ts'

const facts = (more: Partial<FeatureSetFacts> = {}): FeatureSetFacts => ({ description: 'd', uses: ['tools'], ...more })
const push: Asked = { kind: 'push', server: 'chat', featureSet: 'chat.messages', origin: { channel: 'c1' } }

function world(rules: PolicyRules, more: Partial<PolicyOptions> = {}) {
  const clock = fakeClock(Date.parse('2026-01-10T12:00:00Z'))
  let ids = 0
  return { clock, open: () => createPolicy({ rules, clock, id: () => `a${++ids}`, ...more }) }
}

const whyOf = (verdict: Verdict) => ('why' in verdict ? verdict.why : undefined)

describe('a decision', () => {
  it('names its rule, and where it refuses also what would change it', async () => {
    const { open } = world({ rules: [{ name: 'no chat', do: 'deny', when: { server: 'chat' } }] })
    const policy = await open()
    expect(await policy.decide(push)).toEqual({
      do: 'deny',
      why: {
        code: 'POLICY_DENIED',
        rule: 'no chat',
        message: 'Rule no chat denies an event from chat.messages of chat',
        fix: 'Change rule no chat to allow it',
      },
    })
    expect(await policy.decide({ ...push, server: 'mail' })).toEqual({ do: 'allow', rule: 'otherwise.push' })
  })

  it.each([
    [{ tags: 'chat:mention' }, { tags: ['a', 'chat:mention'] }, { tags: ['a'] }],
    [{ origin: { 'author.bot': 'true' } }, { origin: { author: { bot: true } } }, { origin: { author: {} } }],
    [{ origin: { channel: 'c*' } }, { origin: { channel: 'c9' } }, { origin: { channel: 9 } }],
    [{ featureSet: ['x', 'chat.*'] }, { featureSet: 'chat.a.b' }, { featureSet: 'chat' }],
    [{ kind: ['push'] }, {}, { kind: 'infer' }],
    [{ origin: { constructor: '*' } }, { origin: { constructor: 'x' } }, { origin: {} }],
  ] as const)('is about %j', async (when, fits, differs) => {
    const policy = await world({ rules: [{ name: 'it', do: 'deny', when }] }).open()
    expect([(await policy.decide({ ...push, ...fits })).do, (await policy.decide({ ...push, ...differs })).do]).toEqual([
      'deny',
      'allow',
    ])
  })

  it('holds until quiet hours are over', async () => {
    const hours = { from: '22:00', to: '07:00', zone: 'Europe/Berlin' }
    const { open, clock } = world({ rules: [{ name: 'quiet', do: 'hold', when: { kind: 'push', hours } }] })
    const policy = await open()
    expect((await policy.decide(push)).do).toBe('allow')
    clock.advance(10 * 3_600_000)
    expect(await policy.decide(push)).toMatchObject({
      do: 'hold',
      until: Date.parse('2026-01-11T06:00:00Z'),
      why: { code: 'POLICY_HELD', rule: 'quiet' },
    })
  })

  it('counts what was let in: beyond the rate the rule applies, and says how long to wait', async () => {
    const { open, clock } = world({ rules: [{ name: 'slow', do: 'deny', when: { above: { count: 2, per: '1m' } } }] })
    const policy = await open()
    const ask = async (server: string) => (await policy.decide({ ...push, server })).do
    expect([await ask('a'), policy.explain({ ...push, server: 'a' }).verdict.do, await ask('a'), await ask('b')]).toEqual([
      'allow',
      'allow',
      'allow',
      'allow',
    ])
    const refused = await policy.decide({ ...push, server: 'a' })
    expect(refused).toMatchObject({ do: 'deny', retryAfterMs: 30_000, why: { code: 'RATE_LIMITED', rule: 'slow' } })
    clock.advance(30_000)
    expect([await ask('a'), await ask('a')]).toEqual(['allow', 'deny'])
  })

  it('knows how many are under way', async () => {
    const rules: PolicyRules = { rules: [{ name: 'two', do: 'deny', when: { kind: 'infer', running: 2 } }] }
    const policy = await world(rules).open()
    const infer: Asked = { kind: 'infer', server: 'a' }
    const leave = policy.enter(infer)
    policy.enter({ kind: 'push', server: 'a' })
    expect((await policy.decide(infer)).do).toBe('allow')
    policy.enter(infer)
    expect(whyOf(await policy.decide(infer))?.code).toBe('TOO_MANY_RUNNING')
    leave()
    leave()
    expect((await policy.decide(infer)).do).toBe('allow')
  })

  it('coalesces what has the key in common', async () => {
    const policy = await world({ rules: [{ name: 'busy', do: 'coalesce', within: '30s', when: { kind: 'push' } }] }).open()
    const [one, two] = [await policy.decide(push), await policy.decide({ ...push, origin: { channel: 'c2' } })]
    expect(one).toMatchObject({ do: 'coalesce', withinMs: 30_000, rule: 'busy' })
    expect('key' in one && 'key' in two && one.key === two.key).toBe(false)
    expect((await policy.decide({ kind: 'infer', server: 'chat' })).do).toBe('allow')
  })

  it('is explained with every rule that was about it', async () => {
    const rules: PolicyRules = {
      rules: [
        { name: 'all', do: 'ask' },
        { name: 'chat', do: 'allow', when: { server: 'chat' } },
      ],
    }
    const policy = await world(rules).open()
    expect(policy.explain(push)).toEqual({
      verdict: { do: 'allow', rule: 'chat' },
      rules: [
        { name: 'all', do: 'ask', counted: false },
        { name: 'chat', do: 'allow', counted: true },
      ],
    })
  })

  it('L11.3-2: an inference needs no approval, the policy alone decides', async () => {
    const policy = await world({ rules: [{ name: 'no', do: 'deny', when: { featureSet: 'b' } }] }).open()
    const infer = async (featureSet: string) => (await policy.decide({ kind: 'infer', server: 's', featureSet })).do
    expect([await infer('a'), await infer('b')]).toEqual(['allow', 'deny'])
  })
})

describe('feature sets', () => {
  const declared = new Map([
    ['memory.retrieval', facts()],
    ['memory.extraction', facts()],
    ['memory', facts()],
    ['other', facts()],
  ])

  it('L6.3-1: memory.* covers every name under it, exact names work, and disable beats enable', async () => {
    const rules: PolicyRules = { servers: { m: { enable: ['memory.*', 'other'], disable: ['memory.extraction'] } } }
    const policy = await world(rules).open()
    const { enabled, disabled } = policy.select('m', declared)
    expect([enabled, disabled]).toEqual([
      ['memory.retrieval', 'other'],
      ['memory.extraction', 'memory'],
    ])
    expect(policy.select('stranger', declared).enabled).toEqual([])
  })

  it('L6.7-1: every declared set is in exactly one of the lists', async () => {
    const policy = await world({ servers: { m: { enable: ['*'], disable: ['memory.*'] } } }).open()
    const { enabled, disabled } = policy.select('m', declared)
    expect([...enabled, ...disabled].sort()).toEqual([...declared.keys()].sort())
  })

  it('L6.6-4: canEnable is true iff the policy would let a user enable it', async () => {
    const policy = await world({ servers: { m: { disable: ['other'] } } }).open()
    const { canEnable } = policy.select('m', declared)
    expect(['memory', 'other', 'unknown'].map(canEnable)).toEqual([true, false, false])
  })

  it('L6.2-3: a declaration without description or uses is never enabled', async () => {
    const policy = await world({ servers: { m: { enable: ['*'] } } }).open()
    const broken = new Map([
      ['a', { uses: [] } as unknown as FeatureSetFacts],
      ['b', { description: 'x' } as unknown as FeatureSetFacts],
      ['c', facts()],
    ])
    const { enabled, canEnable } = policy.select('m', broken)
    expect([enabled, canEnable('a')]).toEqual([['c'], false])
  })

  it('L7.2-2: the configured scopes go along with the selection', async () => {
    const scopes = { 'files.*': { whitelist: ['/project/**'], blacklist: ['**/.env'] } }
    const policy = await world({ servers: { f: { enable: ['*'], scopes } } }).open()
    expect(policy.select('f', new Map([['files.edit', facts({ scoped: true })]])).scopes).toEqual({
      'files.edit': scopes['files.*'],
    })
  })

  it('that are new are off until somebody says yes, and are asked about again once they are declared otherwise', async () => {
    const asked: string[] = []
    const onApproval = ({ asked: { featureSet } }: ApprovalQuestion) => {
      asked.push(String(featureSet))
      return featureSet === 'other'
    }
    const policy = await world({}, { onApproval }).open()
    expect(policy.select('m', declared).enabled).toEqual([])
    expect(await policy.review('m', declared)).toEqual(['other'])
    expect(asked).toEqual([...declared.keys()])
    asked.length = 0
    const changed = new Map([['other', facts({ uses: ['tools', 'inferenceRequest'] })]])
    expect(policy.select('m', changed).enabled).toEqual([])
    await policy.review('m', changed)
    expect(asked).toEqual(['other'])
  })

  it('that were enabled for a time go off when it ends, and whoever selects is told', async () => {
    const told: (string | undefined)[] = []
    const { open, clock } = world({}, { onChange: server => told.push(server) })
    const policy = await open()
    await policy.grant({ server: 'm', kind: 'set', featureSet: 'memory.*' }, '1h')
    expect(policy.select('m', declared).enabled).toEqual(['memory.retrieval', 'memory.extraction'])
    clock.advance(3_600_000)
    expect([policy.select('m', declared).enabled, told]).toEqual([[], ['m', undefined]])
    policy.close()
  })
})

describe('a change of the policy', () => {
  it('is compared before it is made: rules, feature sets, and what was decided lately', async () => {
    const policy = await world({ rules: [{ name: 'a', do: 'allow' }], servers: { m: { enable: ['x'] } } }).open()
    policy.select('m', new Map([['x', facts()]]))
    await policy.decide(push)
    const next: PolicyRules = {
      rules: [
        { name: 'a', do: 'ask' },
        { name: 'b', do: 'deny' },
      ],
    }
    const diff = policy.preview(next)
    expect(diff).toEqual({
      added: ['b'],
      removed: ['servers.m.enable'],
      changed: ['a'],
      sets: [{ server: 'm', featureSet: 'x', before: 'allow', after: 'deny' }],
      verdicts: [{ asked: push, before: 'allow', after: 'deny' }],
      shadowed: [{ rule: 'a', by: 'b', why: 'its effect (deny) takes precedence wherever both match' }],
    })
    expect((await policy.decide(push)).do).toBe('allow')
    expect(await policy.update(next)).toEqual({ ...diff, verdicts: [...diff.verdicts, ...diff.verdicts] })
    expect((await policy.decide(push)).do).toBe('deny')
  })

  it('names what a server may do beyond what it declares, and refuses a use that there is not', async () => {
    const policy = await world({}).open()
    const wider: PolicyRules = { servers: { m: { enable: ['x'], uses: { 'x*': ['pushEvents'] } } } }
    expect((await policy.update(wider)).added).toEqual(['servers.m.enable', 'servers.m.uses.x*'])
    expect(policy.select('m', new Map([['x', facts()]])).uses).toEqual({ x: ['pushEvents'] })
    await expect(policy.update({ servers: { m: { uses: { x: ['push'] } } } })).rejects.toThrow(
      'push is not a known use. Use tools',
    )
  })

  it('that is a mistake changes nothing', async () => {
    const policy = await world({}).open()
    await expect(policy.update({ rules: [{ name: 'x', do: 'hold' }] })).rejects.toThrow('Rule x: hold needs')
    await expect(policy.update({ rule: [] } as PolicyRules)).rejects.toThrow('rule is not known in a policy')
    await expect(policy.update({ otherwise: { push: 'hold' } } as unknown as PolicyRules)).rejects.toThrow('otherwise.push')
    await expect(policy.update({ servers: { a: { scopes: { x: { whitelist: [''] } } } } })).rejects.toThrow(
      '"" is not a scope pattern',
    )
    expect((await policy.decide(push)).do).toBe('allow')
  })
})

const stores = storesUnderTest()

describe.each(storeKinds)('approvals on %s', kind => {
  const scope: Asked = {
    kind: 'scope',
    server: 'files',
    featureSet: 'files.edit',
    scope: { label: '/etc/hosts', payload: { path: '/etc/hosts', mode: 'append' } },
  }
  const declared = new Map([['files.edit', facts({ scoped: true })]])

  async function opened(rules: PolicyRules, onApproval?: PolicyOptions['onApproval']) {
    const clock = stores.clock()
    const store = await stores.open(kind, clock)
    let ids = 0
    const make = async () => {
      const policy = await createPolicy({ rules, clock, store, id: () => `g${++ids}`, ...(onApproval && { onApproval }) })
      policy.select('files', declared)
      return policy
    }
    return { clock, make, close: () => store.close() }
  }

  const settle = async (policy: Awaited<ReturnType<typeof createPolicy>>, asked: Asked) => {
    const verdict = await policy.decide(asked)
    if (verdict.do !== 'ask') throw new Error(`expected a question, got ${verdict.do}`)
    return policy.approve(asked, verdict)
  }

  it('count for exactly this server, set, label and payload, in every process, until they end', async () => {
    const { clock, make, close } = await opened({}, () => ({ yes: true, for: '10m' }))
    const [one, two] = [await make(), await make()]
    expect(await settle(one, scope)).toEqual({ yes: true, rule: 'approval g1' })
    const payload = { mode: 'append', path: '/etc/hosts' }
    const others: Asked[] = [
      { ...scope, scope: { label: '/etc/hosts', payload: { ...payload, mode: 'write' } } },
      { ...scope, scope: { label: '/etc/hosts2', payload } },
      { ...scope, featureSet: 'files.read' },
      { ...scope, server: 'files2' },
    ]
    expect(await two.decide({ ...scope, scope: { label: '/etc/hosts', payload } })).toMatchObject({ do: 'allow' })
    expect(await Promise.all(others.map(async asked => (await two.decide(asked)).do))).toEqual(['ask', 'ask', 'ask', 'ask'])
    await clock.advance(600_000)
    expect((await one.decide(scope)).do).toBe('ask')
    await close()
  })

  it('L7.6-2: an approval is kept, and a blacklist entry that was added later still denies', async () => {
    const { make, close } = await opened({}, () => true)
    const policy = await make()
    await settle(policy, scope)
    expect((await policy.decide(scope)).do).toBe('allow')
    await policy.update({ servers: { files: { scopes: { 'files.edit': { blacklist: ['/etc/**'] } } } } })
    expect(whyOf(await policy.decide(scope))).toMatchObject({
      code: 'SCOPE_FORBIDDEN',
      rule: expect.stringContaining('blacklist'),
    })
    await close()
  })

  it('that are given while the rule changes do not open what is denied by then', async () => {
    const { make, close } = await opened({}, async () => {
      await policy.update({ rules: [{ name: 'no', do: 'deny' }] })
      return true
    })
    const policy = await make()
    expect(await settle(policy, scope)).toMatchObject({ yes: false, why: { rule: 'no' } })
    await close()
  })

  it('a refusal may count for a time, can be listed and taken back', async () => {
    const { make, close } = await opened({}, () => ({ yes: false, for: '1h', reason: 'Not that one' }))
    const policy = await make()
    expect(await settle(policy, scope)).toMatchObject({ yes: false, why: { code: 'APPROVAL_REFUSED', message: 'Not that one' } })
    expect(whyOf(await policy.decide(scope))?.code).toBe('APPROVAL_REFUSED')
    const [kept] = await policy.grants('files')
    expect(kept).toMatchObject({ effect: 'deny', kind: 'scope', server: 'files' })
    expect(await policy.revoke('files', kept?.id ?? '')).toBe(true)
    expect((await policy.decide(scope)).do).toBe('ask')
    await close()
  })

  it('temporary grants answer what would be asked, never what is denied or oddly spelled', async () => {
    const scopes = { 'files.edit': { blacklist: ['**/.env'] } }
    const { make, close } = await opened({ servers: { files: { scopes } } })
    const policy = await make()
    await policy.grant({ server: 'files', kind: 'scope', featureSet: 'files.*' }, '1h')
    const at = async (label: string) => (await policy.decide({ ...scope, scope: { label } })).do
    expect([await at('/any/where'), await at('/a/.env'), await at('/a/../b')]).toEqual(['allow', 'deny', 'ask'])
    await close()
  })
})

describe('asking', () => {
  const sample: Asked = { kind: 'sample', server: 's', payload: { prompt: 'x' } }

  it('is done once for one thing, however many wait', async () => {
    let asked = 0
    const answer = Promise.withResolvers<boolean>()
    const policy = await world(
      {},
      {
        onApproval: () => {
          asked++
          return answer.promise
        },
      },
    ).open()
    const verdict = (await policy.decide(sample)) as Verdict & { do: 'ask' }
    const waiting = [policy.approve(sample, verdict), policy.approve(sample, verdict)]
    await new Promise(resolve => setImmediate(resolve))
    answer.resolve(true)
    expect(await Promise.all(waiting)).toEqual([
      { yes: true, rule: 'approval a1' },
      { yes: true, rule: 'approval a2' },
    ])
    expect(asked).toBe(1)
  })

  it.each([
    ['nobody is there', undefined, 'NO_APPROVER'],
    ['whoever is asked throws', () => Promise.reject(new Error('x')), 'APPROVAL_FAILED'],
    ['no answer comes in time', () => new Promise<boolean>(() => {}), 'APPROVAL_TIMEOUT'],
  ] as const)('is a no where %s', async (_, onApproval, code) => {
    const { open, clock } = world({}, onApproval === undefined ? {} : { onApproval })
    const policy = await open()
    const verdict = (await policy.decide(sample)) as Verdict & { do: 'ask' }
    const answer = policy.approve(sample, verdict)
    await new Promise(resolve => setImmediate(resolve))
    clock.advance(300_000)
    expect(await answer).toMatchObject({ yes: false, why: { code, rule: 'otherwise.sample' } })
  })
})
