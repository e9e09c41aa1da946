import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { glob } from './lists.ts'

/** The same language, told by another machine. */
function reference(pattern: string): RegExp {
  const parts = pattern.match(/(?:(?<=^|\/)\*\*\/)|\*\*|\*|[^*]/gsu) ?? []
  const text = parts.map(part => {
    if (part === '**/') return '(?:.*/)?'
    if (part === '**') return '.*'
    if (part === '*') return '[^/]*'
    return part.replace(/[.+?^${}()|[\]\\/-]/g, '\\$&')
  })
  return new RegExp(`^(?:${text.join('')})$`, 's')
}

describe('globs of scopes', () => {
  it.each([
    ['/project/**', '/project/src/main.ts', true],
    ['/project/**', '/project', false],
    ['/project/**', '/projects/x', false],
    ['/project/*', '/project/a/b', false],
    ['**/.env', '.env', true],
    ['**/.env', '/a/b/.env', true],
    ['**/.env', '/a/b.env', false],
    ['a/**/b', 'a/b', true],
    ['a/**/b', 'a/x/y/b', true],
    ['a/**/b', 'a/xb', false],
    ['#dev-*', '#dev-ops', true],
    ['#dev-*', '#dev-a/b', false],
    ['**secret**', '/x/my-secret/y', true],
    ['[ab]?.ts', 'a1.ts', false],
    ['[ab]?.ts', '[ab]?.ts', true],
    ['', '', true],
    ['*', '', true],
  ])('%s and %s: %s', (pattern, text, expected) => {
    expect(glob(pattern)(text)).toBe(expected)
  })

  it('match as a regular expression of the same meaning does', () => {
    const word = (letters: readonly string[]) => fc.array(fc.constantFrom(...letters), { maxLength: 12 }).map(all => all.join(''))
    fc.assert(
      fc.property(word(['*', '**', '/', 'a', 'b', '.', '**/']), word(['/', 'a', 'b', '.', '*']), (pattern, text) => {
        expect(glob(pattern)(text)).toBe(reference(pattern).test(text))
      }),
      { numRuns: 5_000 },
    )
  })

  it('take each character but the star for itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, two) => {
        const literal = one.replaceAll('*', '')
        expect(glob(literal)(two)).toBe(literal === two)
        expect(glob(literal)(literal)).toBe(true)
      }),
    )
  })

  it('end soon on patterns and texts that are made to take long', () => {
    expect(glob('*a'.repeat(200))(`${'a'.repeat(4_000)}b`)).toBe(false)
    expect(glob('**/a'.repeat(200))(`${'a/'.repeat(2_000)}b`)).toBe(false)
  })
})
