import fc from 'fast-check'
import { expect, it } from 'vitest'
import { base64Head, base64Size, fromBase64, isBase64 } from './base64.ts'

const bytes = fc.uint8Array({ maxLength: 900 })
const texts = fc.string({ unit: fc.constantFrom('A', 'z', '0', '+', '/', '=', '-', '\n', 'é'), maxLength: 12 })

it('E10-1: the length of base64 tells the size of what it stands for, padded or not', () => {
  fc.assert(
    fc.property(bytes, given => {
      const text = Buffer.from(given).toString('base64')
      expect(base64Size(text)).toBe(given.length)
      expect(base64Size(text.replace(/=+$/, ''))).toBe(given.length)
      expect(fromBase64(text)).toEqual(new Uint8Array(given))
    }),
  )
})

it('E10-1: the head is the beginning of the bytes, however long the text is', () => {
  fc.assert(
    fc.property(bytes, fc.integer({ min: 1, max: 600 }), (given, most) => {
      expect(base64Head(Buffer.from(given).toString('base64'), most)).toEqual(new Uint8Array(given.subarray(0, most)))
    }),
  )
  expect(base64Head('A'.repeat(8_000_000)).length).toBe(512)
})

it('E10-4: text is base64 exactly where a strict reader of RFC 4648 takes it', () => {
  fc.assert(
    fc.property(texts, text => {
      const strict = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/
      expect(isBase64(text)).toBe(strict.test(text))
      expect(fromBase64(text)?.length).toBe(isBase64(text) ? base64Size(text) : undefined)
    }),
    { numRuns: 2_000 },
  )
})

it('the head of what is no base64 is what stands before the fault', () => {
  expect(base64Head('iVBOR\nw0KGgo=')).toEqual(new Uint8Array([0x89, 0x50, 0x4e]))
  expect(base64Head('<html>').length).toBe(0)
})
