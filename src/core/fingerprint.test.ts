import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { approvalDigest, canonicalJson, fingerprint } from './digest.ts'

const given = { b: 1, a: ['x'] }
const args = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 })

it('E5-1: the fingerprint is SHA-256 over the canonical JSON of target, arguments and unit', async () => {
  const text = '["create",{"a":["x"],"b":1},"tx"]'
  expect(await fingerprint('create', given, 'tx')).toBe(createHash('sha256').update(text).digest('base64url'))
})

it('E5-1: two calls have one fingerprint exactly if target, arguments and unit are the same', async () => {
  const part = fc.record({ target: fc.constantFrom('a', 'b'), args, unit: fc.constantFrom(undefined, 't', 'u') })
  await fc.assert(
    fc.asyncProperty(part, part, async (one, other) => {
      const [first, second] = [one, other].map(({ target, args, unit }) => {
        return { print: fingerprint(target, args, unit), text: canonicalJson([target, args, unit ?? null]) }
      })
      expect((await first?.print) === (await second?.print)).toBe(first?.text === second?.text)
    }),
  )
})

it('E6-3, X4: what an approval is bound to changes with the target, any argument and the definition', async () => {
  const bindings = await Promise.all([
    approvalDigest('create', given, 'd1'),
    approvalDigest('delete', given, 'd1'),
    approvalDigest('create', { b: 2, a: ['x'] }, 'd1'),
    approvalDigest('create', given, 'd2'),
    approvalDigest('create', given, undefined),
  ])
  expect(new Set(bindings).size).toBe(5)
  expect(await approvalDigest('create', { a: ['x'], b: 1 }, 'd1')).toBe(bindings[0])
})
