import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, chunksOf, revisions, worldsPerTest } from '../../../../test/reliability/stream-world.ts'
import { enveloped, type Frame, helloParams, textOf } from '../../../../test/spec/wire.ts'
import { type Checkpoint, connect, type ToldProgress } from '../../../client/index.ts'
import { createServer } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/connect.ts'

const folder = mkdtempSync(join(tmpdir(), 'vivarium-stream-clients-'))
let files = 0
const make = worldsPerTest()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const program = fileURLToPath(new URL('../../../../test/reliability/streaming-process.ts', import.meta.url))

async function read<C>(stream: AsyncIterable<C>): Promise<C[]> {
  const all: C[] = []
  for await (const chunk of stream) all.push(chunk)
  return all
}

describe.each(revisions)('reading streams at %s', revision => {
  it('E8-4: gives chunks as they come, and then the whole result, both of the type that was asked for', async () => {
    const { server } = make()
    await using mcp = await connectInMemory(server, { revision })
    const row = z.object({ row: z.number() })
    const output = revision === '2026-07-28' ? z.array(row) : z.object({ result: z.array(row) })
    const stream = mcp.streamTool('rows', {}, { chunk: row, output })
    const rows: number[] = []
    for await (const chunk of stream) rows.push(chunk.row)
    expect(rows).toEqual([1, 2, 3])
    expect((await stream.result).isError).toBe(false)
    await expect(read(mcp.streamTool('blocks', {}, { chunk: z.string() }))).rejects.toThrow('does not match the option output')
  })

  it('E8-2: tells how long it will still take, and what there is already', async () => {
    const { server } = make()
    await using mcp = await connectInMemory(server, { revision })
    for (const way of ['callTool', 'streamTool'] as const) {
      const told: ToldProgress[] = []
      const onProgress = (step: ToldProgress) => told.push(step)
      if (way === 'callTool') await mcp.callTool('measured', {}, { onProgress })
      else expect(await read(mcp.streamTool('measured', {}, { onProgress }))).toEqual(['a', 'b', 'c'])
      expect(told).toContainEqual({ progress: 0.5, total: 1, remainingMs: 3000, partial: { found: 2 } })
      expect(told.every(step => !('_meta' in step))).toBe(true)
    }
  })

  it('judges by the pace how long it will still take', async () => {
    let now = 1_000_000
    const clock = { now: () => now, setTimeout: () => () => {} }
    const server = createServer({ name: 's', version: '1.0.0', clock })
    server.tool('paced', {}, (_, ctx) => {
      ctx.progress(0, { total: 100 })
      now += 4_000
      ctx.progress(20, { total: 100 })
      return 'done'
    })
    server.tool('other', {}, async function* () {})
    await using mcp = await connectInMemory(server, { revision })
    const told: ToldProgress[] = []
    await mcp.callTool('paced', {}, { onProgress: step => told.push(step) })
    expect(told.map(({ remainingMs }) => remainingMs)).toEqual([undefined, 16_000])
    await server.close()
  })

  it('a tool that does not stream gives its result as the only chunk; one that fails gives none', async () => {
    const { server } = make()
    await using mcp = await connectInMemory(server, { revision })
    expect(await read(mcp.streamTool('plain'))).toEqual(['all at once'])
    const failed = mcp.streamTool('no such tool')
    await expect(read(failed)).rejects.toThrow('no such tool')
    await expect(failed.result).rejects.toThrow('no such tool')
    const broken = mcp.streamTool('broken')
    expect(await read(broken)).toEqual(['so far'])
    expect(await broken.result).toMatchObject({ isError: true, problem: { code: 'RESOURCE_NOT_FOUND' } })
  })

  it('E8-10: who leaves the loop cancels the call', async () => {
    const { server, allow, stop } = make()
    allow(1)
    await using mcp = await connectInMemory(server, { revision })
    const stream = mcp.streamTool('steps', { of: 'a', count: 2 })
    for await (const chunk of stream) {
      expect(chunk).toBe('a0;')
      break
    }
    await stop()
    await expect(stream.result).rejects.toThrow('stopped reading')
    await expect(read(stream)).rejects.toThrow('once')
  })

  it('E8-6: another client goes on with what one has begun, from a checkpoint that was written down', async () => {
    const { server, allow, effects } = make()
    allow(2)
    const first = await connectInMemory(server, { revision })
    const begun = first.streamTool('steps', { of: 'a', count: 4 })
    let kept: Checkpoint | undefined
    const got: unknown[] = []
    const reading = (async () => {
      for await (const chunk of begun) {
        got.push(chunk)
        kept = JSON.parse(JSON.stringify(begun.checkpoint))
        if (got.length === 2) await first.close()
      }
    })()
    await expect(reading).rejects.toThrow()
    allow(4)
    await using second = await connectInMemory(server, { revision })
    const stream = second.streamTool('steps', { of: 'a', count: 4 }, { resume: kept ?? expect.fail() })
    got.push(...(await read(stream)))
    expect(got).toEqual(['a0;', 'a1;', 'a2;', 'a3;'])
    expect((await stream.result).text).toBe('a0;a1;a2;a3;')
    expect(effects).toEqual(['a0', 'a1', 'a2', 'a3'])
  })

  it('E8-6: what one replica began is gone on with at another, which can cancel it too', async () => {
    const store = `sqlite:${join(folder, `${++files}.db`)}`
    const [one, two] = [make({ store }), make({ store })]
    one.allow(1)
    const wire = await one.speak(revision, { principal: 'ann' })
    const elsewhere = await two.speak(revision, { principal: 'ann' })
    for (const ending of ['result', 'cancel']) {
      wire.begin('tools/call', call('steps', { of: ending, count: 3 }, ending))
      const { params } = await wire.next(frame => JSON.stringify(frame).includes(`"${ending}0;"`))
      const [chunk] = chunksOf([{ method: 'notifications/progress', params }])
      const again = call('steps', { of: ending, count: 3 }, `${ending} again`, chunk)
      const id = elsewhere.begin('tools/call', again)
      if (ending === 'cancel') {
        await elsewhere.quiet()
        elsewhere.tell('notifications/cancelled', { requestId: id })
        await wire.close()
        await one.stop()
        continue
      }
      one.allow(3)
      expect(textOf(await elsewhere.next(frame => frame['id'] === id))).toBe('result0;result1;result2;')
      expect(chunksOf(elsewhere.heard).map(({ sequence }) => sequence)).toEqual([1, 2, 3])
      one.allow(1)
    }
    expect([one.effects, two.effects]).toEqual([['result0', 'result1', 'result2', 'cancel0'], []])
  })

  it('E8-7: a checkpoint of a process that is gone is answered that nobody knows, and nothing is begun', async () => {
    const store = `sqlite:${join(folder, `${++files}.db`)}`
    const one = make({ store })
    one.allow(1)
    const wire = await one.speak(revision, { principal: 'ann' })
    wire.begin('tools/call', call('steps', { of: 'a', count: 3 }))
    const frame = await wire.next(heard => chunksOf([heard]).length > 0)
    await one.server.close()
    const two = make({ store })
    const other = await two.speak(revision, { principal: 'ann' })
    const answer = await other.ask('tools/call', call('steps', { of: 'a', count: 3 }, 'q', chunksOf([frame])[0]))
    expect(JSON.stringify(answer)).toMatch(/CHECKPOINT_NOT_FOUND|OUTCOME_UNKNOWN/)
    expect(two.effects).toEqual([])
  })

  it('E8-3: streams over standard input and output', async () => {
    await using mcp = await connect({ command: process.execPath, args: [program] }, { revisions: [revision] })
    const stream = mcp.streamTool('count', { to: 20, size: 2 })
    expect(await read(stream)).toEqual(Array.from({ length: 20 }, (_, at) => `${at}`.padEnd(2, '.')))
    expect((await stream.result).text).toBe('counted to 20')
  })

  it('E8-9: over standard output, too, a reader that does not read makes the tool wait', async () => {
    const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'pipe'] })
    const said = createInterface({ input: child.stderr })
    let made = 0
    said.on('line', line => {
      made = Number(line)
    })
    const capabilities = { extensions: { 'dev.vivarium/streaming': {} } }
    const ask = (id: number, method: string, params: Frame): void =>
      void child.stdin.write(
        `${JSON.stringify({ jsonrpc: '2.0', id, method, params: enveloped(revision, params, capabilities) })}\n`,
      )
    if (revision === '2025-11-25') ask(1, 'initialize', helloParams(revision, capabilities))
    const [count, size] = [1_000, 16 * 1024]
    ask(2, 'tools/call', call('count', { to: count, size }))
    await once(said, 'line')
    for (let before = -1; before !== made; ) {
      before = made
      await Promise.race([once(said, 'line'), new Promise(resolve => setTimeout(resolve, 300))])
    }
    expect(made * size).toBeLessThan(4 * 1024 * 1024)
    const frames: Frame[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      const frame: Frame = JSON.parse(line)
      frames.push(frame)
      if (frame['id'] === 2) break
    }
    expect(chunksOf(frames).map(({ sequence }) => sequence)).toEqual(Array.from({ length: count + 1 }, (_, at) => at))
    child.stdin.end()
    await once(child, 'exit')
  })
})
