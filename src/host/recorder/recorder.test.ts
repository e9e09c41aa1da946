import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { allowing, openWorld, type WorldOptions } from '../../../test/hosting/loop-world.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { readRecording } from '../../recording/read.ts'
import { createServer, type Server } from '../../server/index.ts'
import { createHost } from '../create.ts'
import { scripted } from '../models/scripted.ts'
import { openRecorder, type ReplayGiven, replay } from './record.ts'

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'recorder-'))
  file = join(folder, 'session.jsonl')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

function shop(price: number): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', secret: 'a-secret-of-thirty-two-characters!' })
  const memory = server.featureSet('shop.memory', { description: 'Remembers' })
  memory.beforeInference(() => [{ namespace: 'm', position: 'system', content: 'Ada buys tea.' }], { positions: ['system'] })
  server.tool(
    'price',
    { input: z.object({ of: z.string() }), annotations: { readOnlyHint: true } },
    ({ of }) => `${of} costs ${price}`,
  )
  server.tool('buy', { input: z.object({ what: z.string() }) }, ({ what }) => `Bought ${what}`)
  return server
}

const script = [
  { calls: [{ name: 'price', arguments: { of: 'tea' } }] },
  'Tea costs 3.',
  { calls: [{ name: 'buy', arguments: { what: 'tea' } }] },
  'Done.',
]

async function recorded(): Promise<void> {
  const recorder = openRecorder(file)
  const { wrap, newId, onTurn } = recorder
  const world = await openWorld({ model: recorder.model(scripted(script)), servers: { shop: shop(3) }, wrap, newId, onTurn })
  const talk = world.loop.conversation('c1')
  await (await talk.send('What is tea?')).done
  await (await talk.send('Buy some')).done
  await world.close()
  await recorder.close()
}

const playing =
  (more: (given: ReplayGiven) => Partial<WorldOptions> = () => ({})) =>
  async ({ servers: pipes, ...given }: ReplayGiven) => {
    const { loop, close } = await openWorld({ ...given, pipes, ...more({ servers: pipes, ...given }) })
    return { conversation: (id: string) => loop.conversation(id), close }
  }

describe('a recorded session', () => {
  test('holds the frames of its servers, what the model was asked and said, what was said and what came of it', async () => {
    await recorded()
    const { header, lines } = readRecording(await readFile(file, 'utf8'))
    const count = (kind: string): number => lines.filter(line => line.kind === kind).length
    expect([count('open'), count('model'), count('said'), count('turn')]).toEqual([1, 4, 2, 2])
    const sent = lines.filter(line => line.kind === 'frame' && line.from === 'client')
    expect(sent.length).toBeGreaterThan(3)
    expect(Date.parse(header.began)).toBeGreaterThan(0)
    expect(lines.every(({ at }) => at >= 0)).toBe(true)
    const calls = sent.filter(line => line.kind === 'frame' && (line.frame as { method?: string }).method === 'tools/call')
    expect(calls).toHaveLength(2)
  })

  test('plays again without servers and without a model, and nothing differs', async () => {
    await recorded()
    expect(await replay(file, { open: playing() })).toEqual({ differences: [], turns: 2 })
  })

  test('shows what another policy would have changed', async () => {
    await recorded()
    const why = { code: 'DENIED', rule: 'no-buying', message: 'No buying', fix: 'Allow it' }
    const policy = {
      ...allowing,
      decide: async ({ tool }: { tool?: string }) =>
        tool === 'buy' ? { do: 'deny' as const, why } : { do: 'allow' as const, rule: '' },
    }
    const { differences } = await replay(file, { open: playing(() => ({ policy })) })
    expect(differences).toContainEqual({ where: 'turn 1 of c1', what: 'calls[0].status', before: 'done', after: 'refused' })
    expect(differences).toContainEqual({ where: 'shop', what: 'request', before: 'tools/call', after: undefined })
    expect(differences.filter(({ where }) => where === 'turn 0 of c1')).toEqual([])
  })

  test('shows what another server would have answered', async () => {
    await recorded()
    const { differences } = await replay(file, { open: playing(() => ({ pipes: {}, servers: { shop: shop(4) } })) })
    expect(differences).toContainEqual({
      where: 'turn 0 of c1',
      what: 'calls[0].content[0].text',
      before: 'tea costs 3',
      after: 'tea costs 4',
    })
  })
})

test('a host records by a file name, also what goes over HTTP, and the recording stands for its servers', async () => {
  const server = shop(3)
  const { url, close } = await server.listen()
  const host = await createHost({ servers: { shop: url }, model: scripted(script), record: file })
  await (await host.conversation('c1').send('What is tea?')).done
  await host.close()
  await close()
  expect(await replay(file, { open: given => createHost(given) })).toEqual({ differences: [], turns: 1 })
  const deny = { rules: [{ name: 'no', do: 'deny', when: { kind: 'tool' } }] } as const
  const { differences } = await replay(file, { open: given => createHost({ ...given, policy: deny }) })
  expect(differences).toContainEqual({ where: 'turn 0 of c1', what: 'calls[0].status', before: 'done', after: 'refused' })
})

test('a host whose servers push events replays clean where it is opened as it was', async () => {
  const server = createServer({ name: 'door', version: '1.0.0' })
  const bell = server.featureSet('door.bell', { description: 'Rings', uses: ['pushEvents'] })
  const { url, close } = await server.listen()
  const live = { enable: ['door.*'] }
  const host = await createHost({
    model: scripted(['Hello.', 'I open.', 'Bye.']),
    servers: { door: { target: url, live } },
    record: file,
  })
  await host.open()
  await (await host.conversation('c').send('Hello')).done
  const rung = await bell.push({ content: 'Somebody rang' })
  await rung.answered
  while ((await host.inbox.get('door', rung.eventId))?.state !== 'done') await new Promise(resolve => setTimeout(resolve, 5))
  await (await host.conversation('c').send('Bye')).done
  await host.close()
  await close()
  const open = async ({ servers, ...given }: ReplayGiven) => {
    const again = await createHost({ ...given, servers: { door: { target: servers['door'] as () => Connection, live } } })
    await again.open()
    return again
  }
  expect(await replay(file, { open })).toEqual({ differences: [], turns: 3 })
})

test('a recording of the older form, which began with {"kind":"begin"}, plays again, and nothing differs', async () => {
  const older = join(import.meta.dirname, '../../../test/tape/older/host-1.jsonl')
  expect(await replay(older, { open: playing() })).toEqual({ differences: [], turns: 1 })
})

test('a file that cannot be written is refused before a host begins', async () => {
  await expect(createHost({ model: scripted([]), record: join(folder, 'none', 'session.jsonl') })).rejects.toThrow(/ENOENT/)
})

test('a file that is no recording is refused', async () => {
  expect(() => readRecording('{"a":1}\n')).toThrow('This file is not a recording: its first line')
  const tape = join(import.meta.dirname, '../../../test/tape/older/tape-1.jsonl')
  await expect(replay(tape, { open: playing() })).rejects.toThrow('This file is not a recording of a host')
  expect(() => readRecording('{"at":1,"kind":"begin","version":1}\nno\n')).toThrow('Line 2 of the recording is not valid JSON')
})
