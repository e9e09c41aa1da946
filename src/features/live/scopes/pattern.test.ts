import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { globbed, passes } from './server.ts'

/** The same as a regular expression, which says it in one line and may take for ever. */
function slowly(pattern: string): RegExp {
  const source = pattern.replaceAll(/\*\*|\*|\?|[^*?]/gs, part =>
    part === '**' ? '[^]*' : part === '*' ? '[^/]*' : part === '?' ? '[^/]' : part.replace(/[.+^${}()|[\]\\-]/, '\\$&'),
  )
  return new RegExp(`^${source}$`)
}

it('a pattern matches what the regular expression of the same meaning matches', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 12 })
  const pattern = fc
    .string({ unit: fc.constantFrom('a', 'b', '/', '*', '**', '?', '.'), maxLength: 8 })
    .map(one => one.replaceAll(/\*{3,}/g, '**'))
  fc.assert(
    fc.property(pattern, text, (glob, label) => {
      expect([glob, label, globbed(glob, label)]).toEqual([glob, label, slowly(glob).test(label)])
    }),
    { numRuns: 5_000 },
  )
})

it('no pattern takes long', () => {
  expect(globbed('*a'.repeat(400), 'a'.repeat(1_000))).toBe(true)
  expect(globbed(`${'**a'.repeat(400)}b`, 'a'.repeat(1_000))).toBe(false)
})

describe('spellings of something else never pass without a question', () => {
  const lists = { whitelist: ['**', '/project/**'], blacklist: ['**/.env', '/project/secrets/**', '#admin-*'] }
  it.each([
    '/project/../etc/passwd',
    '/project/./x',
    '/project/..',
    '..',
    '/project//x',
    '/project\\..\\x',
    '/project/%2e%2e/x',
    '~/x',
    '/project/x\u0000',
    '/project/x\u200b',
    '/project/x\u202e',
    '/project/\uff0e\uff0e/x',
    ' /project/x',
    '/project/x ',
    '/project/x\n',
    '/project/e\u0301',
    '/project/.env',
    '.env',
    '/project/.ENV',
    '/project/Secrets/key',
    '/project/secrets',
    '#ADMIN-1',
    `/project/${'x'.repeat(2_000)}`,
  ])('%j', label => expect(passes(label, lists)).toBe(false))

  it('what is plain and whitelisted does', () => {
    for (const label of ['/project/src/main.ts', '#general', 'a b', '/project/.github/x'])
      expect([label, passes(label, lists)]).toEqual([label, true])
    expect(passes('/project/x', {})).toBe(false)
  })
})
