import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { type CuttingProxy, cuttingProxy } from '../../../../test/cutting-proxy.ts'
import { call, chunkOf, chunksOf, progressOf, revisions, type World, world } from '../../../../test/reliability/stream-world.ts'
import { begin, events, headersFor, httpPeer } from '../../../../test/spec/http.ts'
import { type Frame, resultOf, textOf } from '../../../../test/spec/wire.ts'
import { type Client, connect } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { fakeClock } from '../../../testing/index.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

interface Line extends World {
  readonly url: string
  readonly proxy: CuttingProxy
  readonly mcp: Client
}

async function line(revision: RevisionId): Promise<Line> {
  const made = world({ limits: { rates: false } })
  open.push(made.server)
  const { url } = await made.server.listen()
  const proxy = await cuttingProxy(url)
  open.push(proxy)
  const mcp = await connect(proxy.url, { revisions: [revision] })
  open.push(mcp)
  return { ...made, url, proxy, mcp }
}

const asking = (taskId: string): Frame => ({ jsonrpc: '2.0', id: 'wait', method: 'tasks/result', params: { taskId } })

const capabilities = { extensions: { 'dev.vivarium/streaming': {}, 'dev.vivarium/problem': {} } }

describe.each(revisions)('streams over HTTP at %s', revision => {
  it('E8-6: wherever the line is cut, the client gets every chunk once and in order, and nothing is done twice', async () => {
    const { mcp, proxy, allow, effects } = await line(revision)
    const count = 12
    allow(count)
    let runs = 0
    const cut = fc.array(fc.integer({ min: 1, max: 2_000 }), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(cut, async bytes => {
        const of = `r${++runs}-`
        const expected = Array.from({ length: count }, (_, at) => `${of}${at}`)
        // The first cut comes after a checkpoint has: without one there is nothing to go on with.
        proxy.arm(bytes.map((more, at) => (at === 0 ? more + 1_500 : more)))
        const stream = mcp.streamTool('steps', { of, count })
        const got: unknown[] = []
        for await (const chunk of stream) got.push(chunk)
        proxy.arm([])
        expect(got).toEqual(expected.map(one => `${one};`))
        expect((await stream.result).text).toBe(got.join(''))
        expect(effects.filter(one => one.startsWith(of))).toEqual(expected)
      }),
      // On the older wire a client that comes back for its stream waits a second each time. The first is cut for certain.
      { numRuns: revision === '2026-07-28' ? 20 : 3, examples: [[[1, 1, 1, 1]]] },
    )
    expect(proxy.cuts).toBeGreaterThan(2)
  })

  it('E8-9: a slow reader makes the tool wait, and gets every chunk', async () => {
    const { server, url } = await line(revision)
    const [count, size] = [1_500, 16 * 1024]
    let made = 0
    server.tool('flood', {}, async function* (_, ctx) {
      for (; made < count; made++) {
        ctx.progress(made, { total: count })
        yield 'x'.repeat(size)
      }
      return 'flooded'
    })
    const peer = await httpPeer(url, revision, capabilities)
    const { response } = await peer.open('tools/call', call('flood'))
    response.pause()
    // Until it has stood still for a while, which it would not do by itself before its end.
    for (let before = -1; before !== made; ) {
      before = made
      await new Promise(resolve => setTimeout(resolve, 400))
    }
    // What the kernel holds for both ends is the kernel's.
    expect(made * size).toBeLessThan(12 * 1024 * 1024)
    const frames: Frame[] = []
    for await (const { frame } of events(response)) if (frame !== undefined) frames.push(frame)
    const chunks = chunksOf(frames)
    expect(chunks.map(({ sequence }) => sequence)).toEqual(Array.from({ length: count + 1 }, (_, at) => at))
    expect(textOf(frames.at(-1) ?? {})).toBe('flooded')
  })

  it('E8-9: of the progress that a slow reader has not taken yet, the newest takes the place of what was before it', async () => {
    const { server, url } = await line(revision)
    const count = 20_000
    const over = Promise.withResolvers<void>()
    server.tool('tick', {}, async (_, ctx) => {
      for (let at = 1; at <= count; at++) {
        ctx.progress(at, { total: count, message: 'x'.repeat(2_000) })
        if (at % 100 === 0) await new Promise(setImmediate)
      }
      over.resolve()
      return 'ticked'
    })
    const peer = await httpPeer(url, revision, capabilities)
    const { response } = await peer.open('tools/call', call('tick'))
    response.pause()
    // It is not made to wait: only what cannot be left out is.
    await over.promise
    const frames: Frame[] = []
    for await (const { frame } of events(response)) if (frame !== undefined) frames.push(frame)
    const told = progressOf(frames).map(({ progress }) => Number(progress))
    expect(told.length).toBeLessThan(count)
    expect(told).toEqual([...new Set(told)].sort((a, b) => a - b))
    expect(told.at(-1)).toBe(count)
    expect(textOf(frames.at(-1) ?? {})).toBe('ticked')
  })

  it('E8-10: who hangs up without a checkpoint cancels the call where the wire says so', async () => {
    const { url, stop, stopped, allow, done } = await line(revision)
    const peer = await httpPeer(url, revision, {})
    allow(1)
    const { request, response } = await peer.open('tools/call', call('steps', { of: 'a', count: 2 }))
    for await (const { frame } of events(response)) if (frame?.['method'] === 'notifications/progress') break
    request.destroy()
    if (revision === '2026-07-28') {
      await stop()
      expect(stopped).toEqual(['The caller disconnected'])
    } else {
      allow(2)
      await done(2)
      expect(stopped).toEqual([])
    }
  })

  it('E8-10: who hangs up on a task leaves it to go on, and finds its result', async () => {
    const { server, url } = await line(revision)
    const [entered, gate] = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<void>()]
    server.tool('work', { task: 'optional' }, async (_, ctx) => {
      entered.resolve(ctx.signal)
      await gate.promise
      return 'worked'
    })
    const stateless = revision === '2026-07-28'
    const peer = await httpPeer(url, revision, stateless ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {})
    const begun = resultOf((await peer.ask('tools/call', { name: 'work', ...(stateless ? {} : { task: {} }) })).frame)
    const taskId = String((begun['task'] as Frame | undefined)?.['taskId'] ?? begun['taskId'])
    const signal = await entered.promise
    // What waits for its end there is hung up on; elsewhere nothing waits.
    if (!stateless)
      begin(url, { headers: headersFor(revision, 'tasks/result', {}, peer.session), body: asking(taskId) }).destroy()
    await peer.ask('tasks/get', { taskId })
    expect(signal.aborted).toBe(false)
    gate.resolve()
    await expect.poll(async () => resultOf((await peer.ask('tasks/get', { taskId })).frame)['status']).toBe('completed')
  })

  it('E8-6: a raw peer that hangs up and comes back goes on with the same operation', async () => {
    const { url, allow, effects } = await line(revision)
    const peer = await httpPeer(url, revision, capabilities)
    allow(1)
    const { request, response } = await peer.open('tools/call', call('steps', { of: 'a', count: 3 }))
    let seen: ReturnType<typeof chunkOf>
    for await (const { frame } of events(response)) {
      seen = frame === undefined ? undefined : chunkOf(frame)
      if (seen !== undefined) break
    }
    request.destroy()
    allow(3)
    const again = await peer.ask('tools/call', call('steps', { of: 'a', count: 3 }, 'q', seen))
    expect(textOf(again.frame)).toBe('a0;a1;a2;')
    expect(chunksOf(again.frames).map(({ sequence }) => sequence)).toEqual([1, 2, 3])
    expect(effects).toEqual(['a0', 'a1', 'a2'])
  })
})

it('E8-10: where hanging up cancels, who does it with a checkpoint has its grace, and no more', async () => {
  const clock = fakeClock()
  const { server, allow, stopped } = world({ limits: { rates: false }, clock, streaming: { grace: '10s' } })
  open.push(server)
  const { url } = await server.listen()
  const peer = await httpPeer(url, '2026-07-28', capabilities)
  allow(1)
  const { request, response } = await peer.open('tools/call', call('steps', { of: 'a', count: 2 }))
  for await (const { frame } of events(response)) if (frame !== undefined && chunkOf(frame) !== undefined) break
  request.destroy()
  const from = clock.now()
  await expect
    .poll(() => {
      if (stopped.length === 0) clock.advance(500)
      return stopped
    })
    .toEqual(['No caller resumed the operation in time'])
  expect(clock.now() - from).toBeGreaterThanOrEqual(10_000)
})
