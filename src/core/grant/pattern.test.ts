import fc from 'fast-check'
import { expect, it } from 'vitest'
import { matches, patternLength } from '../scope.ts'

it.each([
  ['write:*', 'write:tickets', true],
  ['write:*', 'write:', true],
  ['write:*', 'rewrite:tickets', false],
  ['*', '', true],
  ['*_ticket', 'delete_ticket', true],
  ['a*b*c', 'a1b2b3c', true],
  ['a*b*c', 'a1c2b', false],
  ['call', 'call ', false],
  ['', '', true],
])('%j matches %j: %j', (pattern, text, expected) => {
  expect(matches(pattern, text)).toBe(expected)
})

it('agrees with a regular expression in which a star is any text', () => {
  const over = (...letters: string[]) => fc.string({ unit: fc.constantFrom(...letters), maxLength: 8 })
  fc.assert(
    fc.property(over('a', 'b', '.', '*'), over('a', 'b', '.', '*'), (pattern, text) => {
      const expression = pattern
        .split('*')
        .map(text => text.replaceAll('.', '[.]'))
        .join('.*')
      expect(matches(pattern, text)).toBe(new RegExp(`^${expression}$`, 's').test(text))
    }),
    { numRuns: 1_000 },
  )
})

it('a pattern of nothing but traps is done in as many steps as pattern times text', () => {
  expect(matches(`${'*a'.repeat(patternLength / 2)}b`, 'a'.repeat(20_000))).toBe(false)
})
