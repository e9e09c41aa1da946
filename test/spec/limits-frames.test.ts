/** Limits of a single message (item 7, security §5): each refusal names its limit, and the next message is served. */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, jsonSchema, type Server, type ServerOptions } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { headersFor, httpPeer, open, send } from './http.ts'
import { callName, enveloped, errorOf, everyRevision, type Frame, speak, textOf } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function make(limits: ServerOptions['limits'] = {}): Server {
  const server = createServer({ name: 'limits', version: '1.0.0', revisions: everyRevision, limits })
  closers.push(() => server.close())
  server.tool('size', { input: jsonSchema<{ value?: unknown }>({ type: 'object' }) }, ({ value }) =>
    String(JSON.stringify(value)?.length ?? 0),
  )
  return server
}

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])
const overHttp = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', 'draft-2026-v1'] as const

describe.each(everyRevision)('on a pipe at %s', revision => {
  it('nesting: a message just at the limit is served, one beyond is refused by name, and so on', async () => {
    const wire = await speak(make({ depth: 20 }), revision)
    const call = (depth: number): Promise<Frame> =>
      wire.ask(callName(revision), { name: 'size', arguments: { value: nested(depth) } })
    expect(await call(17)).toHaveProperty('result')
    wire.say({
      jsonrpc: '2.0',
      id: 'deep',
      method: callName(revision),
      params: enveloped(revision, { name: 'size', arguments: { value: nested(18) } }),
    })
    const { code, message } = errorOf(await wire.next(frame => frame['error'] !== undefined))
    expect([code, message]).toEqual([-32600, expect.stringMatching(/20 levels.*\(depth\)/)])
    expect(await call(1)).toHaveProperty('result')
    await wire.close()
  })

  it('elements: likewise', async () => {
    const wire = await speak(make({ elements: 100 }), revision)
    const call = (value: unknown): Promise<Frame> => wire.ask(callName(revision), { name: 'size', arguments: { value } })
    expect(await call(Array.from({ length: 60 }, () => 1))).toHaveProperty('result')
    for (const value of [
      Array.from({ length: 120 }, () => 1),
      Array.from({ length: 55 }, () => []),
      Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`k${at}`, at])),
    ]) {
      wire.begin(callName(revision), { name: 'size', arguments: { value } })
      const { code, message } = errorOf(await wire.next(frame => frame['error'] !== undefined))
      expect([code, message]).toEqual([-32600, expect.stringMatching(/100 elements.*\(elements\)/)])
    }
    expect(await call([])).toHaveProperty('result')
    await wire.close()
  })

  it('ids: strings of reasonable length and integers that survive; others are refused, and come back at no length', async () => {
    const wire = await speak(make(), revision)
    for (const id of ['x'.repeat(1_024), Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
      expect((await wire.ask('tools/list', {}, id))['id']).toBe(id)
    }
    for (const id of ['x'.repeat(1_025), 'x'.repeat(1_000_000), 2 ** 53, 0.5]) {
      const before = wire.texts.length
      wire.begin('tools/list', {}, id)
      const { code, message } = errorOf(await wire.next(frame => frame['error'] !== undefined))
      expect([code, message]).toEqual([-32600, expect.stringContaining('1024')])
      expect(wire.texts.slice(before).join('').length).toBeLessThan(400)
    }
    await wire.close()
  })

  it('progress tokens: one that is too long is none, so that it is not sent back with every step', async () => {
    const server = make()
    server.tool('work', {}, (_, ctx) => {
      for (let step = 1; step < 50; step++) ctx.progress(step)
      return 'done'
    })
    const wire = await speak(server, revision)
    await wire.ask(callName(revision), { name: 'work', _meta: { progressToken: 'x'.repeat(100_000) } })
    expect(wire.texts.join('').length).toBeLessThan(20_000)
    await wire.close()
  })

  it('frames: one that is too long is refused unread, by name', async () => {
    const server = make()
    const [near, far] = memoryPair({ limits: { frameBytes: 4_096 } })
    const heard: Frame[] = []
    server.acceptor.accept(far)
    const answered = (count: number): Promise<void> =>
      new Promise(resolve => {
        const look = (): void => (heard.length >= count ? resolve() : void setImmediate(look))
        look()
      })
    await near.start({ frame: text => heard.push(JSON.parse(text)), fault: () => {}, closed: () => {} })
    await near.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { pad: 'ä'.repeat(4_000) } }))
    await answered(1)
    expect(errorOf(heard[0] ?? {}).message).toMatch(/4096 bytes.*\(frameBytes\)/)
    await near.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: enveloped('2026-07-28') }))
    await answered(2)
    expect(heard[1]).toHaveProperty('result')
    await near.close()
  })
})

