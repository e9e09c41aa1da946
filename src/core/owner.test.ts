import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ownerKey } from './owner.ts'

const id = fc.string({ unit: fc.constantFrom('a', '/', '"', '\\', '\u00e9', '\ud800', '\ufffd'), maxLength: 6 })
const of = (id: string) => ownerKey({ carrier: 'http', principal: { id } })

it('C8: two principals never share a key, and one has the same key on every carrier', async () => {
  await fc.assert(
    fc.asyncProperty(id, id, async (one, other) => {
      expect((await of(one)) === (await of(other))).toBe(one === other)
      expect(await ownerKey({ carrier: 'stdio', principal: { id: one } })).toBe(await of(one))
    }),
    {
      numRuns: 50,
      examples: [
        ['\ud800', '\ufffd'],
        ['\ud800', '"\\ud800"'],
      ],
    },
  )
})

it('C8: a key is short, shows nothing of the identity, and is safe within a path of keys', async () => {
  expect(await of('https://issuer.example/ann')).toMatch(/^[\w-]{22}$/)
})

it('C8: on a pipe the owner of the process is meant, on the network nobody', async () => {
  expect(ownerKey({ carrier: 'stdio' })).toBe('~process')
  expect(ownerKey({ carrier: 'http' })).toBeUndefined()
  expect(await of('~process')).not.toBe('~process')
})

it('X10: a known principal is answered at once, also after many others, and the same', async () => {
  const first = await of('first')
  expect(of('first')).toBe(first)
  await Promise.all(Array.from({ length: 12_000 }, (_, i) => of(`other ${i}`)))
  expect(typeof of('first')).toBe('object')
  expect(await of('first')).toBe(first)
})
