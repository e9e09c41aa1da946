/** Tasks whose process has gone: whoever is asked for one says so. */
import { afterEach, describe, expect, it } from 'vitest'
import type { RevisionId } from '../src/revisions/index.ts'
import { createServer, type Server } from '../src/server/index.ts'
import { memoryStore } from '../src/stores/memory.ts'
import { add, type Store } from '../src/stores/store.ts'
import { type FakeClock, fakeClock } from '../src/testing/index.ts'
import { mortal } from './mortal-store.ts'
import { post } from './remembering.ts'
import { enveloped, type Frame, helloParams, resultOf } from './spec/wire.ts'

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
})

function replica(store: Store, clock: FakeClock, stopped: (reason: unknown) => void = () => {}): Server {
  const secret = 'an only secret of at least 32 characters'
  const server = createServer({ name: 'replica', version: '1.0.0', log: 'silent', store, secret, clock })
  server.tool('endless', { task: 'optional' }, (_, { signal }) => {
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => {
        stopped(signal.reason)
        reject(signal.reason)
      }),
    )
  })
  servers.push(server)
  return server
}

type Asks = (server: Server, method: string, params: Frame) => Promise<Frame>

/** How a client of a revision asks; the same one everywhere. */
async function asking(server: Server, revision: RevisionId): Promise<Asks> {
  if (revision === '2026-07-28')
    return async (at, method, params) => {
      const declares = { extensions: { 'io.modelcontextprotocol/tasks': {}, 'dev.vivarium/problem': {} } }
      const name = String(params['name'] ?? params['taskId'])
      const headers = { 'mcp-protocol-version': revision, 'mcp-method': method, 'mcp-name': name }
      const body = { jsonrpc: '2.0', id: 2, method, params: enveloped(revision, params, declares) }
      return (await post(at, body, headers, 'ann')).frame
    }
  const capabilities = { extensions: { 'dev.vivarium/problem': {} } }
  const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: helloParams(revision, capabilities) }
  const { session = '' } = await post(server, hello, {}, 'ann')
  const headers = { 'mcp-session-id': session }
  return async (at, method, params) => (await post(at, { jsonrpc: '2.0', id: 2, method, params }, headers, 'ann')).frame
}

async function world(revision: RevisionId, stopped?: (reason: unknown) => void) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const dying = mortal(store)
  const one = replica(dying.store, clock, stopped)
  const other = replica(store, clock)
  const ask = await asking(one, revision)
  const task = revision === '2026-07-28' ? {} : { task: {} }
  const created = resultOf(await ask(one, 'tools/call', { name: 'endless', ...task }))
  const { taskId } = (created['task'] ?? created) as { taskId: string }
  const look = async (server: Server): Promise<Frame> => resultOf(await ask(server, 'tasks/get', { taskId }))
  return { clock, store, one, other, ask, taskId, look, die: dying.die, revive: dying.revive }
}

const gone = expect.stringMatching(/process that ran this task has ended/)

describe.each<RevisionId>(['2025-11-25', '2026-07-28'])('at %s', revision => {
  it('a task whose process has gone has failed, and says why, when another is asked for it', async () => {
    const { clock, other, look, die } = await world(revision)
    die()
    expect(await look(other)).toMatchObject({ status: 'working' })
    clock.advance(7_000)
    expect(await look(other)).toMatchObject({ status: 'failed', statusMessage: gone })
  })

  it('it fails once, whoever and how many ask', async () => {
    const { clock, store, other, look, die } = await world(revision)
    const third = replica(store, clock)
    await Promise.all([other, third].map(look))
    die()
    clock.advance(7_000)
    // Versions come from one counter: so many writes lie between two of them.
    const written = async (): Promise<number> => {
      const outcome = await store.commit([add('probe', 1)])
      return outcome.ok ? (outcome.results[0]?.version ?? 0) : 0
    }
    const before = await written()
    await Promise.all([other, third, other, third].map(look))
    await Promise.all([other, third].map(look))
    // Its record and its place in the table, in one commit.
    expect((await written()) - before - 1).toBe(2)
  })

  it('one that goes on is not taken for gone, however long it takes', async () => {
    const { clock, other, look } = await world(revision)
    for (let second = 0; second < 30; second++) {
      clock.advance(1_000)
      await new Promise(setImmediate)
    }
    expect(await look(other)).toMatchObject({ status: 'working' })
  })

  it('a process that was only held up finds its task ended, and stops its work', async () => {
    const stopping = Promise.withResolvers<unknown>()
    const { clock, one, other, look, die, revive } = await world(revision, stopping.resolve)
    die()
    clock.advance(7_000)
    await look(other)
    revive()
    const stopped = stopping.promise.then(() => true)
    while (!(await Promise.race([stopped, new Promise<boolean>(resolve => setImmediate(resolve, false))]))) clock.advance(500)
    expect(await stopping.promise).toMatchObject({ name: 'AbortError' })
    expect(await look(one)).toMatchObject({ status: 'failed', statusMessage: gone })
  })
})

it('whoever waits for its result elsewhere hears of it, with the problem where it knows what that is', async () => {
  const { clock, other, ask, taskId, die } = await world('2025-11-25')
  const waiting = ask(other, 'tasks/result', { taskId })
  die()
  let over = false
  const heard = waiting.finally(() => {
    over = true
  })
  while (!over) {
    clock.advance(500)
    await new Promise(setImmediate)
  }
  expect(await heard).toMatchObject({
    error: { code: -32603, message: gone, data: { 'dev.vivarium/problem': { code: 'OUTCOME_UNKNOWN' } } },
  })
})

it('the list of tasks tells it too, and such a task cannot be cancelled any more', async () => {
  const { clock, other, ask, taskId, die } = await world('2025-11-25')
  die()
  clock.advance(7_000)
  expect(resultOf(await ask(other, 'tasks/list', {}))).toMatchObject({ tasks: [{ taskId, status: 'failed' }] })
  expect(await ask(other, 'tasks/cancel', { taskId })).toMatchObject({
    error: { message: expect.stringContaining('has already ended') },
  })
})
