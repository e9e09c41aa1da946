import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Frame, rawWire } from '../../test/raw-wire.ts'
import { createServer, type Server, type ServerOptions } from '../server/index.ts'
import { memoryPair } from '../transports/memory.ts'

interface Gate {
  readonly server: Server
  readonly open: (name: string) => void
  readonly aborted: string[]
}

/** A server whose tool `wait` answers when its gate is opened. */
function gated(options: Partial<ServerOptions> = {}): Gate {
  const gates = new Map<string, () => void>()
  const aborted: string[] = []
  const server = createServer({ name: 'gated', version: '1.0.0', ...options })
  server.tool('wait', { input: z.object({ name: z.string() }) }, ({ name }, ctx) => {
    ctx.signal.addEventListener('abort', () => aborted.push(name))
    return new Promise<string>(resolve => gates.set(name, () => resolve(name)))
  })
  server.tool('echo', { input: z.object({ text: z.string() }) }, ({ text }) => text)
  return { server, aborted, open: name => gates.get(name)?.() }
}

const call = (name: string, args: Frame): Frame => ({ name, arguments: args })
const textOf = (frame: Frame): unknown => (frame['result'] as { content?: { text?: string }[] } | undefined)?.content?.[0]?.text
const codeOf = (frame: Frame): unknown => (frame['error'] as { code?: number } | undefined)?.code
const turn = (): Promise<void> => new Promise(resolve => setImmediate(() => resolve()))

/** Sends raw text and gives what comes back. */
async function say(server: Server, ...texts: string[]): Promise<Frame[]> {
  const [near, far] = memoryPair()
  const heard: Frame[] = []
  server.acceptor.accept(far)
  await near.start({ frame: text => heard.push(JSON.parse(text)), fault: () => {}, closed: () => {} })
  for (const text of texts) await near.send(text)
  for (let turns = 0; turns < 5; turns++) await turn()
  await near.close()
  return heard
}

const initialize = (version: string): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
  })

describe('receiving', () => {
  it('gives two calls in flight under one id each its own answer', async () => {
    const { server, open } = gated()
    const wire = await rawWire(server.acceptor, '2025-11-25')
    wire.begin('tools/call', call('wait', { name: 'first' }), 7)
    wire.begin('tools/call', call('wait', { name: 'second' }), 7)
    await turn()
    open('second')
    open('first')
    await turn()
    expect(
      wire.heard
        .filter(frame => frame['id'] === 7)
        .map(textOf)
        .sort(),
    ).toEqual(['first', 'second'])
  })

  it('echoes the id with its JSON type (trap 8)', async () => {
    const { server } = gated()
    const wire = await rawWire(server.acceptor, '2025-11-25')
    for (const id of ['7', 7, '', 0, -1]) expect((await wire.ask('ping', {}, id))['id']).toBe(id)
  })

  it('cancels only calls of its own connection, and answers none of them (rev D)', async () => {
    const { server, open, aborted } = gated()
    const [left, right] = [await rawWire(server.acceptor, '2025-11-25'), await rawWire(server.acceptor, '2025-11-25')]
    left.begin('tools/call', call('wait', { name: 'left' }), 1)
    right.begin('tools/call', call('wait', { name: 'right' }), 1)
    await turn()
    right.tell('notifications/cancelled', { requestId: 1 })
    await turn()
    expect(aborted).toEqual(['right'])
    for (const name of ['left', 'right']) open(name)
    await turn()
    expect([left, right].map(wire => wire.heard.filter(frame => frame['id'] === 1).length)).toEqual([1, 0])
  })

  it('lets a stateless caller cancel on a pipe without an envelope (rev 2026-07-28 §2.2)', async () => {
    const { server, aborted } = gated()
    const wire = await rawWire(server.acceptor, '2026-07-28')
    wire.begin('tools/call', call('wait', { name: 'modern' }), 1)
    await turn()
    wire.tell('notifications/cancelled', { requestId: 1 })
    await turn()
    expect(aborted).toEqual(['modern'])
  })

  it('serves both eras interleaved on one pipe', async () => {
    const { server } = gated()
    const old = await rawWire(server.acceptor, '2025-06-18')
    const modern = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
    const answers = [
      await old.ask('tools/call', call('echo', { text: 'a' })),
      await old.ask('tools/call', { ...call('echo', { text: 'b' }), _meta: modern }),
      await old.ask('tools/call', call('echo', { text: 'c' })),
    ]
    expect(answers.map(textOf)).toEqual(['a', 'b', 'c'])
    expect(answers.map(frame => (frame['result'] as Frame)['resultType'])).toEqual([undefined, 'complete', undefined])
  })

  it('refuses calls beyond those in flight, names the limit, and drops none that runs', async () => {
    const { server, open } = gated({ limits: { callsPerConversation: 2 } })
    const wire = await rawWire(server.acceptor, '2025-11-25')
    for (const name of ['a', 'b']) wire.begin('tools/call', call('wait', { name }), name)
    const refused = await wire.ask('tools/call', call('wait', { name: 'c' }))
    expect(JSON.stringify(refused)).toContain('2 calls of this connection are in flight')
    open('a')
    await turn()
    expect(textOf(wire.heard.find(frame => frame['id'] === 'a') as Frame)).toBe('a')
    expect(textOf(await wire.ask('tools/call', call('echo', { text: 'again' })))).toBe('again')
  })

  it('stops what runs for a connection that has gone', async () => {
    const { server, aborted } = gated()
    const wire = await rawWire(server.acceptor, '2025-11-25')
    wire.begin('tools/call', call('wait', { name: 'orphan' }))
    await turn()
    await wire.close()
    await turn()
    expect(aborted).toEqual(['orphan'])
  })
})