describe.each(overHttp)('over HTTP at %s', revision => {
  it('a body that says it is too long is 413 before it is read, one that does not is 413 as soon as it is', async () => {
    const server = make({ frameBytes: 10_000 })
    const { url } = await server.listen()
    const peer = await httpPeer(url, revision)
    const headers = headersFor(revision, 'tools/list', {}, peer.session)
    const said = await send(url, { headers: { ...headers, 'content-length': '10001' }, body: 'x'.repeat(10_001) })
    expect([said.status, errorOf(said.frame).message]).toEqual([413, expect.stringMatching(/10000 bytes.*\(frameBytes\)/)])
    const unsaid = await open(url, { headers: { ...headers, 'transfer-encoding': 'chunked' }, body: 'x'.repeat(20_000) })
    expect(unsaid.response.statusCode).toBe(413)
    unsaid.request.destroy()
    expect((await peer.ask('tools/call', { name: 'size' })).status).toBe(200)
  })

  it('a body that is too deep or too wide is 400, by name', async () => {
    const server = make({ depth: 20, elements: 100 })
    const { url } = await server.listen()
    const peer = await httpPeer(url, revision)
    for (const [value, name] of [
      [nested(30), 'depth'],
      [Array.from({ length: 200 }, () => 1), 'elements'],
    ] as const) {
      const answer = await peer.ask('tools/call', { name: 'size', arguments: { value } })
      expect([answer.status, errorOf(answer.frame).code, errorOf(answer.frame).message]).toEqual([
        400,
        -32600,
        expect.stringContaining(`(${name})`),
      ])
    }
    expect((await peer.ask('tools/call', { name: 'size' })).status).toBe(200)
  })
})

describe('batches (2025-03-26)', () => {
  const ping = (id: number): Frame => ({ jsonrpc: '2.0', id, method: 'ping' })

  it('of more than the limit are refused by name, whole', async () => {
    const wire = await speak(make({ batch: 3 }), '2025-03-26')
    wire.say([1, 2, 3, 4].map(ping))
    const { code, message } = errorOf(await wire.next(frame => frame['error'] !== undefined))
    expect([code, message]).toEqual([-32600, expect.stringMatching(/4 messages.*3.*\(batch\)/)])
    wire.say([1, 2, 3].map(ping))
    for (const id of [1, 2, 3]) expect(await wire.next(frame => frame['id'] === id)).toHaveProperty('result')
    await wire.close()
  })

  it('count against the calls in flight like any others', async () => {
    const server = make({ callsPerConversation: 2 })
    const release: (() => void)[] = []
    server.tool('wait', {}, () => new Promise<string>(resolve => release.push(() => resolve('waited'))))
    const wire = await speak(server, '2025-03-26')
    wire.say([1, 2, 3].map(id => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'wait' } })))
    await wire.quiet()
    for (const fn of release) fn()
    const frames = [
      await wire.next(frame => frame['id'] === 1),
      await wire.next(frame => frame['id'] === 2),
      await wire.next(frame => frame['id'] === 3),
    ]
    expect(frames.map(frame => (frame['error'] === undefined ? textOf(frame) : errorOf(frame).code))).toEqual([
      'waited',
      'waited',
      -32000,
    ])
    await wire.close()
  })
})
