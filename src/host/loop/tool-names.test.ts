import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nameTools } from './tool-names.ts'

const names = (tools: readonly (readonly [server: string, tool: string])[], taken: readonly string[] = []): readonly string[] =>
  nameTools(
    tools.map(([server, tool]) => ({ server, tool })),
    new Set(taken),
  ).map(({ name }) => name)

test('a name that only one server uses stays as it is', () => {
  expect(
    names([
      ['a', 'read'],
      ['b', 'write'],
    ]),
  ).toEqual(['read', 'write'])
})

test('names that collide carry their server in front', () => {
  expect(
    names([
      ['a', 'read'],
      ['b', 'read'],
    ]),
  ).toEqual(['a_read', 'b_read'])
})

test('a name of the host is never given away', () => {
  expect(names([['a', 'read_result']], ['read_result'])).toEqual(['a_read_result'])
})

test('what providers do not take is replaced, and of a long name the tail is kept', () => {
  const long = `${'x'.repeat(70)}.create_ticket`
  expect(names([['a', 'git/commit!']])).toEqual(['git_commit_'])
  expect(names([['a', long]])[0]).toMatch(/^x{50}_create_ticket$/)
})

test('every tool gets a name of its own that all providers take, whatever servers call theirs', () => {
  const tool = fc.tuple(
    fc.constantFrom('a', 'b', 'a_b'),
    fc.oneof(fc.string({ maxLength: 90 }), fc.constantFrom('x', 'X', 'b_x', 'é', 'è')),
  )
  fc.assert(
    fc.property(fc.array(tool, { maxLength: 30 }), tools => {
      const given = names(tools, ['read_result'])
      expect(new Set(given.map(name => name.toLowerCase())).size).toBe(tools.length)
      for (const name of given) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    }),
  )
})
