import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { codeOf } from '../../../../test/reliability/keyed-world.ts'
import {
  call,
  chunkOf,
  chunksOf,
  nextChunk,
  progressOf,
  revisions,
  streamingOf,
  worldsPerTest,
} from '../../../../test/reliability/stream-world.ts'
import { resultOf, textOf } from '../../../../test/spec/wire.ts'
import { fakeClock } from '../../../testing/clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'vivarium-streams-'))
const make = worldsPerTest()
let files = 0
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const sqlite = (): string => `sqlite:${join(folder, `${++files}.db`)}`

describe.each(revisions)('streams at %s', revision => {
  it('E8-1: without a progress token nothing is told but the result', async () => {
    const wire = await make().speak(revision)
    const before = wire.heard.length
    expect(resultOf(await wire.ask('tools/call', { name: 'rows' }))['structuredContent']).toBeDefined()
    expect(wire.heard.slice(before)).toHaveLength(1)
  })

  it('E8-2: progress rises strictly, whatever tells it, and a fraction is there only where the total is known', async () => {
    const wire = await make().speak(revision)
    await wire.ask('tools/call', call('measured'))
    const told = progressOf(wire.heard)
    const values = told.map(({ progress }) => Number(progress))
    expect(values).toEqual([...new Set(values)].sort((a, b) => a - b))
    const said = wire.heard.map(frame => streamingOf(frame) ?? {}).filter(({ type }) => type === 'progress')
    expect(said.map(({ progress }) => progress)).toEqual([0.25, 0.5])
    expect(said[1]).toMatchObject({ estimated_remaining_seconds: 3, partial_result: { found: 2 } })
    for (const one of said) expectFits(one, 'streaming.schema.json', 'ProgressNotification')
    await wire.ask('tools/call', call('rows'))
    expect(wire.heard.slice(-4, -1).some(frame => 'progress' in (streamingOf(frame) ?? {}))).toBe(false)
  })

  it('E8-2: values that count and values that measure rise together', async () => {
    const { server, speak } = make()
    server.tool('late', {}, async function* (_, ctx) {
      yield 'a'
      yield 'b'
      ctx.progress(0.5, { total: 1 })
      yield 'c'
    })
    const wire = await speak(revision)
    await wire.ask('tools/call', call('late'))
    const values = progressOf(wire.heard).map(({ progress }) => Number(progress))
    expect(values).toHaveLength(5)
    expect(values).toEqual([...new Set(values)].sort((a, b) => a - b))
  })

  it.each(['rows', 'broken'])('E8-3: the chunks of %s are numbered from 0 without a gap, and one is the last', async tool => {
    const wire = await make().speak(revision)
    await wire.ask('tools/call', call(tool))
    const chunks = chunksOf(wire.heard)
    expect(chunks.map(({ sequence }) => sequence)).toEqual(chunks.map((_, at) => at))
    expect(chunks.filter(({ is_final }) => is_final)).toEqual([chunks.at(-1)])
    expect(new Set(chunks.map(({ operation_id }) => operation_id)).size).toBe(1)
  })

  it('E8-4: the result is complete by itself, and what the chunks come to', async () => {
    const { speak, allow } = make()
    allow(3)
    const wire = await speak(revision)
    let read = 0
    const data = () => {
      const heard = wire.heard.slice(read)
      read += heard.length
      return chunksOf(heard).flatMap(chunk => ('data' in chunk ? [chunk.data] : []))
    }
    expect(textOf(await wire.ask('tools/call', call('steps', { of: 'a', count: 3 })))).toBe(data().join(''))
    const rows = resultOf(await wire.ask('tools/call', call('rows')))['structuredContent']
    expect(revision === '2025-11-25' ? (rows as { result: unknown }).result : rows).toEqual(data())
    expect(resultOf(await wire.ask('tools/call', call('blocks')))['content']).toEqual(data())
    expect(resultOf(await wire.ask('tools/call', call('summed')))['structuredContent']).toEqual({ sum: 3 })
    expect(data()).toEqual([1, 2])
  })

  it('E8-5: after the result nothing is told, though the handler goes on', async () => {
    const { server, speak } = make()
    const late = Promise.withResolvers<() => void>()
    server.tool('late', {}, async function* (_, ctx) {
      yield 'a'
      late.resolve(() => ctx.progress(1_000))
    })
    const wire = await speak(revision)
    await wire.ask('tools/call', call('late'))
    const before = progressOf(wire.heard).length
    ;(await late.promise)()
    expect(progressOf(await wire.quiet())).toHaveLength(before)
  })

  it.each(['memory', 'sqlite'])(
    'E8-6: a call that was cut off goes on after its checkpoint, on %s, and does nothing twice',
    async kind => {
      const { speak, allow, effects, done } = make(kind === 'sqlite' ? { store: sqlite() } : {})
      const first = await speak(revision)
      allow(2)
      first.begin('tools/call', call('steps', { of: 'a', count: 5 }))
      const seen = [await nextChunk(first), await nextChunk(first)]
      await first.close()
      allow(4)
      await done(4)
      const second = await speak(revision)
      const answer = second.ask('tools/call', call('steps', { of: 'a', count: 5 }, 'q', seen[0]))
      allow(5)
      expect(textOf(await answer)).toBe('a0;a1;a2;a3;a4;')
      const rest = chunksOf(second.heard)
      expect(rest.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
      expect(rest.map(({ data }) => data)).toEqual(['a1;', 'a2;', 'a3;', 'a4;', undefined])
      expect(new Set([...seen, ...rest].map(({ operation_id }) => operation_id)).size).toBe(1)
      expect(effects).toEqual(['a0', 'a1', 'a2', 'a3', 'a4'])
    },
  )

  it('E8-6: who goes on with a call that is still read elsewhere takes it over', async () => {
    const { speak, allow, effects } = make()
    const [first, second] = [await speak(revision), await speak(revision)]
    allow(1)
    const cut = first.ask('tools/call', call('steps', { of: 'a', count: 2 }))
    const answer = second.ask('tools/call', call('steps', { of: 'a', count: 2 }, 'q', await nextChunk(first)))
    expect(codeOf(await cut)).toBe('CHECKPOINT_NOT_FOUND')
    allow(2)
    expect(textOf(await answer)).toBe('a0;a1;')
    expect(effects).toEqual(['a0', 'a1'])
  })

  it('E8-7: a checkpoint is good for its principal, its tool and its arguments alone, and nothing is begun with another', async () => {
    const { speak, allow, effects } = make()
    allow(9)
    const ann = await speak(revision, { principal: 'ann' })
    await ann.ask('tools/call', call('steps', { of: 'a', count: 2 }))
    const chunk = chunksOf(ann.heard)[0] ?? expect.fail()
    const bob = await speak(revision, { principal: 'bob' })
    const token = chunk.checkpoint_token ?? ''
    const forged = [
      [bob, call('steps', { of: 'a', count: 2 }, 'q', chunk)],
      [ann, call('steps', { of: 'a', count: 3 }, 'q', chunk)],
      [ann, call('rows', {}, 'q', chunk)],
      [ann, call('plain', {}, 'q', chunk)],
      [ann, call('steps', { of: 'a', count: 2 }, 'q', { ...chunk, operation_id: 'another' })],
      [ann, call('steps', { of: 'a', count: 2 }, 'q', { ...chunk, checkpoint_token: `${token.slice(0, -2)}AA` })],
    ] as const
    for (const [wire, params] of forged) {
      const answer = await wire.ask('tools/call', params)
      expect(codeOf(answer)).toBe('CHECKPOINT_NOT_FOUND')
      expect(resultOf(answer)['_meta']).toMatchObject({ 'dev.vivarium/problem': { category: 'permanent' } })
    }
    expect(effects).toEqual(['a0', 'a1'])
  })

  it('E8-7: what names no checkpoint is refused as it stands', async () => {
    const wire = await make().speak(revision)
    const params = { name: 'rows', _meta: { 'dev.vivarium/streaming': { resume: { operation_id: 7 } } } }
    expect(await wire.ask('tools/call', params)).toMatchObject({ error: { code: -32602 } })
  })

  it('E8-8: a call that has ended gives its tail and its result again, for as long as it is kept', async () => {
    const clock = fakeClock()
    const { speak, allow, effects } = make({ clock, streaming: { keep: '1m' } })
    allow(3)
    const wire = await speak(revision)
    const first = await wire.ask('tools/call', call('steps', { of: 'a', count: 3 }))
    const chunk = chunksOf(wire.heard)[1] ?? expect.fail()
    const other = await speak(revision)
    const again = await other.ask('tools/call', call('steps', { of: 'a', count: 3 }, 'q', chunk))
    expect(resultOf(again)).toEqual(resultOf(first))
    expect(chunksOf(other.heard).map(({ sequence }) => sequence)).toEqual([2, 3])
    clock.advance(60_001)
    const late = await other.ask('tools/call', call('steps', { of: 'a', count: 3 }, 'r', chunk))
    expect(codeOf(late)).toBe('CHECKPOINT_NOT_FOUND')
    expect(effects).toHaveLength(3)
  })

  it('E8-8: a call that failed fails in the same way again', async () => {
    const wire = await make().speak(revision)
    const first = await wire.ask('tools/call', call('broken'))
    const again = await wire.ask('tools/call', call('broken', {}, 'q', chunksOf(wire.heard)[0]))
    expect([codeOf(again), textOf(again)]).toEqual(['RESOURCE_NOT_FOUND', textOf(first)])
  })

  it('E8-9: while nobody reads, a call runs ahead a little and then waits', async () => {
    const { server, speak } = make({ streaming: { length: 4_000 } })
    let made = 0
    server.tool('fast', {}, async function* () {
      for (; made < 100; made++) yield 'x'.repeat(100)
    })
    const first = await speak(revision)
    first.begin('tools/call', call('fast'))
    const chunk = await nextChunk(first)
    await first.close()
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    const ahead = made
    const second = await speak(revision)
    const last = chunksOf(first.heard).at(-1) ?? chunk
    const answer = await second.ask('tools/call', call('fast', {}, 'q', last))
    expect(ahead).toBeLessThan(100)
    expect(textOf(answer)).toHaveLength(10_000)
    const rest = chunksOf(second.heard).map(({ sequence }) => sequence)
    expect(rest).toEqual(Array.from({ length: 100 - last.sequence }, (_, at) => last.sequence + 1 + at))
  })

  it('E8-9: a checkpoint whose chunks are kept no longer is none', async () => {
    const { speak, allow } = make({ streaming: { length: 8 } })
    allow(9)
    const wire = await speak(revision)
    await wire.ask('tools/call', call('steps', { of: 'a', count: 9 }))
    const [early] = chunksOf(wire.heard)
    expect(codeOf(await wire.ask('tools/call', call('steps', { of: 'a', count: 9 }, 'q', early)))).toBe('CHECKPOINT_NOT_FOUND')
    const late = chunksOf(wire.heard)[7]
    expect(textOf(await wire.ask('tools/call', call('steps', { of: 'a', count: 9 }, 'r', late)))).toContain('a8;')
  })

  it('E8-10: a caller that has gone cancels its call, unless it can come back; then it has so long', async () => {
    const clock = fakeClock()
    const { speak, allow, stop, stopped, effects } = make({ clock, streaming: { grace: '10s' } })
    allow(1)
    const plain = await speak(revision, { capabilities: { extensions: {} } })
    plain.begin('tools/call', call('steps', { of: 'p', count: 2 }))
    await plain.next(frame => frame['method'] === 'notifications/progress')
    await plain.close()
    await stop()
    stopped.length = 0
    const wire = await speak(revision)
    wire.begin('tools/call', call('steps', { of: 'a', count: 2 }))
    const chunk = await nextChunk(wire)
    await wire.close()
    const other = await speak(revision)
    await other.quiet()
    clock.advance(9_000)
    expect(stopped).toEqual([])
    clock.advance(1_001)
    await stop()
    expect(stopped).toEqual(['No caller resumed the operation in time'])
    await other.quiet()
    const late = await other.ask('tools/call', call('steps', { of: 'a', count: 2 }, 'q', chunk))
    expect([codeOf(late), effects]).toEqual(['CHECKPOINT_NOT_FOUND', ['p0', 'a0']])
  })

  it('E8-10: who goes on with a call can cancel it', async () => {
    const { speak, allow, stop, stopped } = make()
    allow(1)
    const [first, second] = [await speak(revision), await speak(revision)]
    first.begin('tools/call', call('steps', { of: 'a', count: 2 }))
    const chunk = await nextChunk(first)
    await first.close()
    const id = second.begin('tools/call', call('steps', { of: 'a', count: 2 }, 'q', chunk))
    await second.quiet()
    second.tell('notifications/cancelled', { requestId: id })
    await stop()
    expect(stopped).toEqual(['The caller cancelled the operation'])
  })

  it('peers that know nothing of streams get plain progress in words, and the whole result', async () => {
    const { speak, allow } = make()
    allow(2)
    const wire = await speak(revision, { capabilities: { extensions: {} } })
    expect(textOf(await wire.ask('tools/call', call('steps', { of: 'a', count: 2 })))).toBe('a0;a1;')
    const told = progressOf(wire.heard)
    expect(told.map(({ message }) => message)).toEqual(['a0;', 'a1;'])
    expect(wire.heard.some(frame => chunkOf(frame) !== undefined || streamingOf(frame) !== undefined)).toBe(false)
  })

  it('a tool says in the list that it streams, and the server that it knows how', async () => {
    const wire = await make().speak(revision)
    const { tools } = resultOf(await wire.ask('tools/list')) as { tools: { name: string; _meta?: object }[] }
    const streaming = tools.filter(({ _meta }) => JSON.stringify(_meta)?.includes('"supports_streaming":true'))
    expect(streaming.map(({ name }) => name)).toEqual(['steps', 'blocks', 'rows', 'summed', 'broken', 'measured'])
    const hello = wire.hello ?? (await wire.ask('server/discover'))
    expect(JSON.stringify(hello)).toContain('"dev.vivarium/streaming":{}')
  })

  it('E8-6: a call that asks its user something tells no chunk twice', async () => {
    const { server, speak } = make()
    server.tool('asks', {}, async function* (_, ctx) {
      yield 'before'
      const sure = await ctx.confirm('Sure?')
      yield `after ${sure}`
    })
    const accept = { action: 'accept', content: { confirm: true } }
    const capabilities = { elicitation: {}, extensions: { 'dev.vivarium/streaming': {} } }
    const wire = await speak(revision, { capabilities, answers: { 'elicitation/create': () => accept } })
    let answer = await wire.ask('tools/call', call('asks'))
    if (revision === '2026-07-28') {
      const { requestState, inputRequests } = resultOf(answer) as { requestState: string; inputRequests: object }
      const inputResponses = Object.fromEntries(Object.keys(inputRequests).map(key => [key, accept]))
      answer = await wire.ask('tools/call', { ...call('asks', {}, 'q'), requestState, inputResponses })
    }
    expect(textOf(answer)).toBe('beforeafter true')
    const chunks = chunksOf(wire.heard)
    expect(chunks.map(({ data }) => data)).toEqual(['before', 'after true', undefined])
    expect(chunks.map(({ sequence }) => sequence)).toEqual([0, 1, 2])
    expect(new Set(chunks.map(({ operation_id }) => operation_id)).size).toBe(1)
  })
})
