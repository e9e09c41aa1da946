/** Streams that break at one of several servers on one store, and are gone on with at another. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { RevisionId } from '../src/revisions/index.ts'
import { createServer, type Server, type ServerOptions } from '../src/server/index.ts'
import { memoryStore } from '../src/stores/memory.ts'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import type { Store } from '../src/stores/store.ts'
import { fakeClock } from '../src/testing/index.ts'
import { Stream } from './event-stream.ts'
import { mortal } from './mortal-store.ts'
import { type Frame, helloParams } from './spec/wire.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function sqlite(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-streams-'))
  const store = await sqliteStore({ path: join(folder, 'shared.db') })
  ends.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => store.close(),
  )
  return store
}

/** A server whose tool says what the test tells it to, and then answers. */
interface Replica {
  readonly server: Server
  /** Says one more step on the stream of the call that runs. */
  step(): Promise<void>
  answer(): void
}

function replica(store: Store, more: Partial<ServerOptions> = {}): Replica {
  const server = createServer({ name: 'replica', version: '1.0.0', log: 'silent', store, ...more })
  let began = Promise.withResolvers<() => void>()
  const done = Promise.withResolvers<void>()
  let count = 0
  server.tool('work', {}, async (_, ctx) => {
    began.resolve(() => void ctx.progress(++count))
    await done.promise
    began = Promise.withResolvers()
    return 'worked'
  })
  server.tool('plain', {}, () => 'plain')
  server.resource('note://{id}', { name: 'note' }, () => 'a note')
  ends.push(() => server.close())
  return { server, step: async () => (await began.promise)(), answer: done.resolve }
}

type Headers = Record<string, string>

/** The face without sockets: the same streams, and the caller can be anybody. */
function ask(server: Server, method: string, headers: Headers, body?: Frame, principal?: string, signal?: AbortSignal) {
  const request = new Request('http://localhost/mcp', {
    method,
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify({ jsonrpc: '2.0', ...body }) }),
    ...(signal === undefined ? {} : { signal }),
  })
  return server.fetch(request, principal === undefined ? {} : { principal: { id: principal } })
}

