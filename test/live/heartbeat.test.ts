/** A live server that others wrote, as its package is published: `@animalabs/heartbeat-mcpl`, on the stand-in for what it imports. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import type { Why } from '../../src/core/suggestion.ts'
import type { LiveHandlers } from '../../src/features/live/client-api.ts'
import type { PushEvent } from '../../src/features/live/push-events/messages.ts'
import { model } from './raw/host.ts'

const program = createRequire(import.meta.url).resolve('@animalabs/heartbeat-mcpl')
const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function heartbeat(handlers: Partial<LiveHandlers> | undefined, lines: string[] = []) {
  const folder = await mkdtemp(join(tmpdir(), 'heartbeat-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  const env = {
    HEARTBEAT_CONFIG_FILE: join(folder, 'config.json'),
    HEARTBEAT_REMINDERS_FILE: join(folder, 'reminders.json'),
  }
  const target = { command: process.execPath, args: [program, '--stdio'], env, stderr: (line: string) => void lines.push(line) }
  const client = await connect(target, handlers === undefined ? {} : { live: { ...standing, ...handlers } })
  cleanups.push(() => client.close())
  return client
}

const all: LiveHandlers['select'] = declared => ({ enabled: [...declared.keys()], disabled: [], canEnable: () => true })

const standing: LiveHandlers = {
  // It pushes under a set that declares nothing but tools: its operator allows that.
  select: declared => ({ ...all(declared), uses: { heartbeat: ['pushEvents'] } }),
  onPush: async () => ({ accepted: true, inferenceId: 'inf-1' }),
  onInfer: async () => ({ content: '', model: '', finishReason: 'end_turn', usage: { inputTokens: 0, outputTokens: 0 } }),
  onElevate: async () => ({ approved: false, reason: 'nobody asks' }),
  modelInfo: () => model,
}

test('a heartbeat that is triggered comes as a push, and is answered', async () => {
  const first = Promise.withResolvers<PushEvent>()
  const lines: string[] = []
  const client = await heartbeat(
    {
      onPush: async event => {
        first.resolve(event)
        return { accepted: true, inferenceId: 'inf-7' }
      },
    },
    lines,
  )
  expect(client.live?.dialect).toEqual({ version: '0.4', label: '0.4', carrier: 'session' })
  expect(client.live?.featureSets.get('heartbeat')).toMatchObject({ enabled: true, uses: ['tools'] })
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  expect(names).toContain('heartbeat_trigger')
  expect((await client.callTool('heartbeat_trigger', {})).text).toContain('Heartbeat fired')
  const event = await first.promise
  expect(event).toMatchObject({ featureSet: 'heartbeat', origin: { source: 'heartbeat', reason: 'manual' } })
  expect(event.content).toEqual([{ type: 'text', text: expect.stringContaining('[heartbeat]') }])
  // The server writes down what it was answered; what it writes is read once a later call is answered.
  while (!lines.some(line => line.includes('push response'))) await client.callTool('heartbeat_status', {})
  expect(lines.find(line => line.includes('push response'))).toContain('"inferenceId":"inf-7"')
})

test('A4: a heartbeat that declares nothing but tools is refused where nobody allows it more, and the fix is named', async () => {
  const lines: string[] = []
  const diagnosed: Why[] = []
  const client = await heartbeat({ select: all, onDiagnostic: what => void diagnosed.push(what) }, lines)
  expect((await client.callTool('heartbeat_trigger', {})).isError).toBe(false)
  while (!lines.some(line => line.includes('push failed'))) await client.callTool('heartbeat_status', {})
  expect(diagnosed).toMatchObject([
    { code: 'USE_UNDECLARED', fix: expect.stringContaining('{"live":{"uses":{"heartbeat":["pushEvents"]}}}') },
  ])
})

test('L6.6-1: a heartbeat whose set is disabled is refused, and its tools work', async () => {
  const lines: string[] = []
  const client = await heartbeat({ select: () => ({ enabled: [], disabled: ['heartbeat'], canEnable: () => true }) }, lines)
  expect((await client.callTool('heartbeat_trigger', {})).isError).toBe(false)
  while (!lines.some(line => line.includes('push failed'))) await client.callTool('heartbeat_status', {})
  expect(lines.find(line => line.includes('push failed'))).toContain('Feature set not enabled')
})

test('A20: to a host without MCP Live it is a server of tools, whose push is refused', async () => {
  const lines: string[] = []
  const client = await heartbeat(undefined, lines)
  expect([client.live, client.capabilities]).toEqual([undefined, { tools: {} }])
  expect((await client.callTool('heartbeat_trigger', {})).isError).toBe(false)
  while (!lines.some(line => line.includes('push failed'))) await client.callTool('heartbeat_status', {})
})

test('A14: it knows neither hooks nor rollback, and says so', async () => {
  const client = await heartbeat({})
  const { live } = client
  expect(live?.hooks).toEqual({ before: false, after: false, lifecycle: false })
  expect(await live?.rollback('heartbeat', 'x')).toMatchObject({ success: false })
})
