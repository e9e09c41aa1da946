import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareKeys, prefixEnd, scanBounds } from './checks.ts'

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

test('between the bounds of a scan lie all keys that it is for, and with `after` and the prefix no others', () => {
  const maybe = fc.option(text, { nil: undefined })
  fc.assert(
    fc.property(text, maybe, maybe, text, fc.boolean(), (prefix, after, before, rest, inside) => {
      const key = inside ? prefix + rest : rest
      const { from, end } = scanBounds(prefix, after, before)
      const within = compareKeys(key, from) >= 0 && (end === undefined || compareKeys(key, end) < 0)
      const isAfter = after === undefined || compareKeys(key, after) > 0
      const wanted = key.startsWith(prefix) && isAfter && (before === undefined || compareKeys(key, before) < 0)
      expect(within && isAfter).toBe(wanted)
    }),
  )
})
