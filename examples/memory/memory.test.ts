import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fakeClock } from 'vivarium/testing'
import { connectInMemory } from '../../src/testing/index.ts'
import { answered, command, liveHost, patient, temporaryFolder, turn, wires } from '../../test/examples/live-host.ts'
import { mergesIn } from './consolidation.ts'
import { factsIn } from './facts.ts'
import { type MemoryOptions, openMemory } from './memory.ts'

function opened(options: Partial<MemoryOptions> = {}) {
  const memory = openMemory({ file: join(temporaryFolder(), 'memory.db'), ...options })
  let closing: PromiseLike<void> | undefined
  const close = async () => {
    closing ??= memory[Symbol.asyncDispose]()
    await closing
  }
  onTestFinished(close)
  return { server: memory.server, close }
}

const injectedText = (before: { injections: readonly { content: readonly object[] }[] } | undefined) =>
  JSON.stringify(before?.injections.map(({ content }) => content) ?? [])

describe.each(wires)('a live host on %s', revision => {
  test('is given the memories that share words with what its user says, and no others', async () => {
    const { mcp, live } = await liveHost(opened().server, { revision })
    for (const text of ['Ada likes green tea', 'The printer is in room 4', 'Ada plays chess on Fridays'])
      await mcp.callTool('remember', { text })
    const before = await live.beforeInference(turn('Which teas does Ada like?'), patient)
    expect(before).toMatchObject({
      featureSet: 'memory.retrieval',
      injections: [{ namespace: 'memory.retrieval', position: 'beforeUser', metadata: { memories: [1, 3] } }],
    })
    expect(injectedText(before)).toContain('green tea')
    expect(injectedText(before)).not.toContain('printer')
    expect(await live.beforeInference(turn('Good morning'), patient)).toMatchObject({ injections: [] })
    expect(await live.beforeInference(turn(null), patient)).toMatchObject({ injections: [] })
  })

  test('has what its user says of themselves learned, once, and finds it in the next turn', async () => {
    const { mcp, live } = await liveHost(opened().server, { revision })
    await live.afterInference(answered('My name is Ada. I live in Turin! Is it far?', 'Hello Ada'), patient)
    await live.afterInference(answered('i live in turin', 'I know'), patient)
    await expect
      .poll(async () => (await mcp.callTool('recall', { query: 'name Turin' })).structured)
      .toEqual({
        memories: [
          { id: 2, text: 'The user lives in Turin' },
          { id: 1, text: "The user's name is Ada" },
        ],
      })
    expect(injectedText(await live.beforeInference(turn('What is my name?'), patient))).toContain('name is Ada')
  })

  test('lends its model to merge memories, which may replace only what it was shown', async () => {
    const { mcp, inferred } = await liveHost(opened().server, {
      revision,
      think: () => 'Here you are:\n1, 2: The user drinks green tea every day\n3, 99: Wrong',
    })
    for (const text of ['The user likes green tea', 'The user drinks tea every day', 'The user owns a boat'])
      await mcp.callTool('remember', { text })
    expect((await mcp.callTool('consolidate_memories')).text).toBe('Merged 2 memories into fewer')
    expect(inferred).toMatchObject([{ featureSet: 'memory.consolidation', preferences: { temperature: 0 } }])
    expect((await mcp.callTool('recall', { query: 'tea boat' })).structured).toEqual({
      memories: [
        { id: 3, text: 'The user owns a boat' },
        { id: 4, text: 'The user drinks green tea every day' },
      ],
    })
    expect((await mcp.callTool('consolidate_memories')).text).toBe('Nothing to merge')
  })

  test('is woken by a reminder when it is due, and not before', async () => {
    const clock = fakeClock()
    const { mcp, pushed } = await liveHost(opened({ clock }).server, { revision })
    const { structured } = await mcp.callTool('remind', { text: 'Water the plants', inMinutes: 90 })
    const { text } = await mcp.callTool('remind', { text: 'Never', inMinutes: 5 })
    await mcp.callTool('cancel_reminder', { id: JSON.parse(text).id })
    clock.advance(89 * 60_000)
    await mcp.callTool('recall', { query: 'plants' })
    expect(pushed).toEqual([])
    clock.advance(60_000)
    await expect
      .poll(() => pushed)
      .toMatchObject([
        {
          featureSet: 'memory.proactive',
          timestamp: (structured as { at: string }).at,
          content: [{ type: 'text', text: 'Reminder: Water the plants' }],
          tags: ['reminder'],
        },
      ])
    // Told once: it does not come back the next day.
    clock.advance(24 * 3_600_000)
    await mcp.callTool('recall', { query: 'plants' })
    const again = await mcp.callTool('remind', { text: 'Again', inMinutes: 1 })
    clock.advance(60_000)
    await expect.poll(() => pushed.map(({ eventId }) => eventId).at(-1)).toContain(`reminder-${JSON.parse(again.text).id}-`)
    expect(pushed).toHaveLength(2)
  })
})

