import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { openStore } from '../../stores/open.ts'
import { put, type Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import type { Decision, GrantTerms, GrantUse } from './grant.ts'
import { type GrantQuestion, Grants } from './grants.ts'

const permit: GrantTerms = { effect: 'permit', action: 'write:*', resource: '*', source: 'negotiation' }
const confirmed: GrantTerms = {
  effect: 'fulfil',
  action: 'confirm',
  resource: 'delete',
  uses: 1,
  bound: ['d1'],
  source: 'confirmation',
}
const call: GrantQuestion = { owner: 'ann', action: 'call', resource: 'create', needs: ['write:tickets'] }
const deletion: GrantQuestion = { ...call, resource: 'delete', needs: [], obligations: ['confirm'], binding: () => 'd1' }

/** Processes on one store and one clock. */
function world(perOwner = 1_000) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  let ids = 0
  const start = (): Grants => new Grants({ store, clock, id: () => `g${++ids}`, perOwner })
  return { clock, store, start }
}

function usesOf(decision: Decision): readonly GrantUse[] {
  if (decision.kind !== 'allow') throw new Error(`expected to be allowed, got ${decision.kind}`)
  return decision.uses
}

async function kind(grants: Grants, question: GrantQuestion): Promise<string> {
  return (await grants.decide(question)).kind
}

test('E4: a grant counts where it is presented, and a standing one always', async () => {
  const grants = world().start()
  const { id } = await grants.issue('ann', permit, 60_000)
  expect([await kind(grants, call), await kind(grants, { ...call, presented: [id] })]).toEqual(['deny', 'allow'])
  await grants.issue('ann', { ...permit, standing: true }, 60_000)
  expect(await kind(grants, call)).toBe('allow')
})

test('E4-1: asking beforehand changes nothing and gives what the call gets, by its arguments too', async () => {
  const { start, store } = world()
  const grants = start()
  await grants.issue('ann', { ...permit, action: 'read:own', standing: true, uses: 1, idleMs: 5_000 }, 60_000)
  const before = await store.scan('')
  const needs = ({ whose }: Readonly<Record<string, unknown>>) => [whose === 'all' ? 'read:all' : 'read:own']
  for (const [whose, expected] of [
    ['all', 'deny'],
    ['own', 'allow'],
    ['own', 'allow'],
  ] as const) {
    expect(await kind(grants, { ...call, arguments: { whose }, needs })).toBe(expected)
  }
  expect(await store.scan('')).toEqual(before)
})

test('E4-5: a grant lasts no longer than was asked for, nor than is allowed, and ends in that very millisecond', async () => {
  const { start, clock } = world()
  const grants = start()
  const [short, long] = [await grants.issue('ann', permit, 1_000), await grants.issue('ann', permit, 1e12)]
  expect([short.expires - clock.now(), long.expires - clock.now()]).toEqual([1_000, 86_400_000])
  clock.advance(999)
  expect(await kind(grants, { ...call, presented: [short.id] })).toBe('allow')
  clock.advance(1)
  expect(await kind(grants, { ...call, presented: [short.id] })).toBe('deny')
})

test('E4-5: use extends the idle time, asking does not, and nothing extends the end', async () => {
  const act = fc.record({ after: fc.integer({ min: 0, max: 6_000 }), use: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async acts => {
      const { start, clock } = world()
      const grants = start()
      const { id, expires } = await grants.issue('ann', { ...permit, idleMs: 5_000 }, 20_000)
      let idleAt = clock.now() + 5_000
      for (const { after, use } of acts) {
        clock.advance(after)
        const decision = await grants.decide({ ...call, presented: [id] })
        const alive = clock.now() < Math.min(idleAt, expires)
        expect(decision.kind).toBe(alive ? 'allow' : 'deny')
        if (!alive) return
        if (use) {
          expect(await grants.use(usesOf(decision))).toBe(true)
          idleAt = clock.now() + 5_000
        }
      }
    }),
  )
})

test('E4-5: many uses at one moment of a grant that ends when idle all count', async () => {
  const { start } = world()
  const grants = start()
  const { id } = await grants.issue('ann', { ...permit, idleMs: 5_000, uses: 64 }, 60_000)
  const uses = usesOf(await grants.decide({ ...call, presented: [id] }))
  expect(new Set(await Promise.all(Array.from({ length: 64 }, () => grants.use(uses))))).toEqual(new Set([true]))
  expect(await grants.use(uses)).toBe(false)
})