describe('what is no message', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1', -32700],
    ['42', -32600],
    ['{"id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600],
    ['{"jsonrpc":"2.0","id":1}', -32600],
  ])('%s is refused with %i and serves on', async (text, code) => {
    const { server } = gated()
    const heard = await say(server, initialize('2025-11-25'), text, '{"jsonrpc":"2.0","id":"after","method":"ping"}')
    expect(heard.map(codeOf)).toEqual([undefined, code, undefined])
    expect(heard[2]).toEqual({ jsonrpc: '2.0', id: 'after', result: {} })
  })

  it('gets an error without id from 2025-11-25 on, with null before (trap 8)', async () => {
    const { server } = gated()
    for (const [version, id] of [
      ['2025-11-25', undefined],
      ['2025-06-18', null],
    ] as const) {
      const [, refusal] = await say(server, initialize(version), '{"jsonrpc":"2.0","id":{},"method":"ping"}')
      expect(refusal?.['id']).toBe(id)
    }
  })

  it('never repeats more than eighty characters of it', async () => {
    const { server } = gated()
    const long = 'm'.repeat(100_000)
    const [, refusal] = await say(server, initialize('2025-11-25'), JSON.stringify({ jsonrpc: '2.0', id: 1, method: long }))
    expect(JSON.stringify(refusal).length).toBeLessThan(300)
  })

  it('is no answer to a faulty notification either: those are never answered', async () => {
    const { server } = gated()
    const heard = await say(
      server,
      initialize('2025-11-25'),
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
    )
    expect(heard).toHaveLength(1)
  })
})

describe('batches (trap 25)', () => {
  const ping = (id: number): Frame => ({ jsonrpc: '2.0', id, method: 'ping' })

  it('are answered in one array at 2025-03-26, notifications and responses silently', async () => {
    const { server } = gated()
    const batch = [
      ping(1),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 9, result: {} },
      ping(2),
      42,
    ]
    const [, answers] = await say(server, initialize('2025-03-26'), JSON.stringify(batch))
    expect((answers as unknown as Frame[]).map(frame => frame['id'])).toEqual([1, 2, null])
  })

  it('of nothing but notifications are not answered at all', async () => {
    const { server } = gated()
    expect(await say(server, initialize('2025-03-26'), '[{"jsonrpc":"2.0","method":"notifications/initialized"}]')).toHaveLength(
      1,
    )
  })

  it('are refused whole when empty, too long, or with initialize or a stateless request inside', async () => {
    const { server } = gated()
    const modern = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
    }
    for (const batch of [
      [],
      Array.from({ length: 101 }, (_, id) => ping(id)),
      [JSON.parse(initialize('2025-03-26'))],
      [modern],
    ]) {
      const [, refusal] = await say(server, initialize('2025-03-26'), JSON.stringify(batch))
      expect(codeOf(refusal as Frame)).toBe(-32600)
    }
  })

  it('are refused word by word where no version is known, for a wire that has none', async () => {
    const { server } = gated({ revisions: ['2025-03-26', '2026-07-28', 's3'] })
    const invoke = { jsonrpc: '2.0', id: 1, method: 'tools/invoke', params: { name: 'echo', arguments: { text: 'x' } } }
    const [answer] = await say(server, JSON.stringify([invoke, ping(2)]))
    const answers = answer as unknown as Frame[]
    expect([codeOf(answers[0] as Frame), answers[1]?.['result']]).toEqual([-32600, {}])
  })

  it.each(['2024-11-05', '2025-06-18', '2025-11-25'])('are refused at %s', async version => {
    const { server } = gated()
    const [, refusal] = await say(server, initialize(version), JSON.stringify([ping(1)]))
    expect(codeOf(refusal as Frame)).toBe(-32600)
  })
})
