import fc from 'fast-check'
import { expect, it } from 'vitest'
import { matches } from '../scope.ts'
import { type DecisionInput, decide, denialProblem, type GrantTerms, type UsableGrant } from './grant.ts'

const asked: DecisionInput = {
  action: 'call',
  resource: 'create_ticket',
  needs: ['write:tickets'],
  scopes: undefined,
  narrowed: false,
  obligations: [],
  met: [],
  binding: 'digest',
}

let ids = 0
function held(terms: Partial<GrantTerms>, left = true): UsableGrant {
  const grant = { effect: 'permit', action: '*', resource: '*', source: 'test', ...terms } as const
  return { grant: { ...grant, id: `g${++ids}`, owner: 'ann', issuedAt: 0, expires: 9 }, version: 1, left }
}

const action = fc.constantFrom('read', 'write', 'admin')
const someGrant = fc
  .record({
    effect: fc.constantFrom('permit', 'forbid', 'fulfil'),
    action: fc.constantFrom('*', 'read', 'w*', 'confirm'),
    left: fc.boolean(),
  })
  .map(({ left, ...terms }) => held(terms as Partial<GrantTerms>, left))
const someGrants = fc.array(someGrant, { maxLength: 6 })
const someAsked = fc
  .record({
    needs: fc.uniqueArray(action),
    scopes: fc.option(fc.uniqueArray(action), { nil: undefined }),
    narrowed: fc.boolean(),
  })
  .map(parts => ({ ...asked, ...parts }))

it('E4: a prohibition wins over whatever permits', () => {
  fc.assert(
    fc.property(someAsked, someGrants, fc.nat(), (asked, grants, at) => {
      const forbidding = grants.toSpliced(at % (grants.length + 1), 0, held({ effect: 'forbid' }))
      expect(decide(asked, forbidding)).toMatchObject({ kind: 'deny', reason: 'forbidden' })
    }),
  )
})

it('E4: more permits never take away, more prohibitions never give', () => {
  const rank = { deny: 0, ask: 1, allow: 2 }
  fc.assert(
    fc.property(someAsked, someGrants, someGrant, (asked, grants, one) => {
      const change = rank[decide(asked, [...grants, one]).kind] - rank[decide(asked, grants).kind]
      expect(one.grant.effect === 'forbid' ? -change : change).toBeGreaterThanOrEqual(0)
    }),
  )
})

it('E4-3: all that is missing is named at once: what the token lacks, or what the grants do', () => {
  fc.assert(
    fc.property(someAsked, someGrants, (asked, grants) => {
      const decision = decide(asked, grants)
      if (decision.kind === 'deny' && decision.reason === 'forbidden') return
      const granted = (need: string) =>
        grants.some(({ grant, left }) => left && grant.effect === 'permit' && matches(grant.action, need))
      const missing = asked.needs.filter(need =>
        asked.scopes === undefined ? !granted(need) : !asked.scopes.includes(need) || (asked.narrowed && !granted(need)),
      )
      expect(decision.kind === 'deny' ? decision.missing : []).toEqual(missing)
    }),
  )
})

it('E4-3: the refusal says what to ask for, and nothing else', () => {
  const decision = decide({ ...asked, needs: ['write:tickets', 'read:tickets'] }, [])
  expect(decision.kind === 'deny' && denialProblem(decision)).toMatchObject({
    code: 'SCOPE_INSUFFICIENT',
    category: 'auth_required',
    details: { missing_scopes: ['write:tickets', 'read:tickets'] },
  })
})

it('E4: a grant that was presented narrows the token and never widens it', () => {
  const grants = [held({ action: 'write:*' })]
  const with_ = (scopes: readonly string[], needs: readonly string[]) =>
    decide({ ...asked, scopes, needs, narrowed: true }, grants).kind
  expect(with_(['write:tickets', 'read:tickets'], ['write:tickets'])).toBe('allow')
  expect(with_(['write:tickets', 'read:tickets'], ['read:tickets'])).toBe('deny')
  expect(with_(['read:tickets'], ['write:tickets'])).toBe('deny')
})

