import fc from 'fast-check'
import { expect, it } from 'vitest'
import { canonicalJson, digest, digestText } from './digest.ts'

it('the digest is SHA-256 in base64url', async () => {
  expect(await digestText('')).toBe('47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU')
})

it('is the same whatever the order of members, at any depth', async () => {
  const one = { b: [{ y: 1, x: null }], a: 'ä' }
  const other = { a: 'ä', b: [{ x: null, y: 1 }] }
  expect(canonicalJson(one)).toBe('{"a":"ä","b":[{"x":null,"y":1}]}')
  expect(await digest(one)).toBe(await digest(other))
})

it('is another for another order of items, and for text that looks like a number', async () => {
  const digests = await Promise.all([[1, 2], [2, 1], ['1', 2], { 0: 1, 1: 2 }].map(digest))
  expect(new Set(digests).size).toBe(4)
})

it('means the same as JSON for every JSON value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      expect(JSON.parse(canonicalJson(value) ?? '')).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

it('drops what JSON drops and lets dates speak for themselves', () => {
  const value = { gone: undefined, fn: () => 1, list: [undefined, () => 1], when: new Date(0) }
  expect(canonicalJson(value)).toBe('{"list":[null,null],"when":"1970-01-01T00:00:00.000Z"}')
  expect(canonicalJson(undefined)).toBeUndefined()
})

it('sees own members only, and takes __proto__ for a name like any other', () => {
  expect(canonicalJson(Object.create({ inherited: 1 }))).toBe('{}')
  expect(canonicalJson(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}')
})

it('refuses a value that contains itself', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  expect(() => canonicalJson(cycle)).toThrow(/contains itself/)
})
