import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareKeys, prefixEnd } from './key-order.ts'

const text = fc.string({ unit: 'binary' }).map(value => value.toWellFormed())
const bytes = (value: string): Uint8Array => new TextEncoder().encode(value)

test('keys compare as their UTF-8 bytes do', () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(Math.sign(compareKeys(a, b))).toBe(Math.sign(Buffer.compare(bytes(a), bytes(b))))
    }),
  )
})

test('what begins with a prefix is below its end, and what comes after is not', () => {
  fc.assert(
    fc.property(text, text, text, (prefix, rest, other) => {
      const end = prefixEnd(prefix)
      if (end === undefined) return
      expect(compareKeys(prefix + rest, end)).toBeLessThan(0)
      if (compareKeys(other, prefix) >= 0 && compareKeys(other, end) < 0) expect(other.startsWith(prefix)).toBe(true)
    }),
  )
})