async function open(server: Server, revision: RevisionId, principal?: string): Promise<Headers> {
  const hello = { id: 1, method: 'initialize', params: helloParams(revision, {}) }
  const response = await ask(server, 'POST', {}, hello, principal)
  const headers = { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': revision }
  await ask(server, 'POST', headers, { method: 'notifications/initialized' }, principal)
  return headers
}

const work = { id: 7, method: 'tools/call', params: { name: 'work', _meta: { progressToken: 't' } } }
const progress = (step: number): Frame => ({ method: 'notifications/progress', params: { progressToken: 't', progress: step } })
const answered = { id: 7, result: { content: [{ type: 'text', text: 'worked' }] } }

async function streamOf(server: Server, method: string, headers: Headers, body?: Frame, principal?: string): Promise<Stream> {
  const cutting = new AbortController()
  return new Stream(await ask(server, method, headers, body, principal, cutting.signal), cutting)
}

const back = (headers: Headers, id: string | undefined): Headers => ({ ...headers, 'last-event-id': id ?? '' })

describe.each([
  ['memory', async () => memoryStore()],
  ['sqlite', sqlite],
] as const)('on one %s store', (_, make) => {
  describe.each<RevisionId>(['2025-03-26', '2025-06-18', '2025-11-25'])('at %s', revision => {
    async function two(): Promise<[Replica, Replica, Headers]> {
      const store = await make()
      const one = replica(store)
      return [one, replica(store), await open(one.server, revision)]
    }

    it('the stream of a call that one server runs is gone on with at the other: what was missed, what follows, the answer', async () => {
      const [one, other, headers] = await two()
      const calling = streamOf(one.server, 'POST', headers, work)
      await one.step()
      const call = await calling
      expect(await call.next()).toMatchObject(progress(1))
      call.cut()
      await one.step()
      const rest = await streamOf(other.server, 'GET', back(headers, call.lastId))
      expect(await rest.next()).toMatchObject(progress(2))
      await one.step()
      expect(await rest.next()).toMatchObject(progress(3))
      one.answer()
      expect(await rest.next()).toMatchObject(answered)
      expect(await rest.next()).toBeUndefined()
    })

    it('what has ended is replayed by the other from where its reader stood, and just ends for one who has had it all', async () => {
      const [one, other, headers] = await two()
      const calling = streamOf(one.server, 'POST', headers, work)
      await one.step()
      await one.step()
      one.answer()
      const call = await calling
      const ids: (string | undefined)[] = []
      for (let event = await call.next(); event !== undefined; event = await call.next()) ids.push(call.lastId)
      const [first, , last] = ids
      const again = await streamOf(other.server, 'GET', back(headers, first))
      expect(await again.all()).toMatchObject([progress(2), answered])
      expect(again.lastId).toBe(last)
      expect(await (await streamOf(other.server, 'GET', back(headers, last))).all()).toEqual([])
    })

    it('what both say unasked is heard at either, each once, wherever the stream breaks', async () => {
      const [one, other, headers] = await two()
      for (const id of [1, 2, 3, 4, 5, 6])
        await ask(one.server, 'POST', headers, { id: 2, method: 'resources/subscribe', params: { uri: `note://${id}` } })
      const updated = (id: number): Frame => ({ method: 'notifications/resources/updated', params: { uri: `note://${id}` } })
      const first = await streamOf(one.server, 'GET', headers)
      one.server.resourceUpdated('note://1')
      expect(await first.next()).toMatchObject(updated(1))
      first.cut()
      one.server.resourceUpdated('note://2')
      const second = await streamOf(other.server, 'GET', back(headers, first.lastId))
      expect(await second.next()).toMatchObject(updated(2))
      one.server.resourceUpdated('note://3')
      expect(await second.next()).toMatchObject(updated(3))
      other.server.resourceUpdated('note://4')
      expect(await second.next()).toMatchObject(updated(4))
      second.cut()
      one.server.resourceUpdated('note://5')
      other.server.resourceUpdated('note://6')
      const third = await streamOf(one.server, 'GET', back(headers, second.lastId))
      const missed = [await third.next(), await third.next()]
      expect(missed).toEqual(expect.arrayContaining([5, 6].map(id => expect.objectContaining(updated(id)))))
      one.server.resourceUpdated('note://1')
      expect(await third.next()).toMatchObject(updated(1))
      third.cut()
    })

    it('a call whose process went is answered by the other with words to that effect, once', async () => {
      const clock = fakeClock()
      const store = memoryStore({ now: clock.now })
      const dying = mortal(store)
      const one = replica(dying.store, { clock })
      const other = replica(store, { clock })
      const headers = await open(one.server, revision)
      const calling = streamOf(one.server, 'POST', headers, work)
      await one.step()
      const call = await calling
      await call.next()
      while ((await store.scan('streamed/')).length === 0) await new Promise(setImmediate)
      dying.die()
      await one.step()
      call.cut()
      clock.advance(7_000)
      const rest = await streamOf(other.server, 'GET', back(headers, call.lastId))
      const words = { id: 7, error: { code: -32603, message: expect.stringMatching(/process that ran this call ended/) } }
      expect(await rest.all()).toMatchObject([words])
      expect(await (await streamOf(other.server, 'GET', back(headers, rest.lastId))).all()).toEqual([])
    })

    it('a server that is closed leaves its calls with such words at once', async () => {
      const [one, other, headers] = await two()
      const calling = streamOf(one.server, 'POST', headers, work)
      await one.step()
      const call = await calling
      await call.next()
      const rest = streamOf(other.server, 'GET', back(headers, call.lastId))
      await one.server.close()
      expect(await (await rest).all()).toMatchObject([
        { id: 7, error: { message: expect.stringContaining('ended before it sent a response') } },
      ])
    })
  })

  it('a stream is found in its own session by its own principal alone: others get what they get for one that never was', async () => {
    const store = await make()
    const [one, other] = [replica(store), replica(store)]
    const [anns, second] = [await open(one.server, '2025-11-25', 'ann'), await open(one.server, '2025-11-25', 'ann')]
    const calling = streamOf(one.server, 'POST', anns, work, 'ann')
    await one.step()
    const call = await calling
    await call.next()
    call.cut()
    const tried = async (headers: Headers, id: string | undefined, who?: string) => {
      const response = await ask(other.server, 'GET', back(headers, id), undefined, who)
      return [response.status, await response.text()]
    }
    const never = await tried({ ...anns, 'mcp-session-id': 'never' }, call.lastId, 'bob')
    expect(never[0]).toBe(404)
    expect(await tried(anns, call.lastId, 'bob')).toEqual(never)
    expect(await tried(anns, call.lastId)).toEqual(never)
    expect(await tried(second, call.lastId, 'ann')).toEqual(await tried(anns, 'unknown-1', 'ann'))
    one.answer()
    expect((await (await streamOf(other.server, 'GET', back(anns, call.lastId), undefined, 'ann')).all()).at(-1)).toMatchObject(
      answered,
    )
  })

  it('a session that its client ends leaves nothing of its streams', async () => {
    const store = await make()
    const [one, other] = [replica(store), replica(store)]
    const headers = await open(one.server, '2025-11-25')
    const calling = streamOf(one.server, 'POST', headers, work)
    await one.step()
    const call = await calling
    await call.next()
    const rest = await streamOf(other.server, 'GET', back(headers, call.lastId))
    expect((await ask(other.server, 'DELETE', headers)).status).toBe(200)
    expect(await rest.all()).toEqual([])
    while ((await store.scan('stream')).length > 0) await new Promise(setImmediate)
  })

  it('a call that is answered at once writes nothing of a stream', async () => {
    const store = await make()
    const { server } = replica(store)
    const headers = await open(server, '2025-11-25')
    for (let id = 1; id < 5; id++) {
      const body = { id, method: 'tools/call', params: { name: 'plain' } }
      expect(await (await ask(server, 'POST', headers, body)).json()).toMatchObject({ id, result: {} })
    }
    await server.close()
    expect(await store.scan('stream')).toEqual([])
  })
})
