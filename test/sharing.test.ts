/** What several servers on one store share: sessions, tasks and answers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer, type Server } from '../src/server/index.ts'
import { memoryStore } from '../src/stores/memory.ts'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import type { Store } from '../src/stores/store.ts'
import { fakeClock } from '../src/testing/index.ts'
import { post } from './remembering.ts'
import { enveloped, type Frame, helloParams, resultOf, textOf } from './spec/wire.ts'

const servers: Server[] = []
const ends: (() => unknown)[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
  for (const end of ends.splice(0).reverse()) await end()
})

async function sqlite(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-sharing-'))
  const store = await sqliteStore({ path: join(folder, 'shared.db') })
  ends.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => store.close(),
  )
  return store
}

function replica(store: Store, clock?: ReturnType<typeof fakeClock>): Server {
  const server = createServer({
    name: 'replica',
    version: '1.0.0',
    log: 'silent',
    store,
    secret: 'an only secret of at least 32 characters',
    ...(clock === undefined ? {} : { clock }),
  })
  server.tool('say', { input: z.object({ text: z.string() }) }, ({ text }) => text)
  server.tool('client', {}, (_, { client, revision }) => JSON.stringify([client.info?.name, client.capabilities, revision]))
  server.tool('log', {}, (_, ctx) => void ctx.log('debug', 'a word'))
  server.tool('slow', { task: 'optional' }, () => 'done at last')
  server.tool('endless', { task: 'optional' }, (_, { signal }) => {
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(stopped(signal.reason))))
  })
  server.tool('sure', { task: 'required' }, async (_, ctx) => `sure: ${await ctx.confirm('Sure?')}`)
  server.resource('note://{id}', { name: 'note' }, () => 'a note')
  servers.push(server)
  return server
}

const capabilities = { roots: { listChanged: true } }
const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: helloParams('2025-11-25', capabilities) }
const request = (method: string, params: Frame = {}): Frame => ({ jsonrpc: '2.0', id: 2, method, params })
const call = (name: string, more: Frame = {}): Frame => request('tools/call', { name, ...more })

async function open(server: Server, principal?: string): Promise<Record<string, string>> {
  const { session, status } = await post(server, hello, {}, principal)
  expect(status).toBe(200)
  return { 'mcp-session-id': session ?? '' }
}

describe.each([
  ['memory', async () => memoryStore()],
  ['sqlite', sqlite],
] as const)('two servers on one %s store', (_, make) => {
  async function two(): Promise<[Server, Server]> {
    const store = await make()
    return [replica(store), replica(store)]
  }

  it('serve the same sessions: what one opened the other goes on with, as the client introduced itself', async () => {
    const [one, other] = await two()
    const headers = await open(one)
    const { frame } = await post(other, call('client'), headers)
    expect(JSON.parse(textOf(frame))).toEqual(['bare', capabilities, '2025-11-25'])
    expect((await post(other, request('ping'), { ...headers, 'mcp-protocol-version': '2025-11-25' })).status).toBe(200)
  })

  it('end them for both, whoever is told', async () => {
    const [one, other] = await two()
    const headers = await open(one)
    expect((await post(other, request('ping'), headers)).status).toBe(200)
    expect(await leave(other, headers)).toBe(200)
    for (const server of [one, other]) expect((await post(server, request('ping'), headers)).status).toBe(404)
  })

  it('show a session to its owner alone, on either', async () => {
    const [one, other] = await two()
    const headers = await open(one, 'ann')
    for (const who of ['bob', undefined]) expect((await post(other, request('ping'), headers, who)).status).toBe(404)
    expect((await post(other, request('ping'), headers, 'ann')).status).toBe(200)
  })

  it('know the log level and the subscriptions that the other was told', async () => {
    const [one, other] = await two()
    const headers = await open(one)
    await post(other, request('ping'), headers)
    await post(one, request('logging/setLevel', { level: 'debug' }), headers)
    await post(one, request('resources/subscribe', { uri: 'note://1' }), headers)
    const { heard } = await gather(other, call('log'), headers)
    expect(heard).toMatchObject([{ method: 'notifications/message', params: { data: 'a word' } }, { id: 2 }])
    const pushed = listen(other, headers)
    await post(other, request('ping'), headers)
    other.resourceUpdated('note://1')
    expect(await pushed.next()).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'note://1' } })
    await post(one, request('resources/unsubscribe', { uri: 'note://1' }), headers)
    await post(other, request('ping'), headers)
    other.resourceUpdated('note://1')
    expect(pushed.left).toEqual([])
  })

  it('answer for the same tasks', async () => {
    const [one, other] = await two()
    const params = { name: 'slow', task: { ttl: 60_000 } }
    const headers = await open(one)
    const { taskId } = resultOf((await post(one, request('tools/call', params), headers)).frame)['task'] as { taskId: string }
    const status = async (): Promise<unknown> =>
      resultOf((await post(other, request('tasks/get', { taskId }), headers)).frame)['status']
    while ((await status()) === 'working') await new Promise(setImmediate)
    expect(await status()).toBe('completed')
    const { frame } = await post(other, request('tasks/result', { taskId }), headers)
    expect(textOf(frame)).toBe('done at last')
  })

  it('wait for the end of a task that the other works on, and tell it to stop', async () => {
    const [one, other] = await two()
    const headers = await open(one)
    const created = await post(one, call('endless', { task: {} }), headers)
    const { taskId } = resultOf(created.frame)['task'] as { taskId: string }
    const waiting = post(other, request('tasks/result', { taskId }), headers)
    expect((await post(other, request('tasks/cancel', { taskId }), headers)).frame).toMatchObject({
      result: { status: 'cancelled' },
    })
    expect((await waiting).frame).toMatchObject({ error: { message: expect.stringContaining('cancelled') } })
    expect(await stopping.promise).toMatchObject({ name: 'AbortError' })
  })

  it('bring the answers to a task to the one that works on it', async () => {
    const [one, other] = await two()
    const first = await modern(one, 'tools/call', { name: 'sure' })
    const { taskId } = resultOf(first) as { taskId: string }
    const look = async (): Promise<Frame> => resultOf(await modern(other, 'tasks/get', { taskId }))
    while ((await look())['status'] === 'working') await new Promise(setImmediate)
    const [key = ''] = Object.keys((await look())['inputRequests'] as Frame)
    await modern(other, 'tasks/update', { taskId, inputResponses: { [key]: { action: 'accept', content: { confirm: true } } } })
    while ((await look())['status'] !== 'completed') await new Promise(setImmediate)
    expect(await look()).toMatchObject({ result: { content: [{ text: 'sure: true' }] } })
  })

  it('pass an answer on to the one that asked', async () => {
    const [one, other] = await two()
    for (const server of [one, other])
      server.tool('where', {}, async (_, ctx) => (await ctx.roots()).map(({ uri }) => uri).join())
    const headers = await open(one)
    const asked = gather(one, call('where'), headers)
    const question = await asked.first
    const answer = { jsonrpc: '2.0', id: question['id'], result: { roots: [{ uri: 'file:///here' }] } }
    expect((await post(other, answer, headers)).status).toBe(202)
    expect(textOf((await asked).heard.at(-1) as Frame)).toBe('file:///here')
  })
})

it('a session that nobody uses is forgotten by the store, one that is used is not', async () => {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const [one, other] = [replica(store, clock), replica(store, clock)]
  const [used, idle] = [await open(one), await open(one)]
  for (let minute = 0; minute < 15; minute++) {
    clock.advance(60_000)
    expect((await post(other, request('ping'), used)).status).toBe(200)
  }
  expect((await post(other, request('ping'), idle)).status).toBe(404)
  expect((await post(one, request('ping'), used)).status).toBe(200)
})

it('what is stored of a session does not let its reader into it', async () => {
  const store = memoryStore()
  const { 'mcp-session-id': id = '' } = await open(replica(store))
  const all = await store.scan('')
  expect(all.length).toBeGreaterThan(0)
  expect(JSON.stringify(all)).not.toContain(id)
})

it('a stateless request needs nothing of the store', async () => {
  const broken = memoryStore()
  await broken.close()
  const body = {
    jsonrpc: '2.0',
    id: 2,
    method: 'tools/call',
    params: enveloped('2026-07-28', { name: 'say', arguments: { text: 'x' } }),
  }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'say' }
  expect(textOf((await post(replica(broken), body, headers)).frame)).toBe('x')
})

let stopping = Promise.withResolvers<unknown>()
beforeEach(() => {
  stopping = Promise.withResolvers()
})

function stopped(reason: unknown): unknown {
  stopping.resolve(reason)
  return reason
}

async function modern(server: Server, method: string, params: Frame): Promise<Frame> {
  const declares = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const body = { jsonrpc: '2.0', id: 2, method, params: enveloped('2026-07-28', params, declares) }
  const name = params['name'] ?? params['taskId']
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': String(name) }
  return (await post(server, body, headers)).frame
}

function leave(server: Server, headers: Record<string, string>): Promise<number> {
  return new Promise(resolve => {
    const caller = { carrier: 'http' as const, connection: {}, header: (name: string) => headers[name] }
    const done = (hints?: { status?: number }): void => resolve(hints?.status ?? 0)
    server.acceptor.leave(caller, { send: (_, hints) => done(hints), end: done, closed: false, onClose: () => {} })
  })
}

/** All that one exchange brings, the answer last; and the first of it. */
function gather(server: Server, body: Frame, headers: Record<string, string>) {
  const heard: Frame[] = []
  const first = Promise.withResolvers<Frame>()
  const all = new Promise<{ heard: Frame[] }>(resolve => {
    const caller = { carrier: 'http' as const, connection: {}, header: (name: string) => headers[name] }
    server.acceptor.deliver(JSON.stringify(body), caller, {
      send: (frame, hints) => {
        heard.push(JSON.parse(frame))
        first.resolve(heard[0] as Frame)
        if (hints?.final === true) resolve({ heard })
      },
      end: () => resolve({ heard }),
      closed: false,
      onClose: () => {},
    })
  })
  return Object.assign(all, { first: first.promise })
}

/** The stream for what is said unasked. */
function listen(server: Server, headers: Record<string, string>) {
  const left: Frame[] = []
  const waiting: ((frame: Frame) => void)[] = []
  const caller = { carrier: 'http' as const, connection: {}, header: (name: string) => headers[name] }
  server.acceptor.listen(caller, {
    send: frame => {
      const next = waiting.shift()
      if (next === undefined) left.push(JSON.parse(frame))
      else next(JSON.parse(frame))
    },
    end: () => {},
    closed: false,
    onClose: () => {},
  })
  return {
    left,
    next: () => new Promise<Frame>(resolve => (left.length > 0 ? resolve(left.shift() as Frame) : waiting.push(resolve))),
  }
}
