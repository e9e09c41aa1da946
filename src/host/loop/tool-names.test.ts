import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { ToolNames } from './toolbox.ts'

type Offered = readonly (readonly [server: string, tool: string])[]

async function names(tools: Offered, taken: readonly string[] = [], given = new ToolNames(memoryStore(), taken)) {
  const all = await given.of(tools.map(([server, tool]) => ({ server, tool })))
  return tools.map(([server, tool]) => all.get(server)?.get(tool))
}

test('a name that only one server uses stays as it is', async () => {
  const tools: Offered = [
    ['a', 'read'],
    ['b', 'write'],
  ]
  expect(await names(tools)).toEqual(['read', 'write'])
})

test('names that collide, also in another case, carry their server in front', async () => {
  const tools: Offered = [
    ['a', 'read'],
    ['b', 'Read'],
  ]
  expect(await names(tools)).toEqual(['a_read', 'b_Read'])
})

test('a name of the host is never given away', async () => {
  expect(await names([['a', 'read_result']], ['read_result'])).toEqual(['a_read_result'])
})

test('what providers do not take is replaced behind the name of the server, and of a long name the tail is kept', async () => {
  const long = `${'x'.repeat(70)}.create_ticket`
  expect(await names([['a', 'git/commit!']])).toEqual(['a_git_commit_'])
  expect((await names([['a', long]]))[0]).toMatch(/^[0-9a-f]{8}_x+_create_ticket$/)
})

test('of more names than are remembered a server loses its own oldest, and no other server loses any', async () => {
  const given = new ToolNames(memoryStore())
  await names([['b', 'pay']], [], given)
  await names(
    Array.from({ length: 1_200 }, (_, n) => ['a', `t${n}`] as const),
    [],
    given,
  )
  expect(await names([['a', 'pay']], [], given)).toEqual(['a_pay'])
})

test('every tool gets a name of its own that all providers take, whatever servers call theirs', async () => {
  const tool = fc.tuple(
    fc.constantFrom('a', 'b', 'a_b'),
    fc.oneof(fc.string({ maxLength: 90 }), fc.constantFrom('x', 'X', 'b_x', 'é', 'è')),
  )
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(tool, { maxLength: 30, selector: one => one.join('/') }), async tools => {
      const given = await names(tools, ['read_result'])
      expect(new Set(given.map(name => name?.toLowerCase())).size).toBe(tools.length)
      for (const name of given) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    }),
  )
})