it('a grant counts only for the resources it names', () => {
  expect(decide(asked, [held({ resource: 'delete_*' })])).toMatchObject({ kind: 'deny', missing: ['write:tickets'] })
  expect(decide(asked, [held({}), held({ effect: 'forbid', resource: 'delete_*' })])).toMatchObject({ kind: 'allow' })
})

it('E6-7: only what fulfils an obligation waives it, never a right, be it to everything', () => {
  const confirm = { ...asked, obligations: ['confirm'] }
  expect(decide(confirm, [held({})])).toEqual({ kind: 'ask', obligations: ['confirm'], binding: 'digest' })
  expect(decide(confirm, [held({}), held({ effect: 'fulfil', action: 'confirm' })])).toMatchObject({ kind: 'allow' })
  expect(decide({ ...confirm, met: ['confirm'] }, [held({})])).toMatchObject({ kind: 'allow' })
})

it('E6-3: an approval counts for the very call it is bound to', () => {
  const confirm = { ...asked, needs: [], obligations: ['confirm'] }
  const approval = held({ effect: 'fulfil', action: 'confirm', bound: ['digest', 'other'] })
  expect(decide(confirm, [approval])).toMatchObject({
    kind: 'allow',
    uses: [{ grant: { id: approval.grant.id }, binding: 'digest' }],
  })
  for (const binding of ['another', undefined]) expect(decide({ ...confirm, binding }, [approval])).toMatchObject({ kind: 'ask' })
})

it('a permit may itself ask for something first, and one that asks for less is taken before it', () => {
  const strict = held({ obligations: ['approve'] })
  expect(decide(asked, [strict])).toMatchObject({ kind: 'ask', obligations: ['approve'] })
  expect(decide(asked, [strict, held({})])).toMatchObject({ kind: 'allow' })
})

it('E6-8: what is counted is used only where nothing else will do, and the specific before the general', () => {
  const [free, general, bound] = [held({}), held({ uses: 5 }), held({ bound: ['digest'] })]
  const used = (...grants: UsableGrant[]) => {
    const decision = decide(asked, grants)
    return decision.kind === 'allow' ? decision.uses.map(use => use.grant.id) : decision.kind
  }
  expect(used(general, bound, free)).toEqual([free.grant.id])
  expect(used(general, bound)).toEqual([bound.grant.id])
  expect(used(held({ uses: 1 }, false))).toBe('deny')
})

/** What a message may say of itself. None of it is a part of what is asked. */
const label = fc.constantFrom(
  'featureSet',
  'feature_sets',
  'scopes_held',
  'session_id',
  'intent',
  'clientInfo',
  'user_confirmed',
  'tags',
)
const labels = fc.dictionary(label, fc.oneof(fc.constantFrom('*', 'admin', 'write'), fc.array(action), fc.boolean()))

it('X7: whatever a message says of itself beside what is asked, the decision is the same', () => {
  fc.assert(
    fc.property(someAsked, someGrants, labels, (asked, grants, said) => {
      expect(decide({ ...said, ...asked }, grants)).toEqual(decide(asked, grants))
    }),
  )
})

it('X7: the name under which a grant is kept selects nothing: by another source or id it gives no more and no less', () => {
  const renamed = ({ grant, ...rest }: UsableGrant, source: string, id: string): UsableGrant => ({
    ...rest,
    grant: { ...grant, source, id },
  })
  const gist = (asked: DecisionInput, grants: readonly UsableGrant[]) => {
    const { kind, ...rest } = decide(asked, grants)
    return 'missing' in rest ? [kind, rest.missing] : [kind]
  }
  fc.assert(
    fc.property(someAsked, someGrants, fc.string(), fc.string(), (asked, grants, source, id) => {
      expect(
        gist(
          asked,
          grants.map(one => renamed(one, source, id)),
        ),
      ).toEqual(gist(asked, grants))
    }),
  )
})
