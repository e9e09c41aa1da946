import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Client, type ConnectOptions, connect } from '../client/index.ts'
import { createServer, type Server } from '../server/index.ts'
import { replayTape } from '../testing/connect.ts'
import { memoryPair } from '../transports/memory.ts'
import { openTape } from './mock-server.ts'
import { ConnectionPlayback } from './script.ts'
import { recordTape } from './tap.ts'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tape-'))
  file = join(folder, 'session.tape')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

function dial(server: Server): ReturnType<typeof memoryPair>[0] {
  const [near, far] = memoryPair()
  server.acceptor.accept(far)
  return near
}

function counter(): Server {
  const server = createServer({ name: 'counter', version: '1.0.0', secret: 'a secret of thirty-two characters' })
  let count = 0
  server.tool('count', { input: z.object({ by: z.number() }) }, async ({ by }, ctx) => {
    count += by
    await ctx.progress(count)
    return `${count}`
  })
  server.tool('ask', {}, async (_, ctx) => {
    const { action } = await ctx.elicit({ message: `More than ${count}?`, schema: z.object({ yes: z.boolean() }) })
    return `${action} at ${count}`
  })
  return server
}

type Step = { readonly tool: 'count'; readonly by: number } | { readonly tool: 'ask' }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ tool: fc.constant('count' as const), by: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ tool: fc.constant('ask' as const) }),
)

async function walk(mcp: Client, steps: readonly Step[]): Promise<string[]> {
  const heard: string[] = []
  for (const { tool, ...args } of steps) {
    const { text } = await mcp.callTool(tool, args, { onProgress: ({ progress }) => void heard.push(`at ${progress}`) })
    heard.push(text)
  }
  return heard
}

test('whatever was called, the tape says the same in the same order, and the server has not changed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.constantFrom('2025-06-18' as const, '2025-11-25' as const, '2026-07-28' as const),
      async (steps, revision) => {
        const options: ConnectOptions = {
          revisions: [revision],
          onElicit: async () => ({ action: 'accept', content: { yes: true } }),
        }
        const recording = recordTape(file)
        const mcp = await connect(dial(counter()), { ...options, wrap: recording.wrap })
        const then = await walk(mcp, steps)
        await mcp.close()
        recording.close()
        const tape = await openTape(file)
        await using mocked = await connect(tape.target(), options)
        expect(await walk(mocked, steps)).toEqual(then)
        const again = counter()
        expect((await replayTape(tape, () => dial(again))).differences).toEqual([])
      },
    ),
    { numRuns: 30 },
  )
})

for (const revision of ['2025-11-25', '2026-07-28'] as const)
  test(`a live server on ${revision} pushes from the tape what it pushed then`, async () => {
    const server = createServer({ name: 'live', version: '1.0.0' })
    const set = server.featureSet('news', { description: 'Tells', uses: ['pushEvents'] })
    const hosting = (heard: (text: string) => void): ConnectOptions => ({
      revisions: [revision],
      live: {
        select: declared => ({ enabled: [...declared.keys()], disabled: [], canEnable: () => true }),
        onPush: async ({ content: [block] }) => {
          heard(block?.type === 'text' ? block.text : '')
          return { accepted: true }
        },
        onInfer: async () => ({ content: '', model: 'm', finishReason: 'end_turn', usage: { inputTokens: 0, outputTokens: 0 } }),
        onElevate: async () => ({ approved: false, reason: 'no' }),
        modelInfo: () => ({ id: 'm', vendor: 'v', contextWindow: 1_000, capabilities: [] }),
      },
    })
    const recording = recordTape(file)
    const first = Promise.withResolvers<string>()
    const mcp = await connect(dial(server), { ...hosting(first.resolve), wrap: recording.wrap })
    await set.push({ content: 'It rains' })
    expect(await first.promise).toBe('It rains')
    await mcp.close()
    recording.close()
    const second = Promise.withResolvers<string>()
    await using mocked = await connect((await openTape(file)).target(), hosting(second.resolve))
    expect(await second.promise).toBe('It rains')
    expect(mocked.live?.featureSets.has('news')).toBe(true)
  })

function shop(): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', store: 'memory:', secret: 'a secret of thirty-two characters' })
  server.tool('buy', { undo: { tool: 'refund', arguments: () => ({}) } }, () => 'bought')
  server.tool('refund', {}, () => 'refunded')
  return server
}

async function buy(mcp: Client): Promise<string> {
  await using tx = await mcp.transaction()
  await tx.callTool('buy')
  return (await tx.commit()).status
}

async function bought(): Promise<string> {
  const recording = recordTape(file)
  const mcp = await connect(dial(shop()), { wrap: recording.wrap })
  const status = await buy(mcp)
  await mcp.close()
  recording.close()
  return status
}

test('names that a client makes up anew, as of a transaction, are those of now in all that the tape says', async () => {
  const then = await bought()
  await using mocked = await connect((await openTape(file)).target())
  expect(await buy(mocked)).toBe(then)
})

test('a transaction that was recorded on another carrier goes over HTTP with the headers that it needs there', async () => {
  await bought()
  const { url, close } = await shop().listen({ port: 0 })
  onTestFinished(() => close())
  expect((await replayTape(await openTape(file), url)).differences).toEqual([])
})

test('what stands where a token of progress should be is repeated as it is, whatever it is', () => {
  const strange = { toString: 0 }
  const params = { name: 'count', arguments: {}, _meta: { progressToken: strange } }
  const said = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: strange, progress: 1 } }
  const frames = [
    { from: 'client' as const, at: 0, text: '', line: 1, value: { jsonrpc: '2.0', id: 1, method: 'tools/call', params } },
    { from: 'server' as const, at: 1, text: '', line: 2, value: said },
    { from: 'server' as const, at: 2, text: '', line: 2, value: { jsonrpc: '2.0', id: 1, result: {} } },
  ]
  const heard: unknown[] = []
  const script = new ConnectionPlayback(frames, text => void heard.push(JSON.parse(text)), undefined)
  expect(script.play({ method: 'tools/call', id: 7, params })).toBe(true)
  expect(heard).toEqual([said, { jsonrpc: '2.0', id: 7, result: {} }])
})