test('E4-6: a grant that was revoked in one process is gone for the next decision and the next use in another', async () => {
  const { start } = world()
  const [one, two] = [start(), start()]
  const { id } = await one.issue('ann', permit, 60_000)
  const question = { ...call, presented: [id] }
  const decision = await two.decide(question)
  expect(await one.revoke('ann', id)).toBe(true)
  expect(await two.use(usesOf(decision))).toBe(false)
  expect([await kind(two, question), await two.find('ann', id), await two.list('ann')]).toEqual(['deny', undefined, []])
})

test('E4-6, X6: while a call runs its decision can be taken again: used up is no reason then, revoked is', async () => {
  const grants = world().start()
  const { id } = await grants.issue('ann', { ...permit, uses: 1 }, 60_000)
  const question = { ...call, presented: [id] }
  const uses = usesOf(await grants.decide(question))
  await grants.use(uses)
  expect(await kind(grants, question)).toBe('deny')
  expect(await grants.decide(question, uses)).toMatchObject({ kind: 'allow' })
  await grants.revoke('ann', id)
  expect(await grants.decide(question, uses)).toMatchObject({ kind: 'deny' })
})

test('E4-7: the grant of another principal is answered like one that never was', async () => {
  const grants = world().start()
  const { id } = await grants.issue('ann', permit, 60_000)
  const asBob = (presented: string) => grants.decide({ ...call, owner: 'bob', presented: [presented] })
  expect(await asBob(id)).toEqual(await asBob('never'))
  expect(await asBob(id)).toMatchObject({ kind: 'deny' })
  expect([await grants.find('bob', id), await grants.revoke('bob', id), await grants.list('bob')]).toEqual([undefined, false, []])
  expect(await grants.find('ann', id)).toBeDefined()
})

test('E4-7: a grant that is over does not leave its holder with all that the token gives', async () => {
  const grants = world().start()
  expect(await kind(grants, { ...call, scopes: ['write:tickets'], presented: ['over'] })).toBe('deny')
  expect(await kind(grants, { ...call, scopes: ['write:tickets'] })).toBe('allow')
})

test('E4-8: what cannot be evaluated is denied: a rule that throws, a digest that fails, a store that is gone', async () => {
  const { start, store } = world()
  const grants = start()
  const fail = (): never => {
    throw new Error('no')
  }
  const denied = { kind: 'deny', reason: 'evaluation_error' }
  expect(await grants.decide({ ...call, scopes: ['write:tickets'], needs: fail })).toMatchObject(denied)
  expect(await grants.decide({ ...deletion, binding: fail })).toMatchObject(denied)
  expect(await grants.decide({ ...call, presented: Array.from({ length: 99 }, (_, i) => `g${i}`) })).toMatchObject(denied)
  await store.close()
  expect(await grants.decide({ ...call, scopes: ['write:tickets'] })).toMatchObject(denied)
})

test('C8: where nobody is known, no grant counts', async () => {
  const grants = world().start()
  expect(await kind(grants, { ...call, owner: undefined, presented: ['g1'] })).toBe('deny')
  await expect(grants.issue('ann/bob', permit, 1_000)).rejects.toThrow('not the key of a principal')
})

test('E6-3, E6-4: a confirmation is good once, for the call it was given for', async () => {
  const grants = world().start()
  expect(await grants.decide(deletion)).toEqual({ kind: 'ask', obligations: ['confirm'], binding: 'd1' })
  const { id } = await grants.issue('ann', confirmed, 300_000)
  const question = { ...deletion, approvals: [id] }
  expect(await kind(grants, { ...question, binding: () => 'd2' })).toBe('ask')
  const decision = await grants.decide(question)
  expect(await grants.use(usesOf(decision))).toBe(true)
  expect(await kind(grants, question)).toBe('ask')
  expect(await grants.use(usesOf(decision))).toBe(false)
})

