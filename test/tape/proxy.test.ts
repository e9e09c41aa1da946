/** Clients and servers of others, with the recorder between them: any carrier on either side, and nobody notices. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { connect, type Target } from '../../src/client/index.ts'
import { openTape, serveTape, type Tape } from '../../src/recording/mock-server.ts'
import { replayTape, startRecording } from '../../src/testing/connect.ts'
import { peerFile, startPeer } from '../interop/peer-process.ts'
import { openV1, openV2, type SdkClient } from '../interop/sdk-clients.ts'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tape-'))
  file = join(folder, 'session.tape')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

type Peer = 'sdk-v1-server' | 'sdk-v2-server'
type Side = 'stdio' | 'http' | 'sse'

const clients: Readonly<Record<string, (carrier: Side, target: Target) => Promise<SdkClient>>> = {
  'SDK v1': openV1,
  'SDK v2, older era': (carrier, target) => openV2(carrier, target, 'legacy'),
  'SDK v2, newest': (carrier, target) => openV2(carrier, target, { pin: '2026-07-28' }),
}

const cells: readonly (readonly [client: string, near: Side, far: Side, peer: Peer])[] = [
  ['SDK v1', 'http', 'http', 'sdk-v1-server'],
  ['SDK v1', 'sse', 'sse', 'sdk-v1-server'],
  ['SDK v1', 'http', 'stdio', 'sdk-v1-server'],
  ['SDK v1', 'stdio', 'stdio', 'sdk-v1-server'],
  ['SDK v1', 'stdio', 'http', 'sdk-v1-server'],
  ['SDK v2, older era', 'http', 'stdio', 'sdk-v2-server'],
  ['SDK v2, newest', 'http', 'http', 'sdk-v2-server'],
  ['SDK v2, newest', 'http', 'stdio', 'sdk-v2-server'],
  ['SDK v2, newest', 'stdio', 'http', 'sdk-v2-server'],
  ['SDK v2, newest', 'stdio', 'stdio', 'sdk-v2-server'],
]

describe('a recorder between a client and a server of the official SDK', () => {
  for (const [name, near, far, peer] of cells)
    test(`${name} over ${near} ⇄ ${peer} over ${far}`, async () => {
      const target = await server(peer, far)
      const between = await proxy(target, near)
      const mcp = await (clients[name] as (typeof clients)[string])(near, between.target)
      await session(mcp)
      await mcp.client.close()
      await between.close()
      const tape = await openTape(file)
      expect(methodsOf(tape)).toEqual(expect.arrayContaining(['tools/list', 'tools/call', 'resources/read']))
      // The SDK itself forgets progress that comes in one piece with the answer, so the tape is asked and not the client.
      expect(said(tape, 'notifications/progress')).toHaveLength(2)
      expect(JSON.stringify(tape.conversations)).toContain('Hello, Ada')
      expect(tape.cut).toBe(false)
      // Questions and their answers are in one conversation, whatever exchanges carried them.
      for (const { frames } of tape.conversations) expect(answeredIn(frames)).toEqual(askedIn(frames))
      expect(await replayTape(tape, target)).toMatchObject({ differences: [] })
      if (near !== 'stdio') await played(tape, url => (clients[name] as (typeof clients)[string])(near, url), near)
    })
})

/** The same client on the tape instead of the server sees no difference. */
async function played(tape: Tape, open: (url: string) => Promise<SdkClient>, near: Side): Promise<void> {
  const mock = await serveTape(tape)
  onTestFinished(() => mock.close())
  const url = mock.url ?? ''
  const mcp = await open(near === 'sse' ? url.replace('/mcp', '/sse') : url)
  await session(mcp)
  await mcp.client.close()
}

async function server(peer: Peer, carrier: Side): Promise<Target> {
  if (carrier === 'stdio') return { command: process.execPath, args: [peerFile(peer), 'stdio'] }
  const started = await startPeer(peer, carrier)
  onTestFinished(started.close)
  return started.url
}

/** In this process on a port, or as a child that speaks on stdio. */
async function proxy(target: Target, near: Side): Promise<{ target: Target; close(): Promise<void> }> {
  if (near === 'stdio') {
    const words = typeof target === 'object' && 'command' in target ? [target.command, ...(target.args ?? [])] : [String(target)]
    const args = [join(import.meta.dirname, 'record-on-stdio.ts'), file, ...words]
    return { target: { command: process.execPath, args }, close: async () => {} }
  }
  const started = await startRecording(target, { file })
  onTestFinished(() => started.close())
  return { target: started.url ?? '', close: () => started.close() }
}

async function session({ client, call }: SdkClient): Promise<void> {
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['greet', 'order']))
  expect(await call('greet', { name: 'Ada' })).toMatchObject({ content: [{ text: 'Hello, Ada' }] })
  await call('work', {}, { onprogress: () => {} })
  expect(await call('order')).toMatchObject({ content: [{ text: '2 cod' }] })
  expect(await client.readResource({ uri: 'memo://today' })).toMatchObject({ contents: [{ text: 'Feed the fish' }] })
}

function methodsOf({ conversations }: Tape): string[] {
  return conversations.flatMap(({ frames }) =>
    frames.flatMap(({ from, value }) => (from === 'client' ? [String((value as { method?: string }).method)] : [])),
  )
}

function askedIn(frames: Tape['conversations'][number]['frames']): unknown[] {
  const asked = frames.map(({ from, value }) => ({ from, ...(value as { id?: unknown; method?: string }) }))
  return asked.filter(({ from, id, method }) => from === 'client' && id !== undefined && method !== undefined).map(({ id }) => id)
}

function answeredIn(frames: Tape['conversations'][number]['frames']): unknown[] {
  const answers = frames.map(({ from, value }) => ({ from, ...(value as { id?: unknown; method?: string }) }))
  return answers
    .filter(({ from, id, method }) => from === 'server' && id !== undefined && method === undefined)
    .map(({ id }) => id)
}

function said({ conversations }: Tape, method: string): unknown[] {
  return conversations.flatMap(({ frames }) =>
    frames.filter(({ from, value }) => from === 'server' && (value as { method?: string }).method === method),
  )
}

test('our client probes through the recorder as it would without', async () => {
  const between = await proxy(await server('sdk-v2-server', 'http'), 'http')
  await using mcp = await connect(between.target)
  expect(mcp.revision).toBe('2026-07-28')
  expect((await mcp.callTool('greet', { name: 'Ada' })).text).toBe('Hello, Ada')
})
