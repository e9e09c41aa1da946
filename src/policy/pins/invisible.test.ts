import { expect, it } from 'vitest'
import { invisibleIn } from './tool-pins.ts'

it.each([
  ['zero-width space', 'pay\u200bload', 'U+200B'],
  ['a joiner between Latin letters', 'pay\u200dload', 'U+200D'],
  ['right-to-left override', 'abc\u202edef', 'U+202E'],
  ['a tag', 'hello\u{e0041}', 'U+E0041'],
  ['soft hyphen', 'a\u00adb', 'U+00AD'],
  ['byte order mark', '\ufeffhi', 'U+FEFF'],
  ['Hangul filler', 'a\u3164', 'U+3164'],
  ['a hidden selector', 'a\ufe01', 'U+FE01'],
])('%s is found in a text', (_, text, which) => {
  expect(invisibleIn({ description: text })).toBe(`/description contains ${which}`)
})

it.each(['plain', 'naïve — “quotes”', '👩‍👩‍👧 family', '❤️', '1️⃣', 'नमस्ते क्‍ष', 'می‌خواهم', '日本語\n\ttabs'])(
  '%s is text that can be seen',
  text => {
    expect(invisibleIn(text)).toBeUndefined()
  },
)

it('it is found in names, in lists and deep in schemas', () => {
  expect(invisibleIn({ a: [{ 'b\u200b': 1 }] })).toBe('/a/0/(a name) contains U+200B')
  expect(invisibleIn({ inputSchema: { properties: { x: { description: 'x\u2060' } } } })).toContain('U+2060')
})

it('what is nested so deep that nobody looks there is found for that', () => {
  let deep: unknown = 'x\u200b'
  for (let i = 0; i < 40; i++) deep = { a: deep }
  expect(invisibleIn(deep)).toMatch(/is nested deeper than 32 levels$/)
})