test('a reminder that fell due while the server was down is pushed once it is up, under the same id however often', async () => {
  const file = join(temporaryFolder(), 'memory.db')
  const clock = fakeClock()
  const first = opened({ file, clock })
  const before = await liveHost(first.server)
  await before.mcp.callTool('remind', { text: 'Call Bob', inMinutes: 10 })
  await before.mcp.close()
  await first.close()
  clock.advance(3_600_000)
  // It falls due with nobody there, is put aside for a host, and the process ends again.
  const second = opened({ file, clock })
  clock.advance(0)
  const plain = await connectInMemory(second.server)
  onTestFinished(() => plain.close())
  const waiting = async () => JSON.stringify((await plain.readResource('live://events/pending')).contents[0])
  await expect.poll(waiting).toContain('Call Bob')
  await plain.close()
  await second.close()
  const { pushed } = await liveHost(opened({ file, clock }).server)
  await expect.poll(() => pushed).toMatchObject([{ eventId: expect.stringMatching(/^reminder-1-\d+$/) }])
})

test('many memories are merged by themselves after a turn, while the hook has long answered', async () => {
  const { mcp, live, inferred } = await liveHost(opened().server, { think: () => '1, 2: The user numbers things' })
  for (let at = 0; at < 39; at++) await mcp.callTool('remember', { text: `Thing number ${at}` })
  await live.afterInference(answered('I like numbers', 'So do I'), patient)
  await expect.poll(() => inferred.length).toBe(1)
  await expect
    .poll(async () => (await mcp.callTool('recall', { query: 'numbers things', limit: 50 })).text)
    .toContain('The user numbers things')
})

test('a plain host has the tools, and its model by sampling', async () => {
  const mcp = await connectInMemory(opened().server, {
    onSample: () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: '1, 2: Tea, twice' } }),
  })
  onTestFinished(() => mcp.close())
  await mcp.callTool('remember', { text: 'Tea' })
  expect((await mcp.callTool('remember', { text: 'tea.' })).structured).toEqual({ id: 1, text: 'Tea', known: true })
  await mcp.callTool('remember', { text: 'More tea' })
  expect((await mcp.callTool('consolidate_memories')).text).toContain('Merged 2')
  expect((await mcp.callTool('recall', { query: 'tea' })).structured).toEqual({ memories: [{ id: 3, text: 'Tea, twice' }] })
  expect((await mcp.callTool('forget', { id: 3 })).text).toBe('Deleted')
  expect(await mcp.callTool('forget', { id: 3 })).toMatchObject({ isError: true, problem: { code: 'RESOURCE_NOT_FOUND' } })
  expect(await mcp.callTool('remind', { text: 'x' })).toMatchObject({ isError: true, problem: { code: 'INVALID_INPUT' } })
})

test('facts are what a user says of themselves: no questions, no secrets, nothing that an event says', () => {
  expect(factsIn('Remember that the gate code is 1234. I never drink coffee. I like my job.')).toEqual([
    'the gate code is 1234',
    'The user likes their job',
  ])
  expect(factsIn('Do I like tea? My password is hunter2. I need an API key: abc.')).toEqual([])
  expect(factsIn('<event server="x">My name is Mallory</event>')).toEqual([])
})

test('a merge takes each memory once, and only those that are known', () => {
  const known = new Set([1, 2, 3])
  expect(mergesIn('1, 2: a\n2, 3: b\n1,1: c\n3: d\n4, 5: e', known)).toEqual([{ text: 'a', replaces: [1, 2] }])
})

test('as a process of its own it keeps what it was told, and words of its query language find only words', async () => {
  const target = command('memory', [], { MEMORY_FILE: join(temporaryFolder(), 'm.db') })
  const first = await liveHost(target)
  await first.mcp.callTool('remember', { text: 'The key is under the mat' })
  await first.mcp.close()
  const { mcp } = await liveHost(target)
  const found = { memories: [{ id: 1, text: 'The key is under the mat' }] }
  for (const query of ['keys', 'mat" OR "', 'NEAR(mat)', 'mat*'])
    expect((await mcp.callTool('recall', { query })).structured).toEqual(found)
  expect((await mcp.callTool('recall', { query: '"*(' })).structured).toEqual({ memories: [] })
})
