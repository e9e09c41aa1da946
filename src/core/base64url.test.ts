import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fromBase64Url, toBase64, toBase64Url } from './base64.ts'

it('bytes come back as they were, and the text is what Node writes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
      const text = toBase64Url(bytes)
      expect(text).toBe(Buffer.from(bytes).toString('base64url'))
      expect(fromBase64Url(text)).toEqual(bytes)
      expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'))
    }),
  )
})

it('more bytes than a call has arguments are no trouble', () => {
  const bytes = new Uint8Array(300_000).fill(7)
  expect(fromBase64Url(toBase64Url(bytes))).toEqual(bytes)
})

it.each(['A', 'AB=', 'A+', 'A/', 'A A', 'AAAA\n', 'AB', 'é'])('%j is not the text of any bytes', text => {
  expect(fromBase64Url(text)).toBeUndefined()
})
