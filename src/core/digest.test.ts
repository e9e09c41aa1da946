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

it.each([
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
])('the number with the bits %s is written %s (RFC 8785, appendix B)', (bits, text) => {
  expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text)
})

it('writes literals, numbers and escapes as RFC 8785 does (3.2.2)', () => {
  const given = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
    "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`
  const wanted = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
  expect(canonicalJson(JSON.parse(given))).toBe(wanted)
})

it('sorts members by UTF-16 units, not by code points (RFC 8785, 3.2.3)', () => {
  const names = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6']
  const text = canonicalJson(Object.fromEntries(names.map(name => [name, 0]))) ?? ''
  expect([...text.matchAll(/"((?:[^"\\]|\\.)*)":/gu)].map(found => JSON.parse(`"${found[1]}"`))).toEqual([
    '\r',
    '1',
    '\u0080',
    '\u00f6',
    '\u20ac',
    '\ud83d\ude00',
    '\ufb33',
  ])
})