test('E6-4: of many in two processes on one file who use one confirmation at once, one does', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'grants-'))
  const stores: Store[] = []
  try {
    const clock = { ...fakeClock(Date.now()), now: Date.now }
    for (let i = 0; i < 2; i++) stores.push(await openStore(`sqlite:${join(folder, 'grants.db')}`))
    const [one, two] = stores.map(store => new Grants({ store, clock, id: () => 'g1' })) as [Grants, Grants]
    const { id } = await one.issue('ann', confirmed, 300_000)
    const comers = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two))
    const decisions = await Promise.all(comers.map(grants => grants.decide({ ...deletion, approvals: [id] })))
    const used = await Promise.all(comers.map((grants, i) => grants.use(usesOf(decisions[i] as Decision))))
    expect(used.filter(Boolean)).toHaveLength(1)
  } finally {
    await Promise.all(stores.map(store => store.close()))
    await rm(folder, { recursive: true })
  }
})

test('E6-8: one approval of many calls is good once for each of them', async () => {
  const grants = world().start()
  const { uses: _, ...listed } = confirmed
  const { id } = await grants.issue('ann', { ...listed, bound: ['d1', 'd2'] }, 300_000)
  const ask = (digest: string) => grants.decide({ ...deletion, approvals: [id], binding: () => digest })
  for (const digest of ['d1', 'd2']) {
    const uses = usesOf(await ask(digest))
    expect([await grants.use(uses), await grants.use(uses)]).toEqual([true, false])
    expect(await ask(digest)).toMatchObject({ kind: 'ask' })
  }
  expect(await ask('d3')).toMatchObject({ kind: 'ask' })
})

test('E6-8: an approval of so many uses counts each of them, whichever process it is in', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 5 }), fc.array(fc.nat(1), { maxLength: 9 }), async (uses, comers) => {
      const { start } = world()
      const processes = [start(), start()]
      const { bound: _, ...general } = confirmed
      const { id } = await (processes[0] as Grants).issue('ann', { ...general, uses }, 300_000)
      const used = await Promise.all(
        comers.map(async at => {
          const grants = processes[at] as Grants
          const decision = await grants.decide({ ...deletion, approvals: [id] })
          return decision.kind === 'allow' && (await grants.use(decision.uses))
        }),
      )
      expect(used.filter(Boolean)).toHaveLength(Math.min(uses, comers.length))
    }),
    { numRuns: 50 },
  )
})

test('X10: an owner holds so many grants, and what has ended leaves nothing behind', async () => {
  const { start, store, clock } = world(2)
  const grants = start()
  const { id } = await grants.issue('ann', { ...confirmed, idleMs: 1_000 }, 60_000)
  await grants.use(usesOf(await grants.decide({ ...deletion, approvals: [id] })))
  await grants.issue('ann', permit, 60_000)
  await expect(grants.issue('ann', permit, 60_000)).rejects.toMatchObject({ code: 'QUOTA_EXHAUSTED' })
  await grants.issue('bob', permit, 60_000)
  clock.advance(121_000)
  expect(await store.scan('')).toEqual([])
})

test('X10: what tells that a grant was used ends with it', async () => {
  const { start, store, clock } = world()
  const grants = start()
  const { id } = await grants.issue('ann', { ...permit, idleMs: 50_000 }, 60_000)
  clock.advance(40_000)
  await grants.use(usesOf(await grants.decide({ ...call, presented: [id] })))
  clock.advance(20_000)
  expect(await store.scan('')).toEqual([])
})

test('what is written with a use is written with it or not at all', async () => {
  const { start, store } = world()
  const grants = start()
  const { id } = await grants.issue('ann', confirmed, 300_000)
  const uses = usesOf(await grants.decide({ ...deletion, approvals: [id] }))
  await grants.use(uses, [put('step', 'one')])
  await grants.use(uses, [put('step', 'two')])
  expect(await store.get('step')).toMatchObject({ value: 'one' })
})

test.each([
  ['no uses', { ...permit, uses: 0 }],
  ['half a use', { ...permit, uses: 0.5 }],
  ['no pattern', { ...permit, action: '' }],
  ['a pattern without end', { ...permit, resource: 'x'.repeat(257) }],
  ['nothing it is bound to', { ...permit, bound: [] }],
  ['a budget without units', { ...permit, effect: 'budget' as const }],
  ['units that are no number', { ...permit, effect: 'budget' as const, units: Number.NaN }],
])('%s is refused when it is issued', async (_, terms) => {
  await expect(world().start().issue('ann', terms, 1_000)).rejects.toThrow(/give|bound to|required for a budget/)
})
