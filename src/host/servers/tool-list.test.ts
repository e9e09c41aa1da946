import { expect, test } from 'vitest'
import { fakeClock } from '../../testing/clock.ts'
import { ToolList } from './tool-list.ts'

type Answer = ReturnType<typeof Promise.withResolvers<readonly string[]>>

/** A list that is asked for, and answered when the test says so. */
function world(holds = false) {
  const clock = fakeClock()
  const asked: Answer[] = []
  const list = (): Promise<readonly string[]> => {
    const answer: Answer = Promise.withResolvers()
    asked.push(answer)
    return answer.promise
  }
  const tools = new ToolList<string>({ clock, list, holds: () => holds })
  /** Lists once. */
  const first = async (names: readonly string[]) => {
    const got = tools.get()
    asked.at(-1)?.resolve(names)
    return got
  }
  return { clock, asked, tools, first }
}

test('those who ask at the same time share one list, and who asks later gets another', async () => {
  const { asked, tools } = world()
  const both = [tools.get(), tools.get()]
  asked[0]?.resolve(['a'])
  expect(await Promise.all(both)).toEqual([['a'], ['a']])
  const later = tools.get()
  asked[1]?.resolve(['b'])
  expect(await later).toEqual(['b'])
})

test('a list that holds is asked for once, until it is stale', async () => {
  const { asked, tools, first } = world(true)
  await first(['a'])
  expect([await tools.get(), asked.length]).toEqual([['a'], 1])
  tools.stale()
  const later = tools.get()
  asked[1]?.resolve(['b'])
  expect(await later).toEqual(['b'])
})

test('a server that does not answer keeps nobody waiting: the last list is given, soon and then at once', async () => {
  const { clock, asked, tools, first } = world()
  await first(['a'])
  const waiting = tools.get()
  clock.advance(250)
  expect(await waiting).toEqual(['a'])
  expect(await tools.get()).toEqual(['a'])
  expect(asked).toHaveLength(2)
})

test('the first list is waited for longer, and then there is none', async () => {
  const { clock, tools } = world()
  const waiting = tools.get()
  clock.advance(10_000)
  expect(await waiting).toEqual([])
})

test('a server that cannot list its tools is left alone for a while', async () => {
  const { clock, asked, tools } = world()
  const failing = tools.get()
  asked[0]?.reject(new Error('no'))
  await expect(failing).rejects.toThrow('no')
  expect([await tools.get(), asked.length]).toEqual([[], 1])
  clock.advance(5_000)
  const again = tools.get()
  asked[1]?.resolve(['a'])
  expect(await again).toEqual(['a'])
})

test('what was asked before a change is no answer to who asks after it', async () => {
  const { asked, tools, first } = world(true)
  await first(['a'])
  tools.stale()
  const before = tools.get()
  tools.stale()
  const after = tools.get()
  asked[2]?.resolve(['new'])
  asked[1]?.resolve(['old'])
  expect(await Promise.all([before, after])).toEqual([['old'], ['new']])
  expect(await tools.get()).toEqual(['new'])
})
