import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Call, type CallFacts } from './call.ts'
import { canonicalJson } from './digest.ts'

const facts: CallFacts = { id: 'op-1', owner: 'ann', target: 'create', arguments: { b: 1, a: ['x'] } }
const args = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 })

it('E5-1: the fingerprint is SHA-256 over the canonical JSON of target, arguments and unit', async () => {
  const { fingerprint } = new Call({ ...facts, unit: { id: 'tx', step: 's1' } })
  const text = '["create",{"a":["x"],"b":1},"tx"]'
  expect(await fingerprint).toBe(createHash('sha256').update(text).digest('base64url'))
})

it('E5-1: two calls have one fingerprint exactly if target, arguments and unit are the same', async () => {
  const part = fc.record({ target: fc.constantFrom('a', 'b'), args, unit: fc.constantFrom(undefined, 't', 'u') })
  await fc.assert(
    fc.asyncProperty(part, part, async (one, other) => {
      const [first, second] = [one, other].map(({ target, args, unit }) => {
        const call = new Call({ ...facts, target, arguments: args, ...(unit !== undefined && { unit: { id: unit } }) })
        return { print: call.fingerprint, text: canonicalJson([target, args, unit ?? null]) }
      })
      expect((await first?.print) === (await second?.print)).toBe(first?.text === second?.text)
    }),
  )
})

it('E5-1, E2-6: intent, key, state, budget, deadline and trace are not part of the fingerprint', async () => {
  const said = { intent: 'tidy up', key: 'k', state: 'token', budget: 3, deadline: 9, trace: { parent: '00-1-2-01' } }
  const other = new Call({ ...facts, ...said, id: 'op-2', owner: 'bob' })
  expect(await other.fingerprint).toBe(await new Call(facts).fingerprint)
})

it('no arguments are the same as empty ones', async () => {
  const { arguments: _, ...bare } = facts
  expect(await new Call(bare).fingerprint).toBe(await new Call({ ...facts, arguments: {} }).fingerprint)
})

it('E6-3, X4: what an approval is bound to changes with the target, any argument and the definition', async () => {
  const call = (more: Partial<CallFacts>) => new Call({ ...facts, definition: async () => 'd1', ...more }).binding
  const bindings = await Promise.all([
    call({}),
    call({ target: 'delete' }),
    call({ arguments: { b: 2, a: ['x'] } }),
    call({ definition: async () => 'd2' }),
    call({ definition: undefined }),
  ])
  expect(new Set(bindings).size).toBe(5)
  expect(await call({ arguments: { a: ['x'], b: 1 }, unit: { id: 'tx' } })).toBe(bindings[0])
})

it('digests are computed when asked for, and once', async () => {
  let asked = 0
  const call = new Call({ ...facts, definition: async () => `d${++asked}` })
  expect(asked).toBe(0)
  expect(call.binding).toBe(call.binding)
  expect(call.fingerprint).toBe(call.fingerprint)
  expect(call.argumentsDigest).toBe(call.argumentsDigest)
  await call.binding
  expect(asked).toBe(1)
})

it('the time left never falls below 0', () => {
  expect(new Call({ ...facts, deadline: 100 }).timeLeft(40)).toBe(60)
  expect(new Call({ ...facts, deadline: 100 }).timeLeft(140)).toBe(0)
  expect(new Call(facts).timeLeft(40)).toBeUndefined()
})
