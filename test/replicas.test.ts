import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect } from '../src/client/index.ts'
import type { RevisionId } from '../src/revisions/index.ts'
import { Stream } from './event-stream.ts'
import { startPostgres, type TestPostgres } from './real-postgres.ts'
import { type Frame, helloParams, resultOf, textOf } from './spec/wire.ts'

interface Replica {
  readonly url: string
  readonly pid: number | undefined
  /** Says a word to the process. */
  tell(word: string): void
  /** Ends it as a crash would. */
  kill(): Promise<void>
  end(): Promise<void>
}

let postgres: TestPostgres
let replicas: readonly [Replica, Replica]
beforeAll(async () => {
  postgres = await startPostgres()
  replicas = await Promise.all([start(), start()])
})
afterAll(async () => {
  await Promise.all((replicas ?? []).map(replica => replica.end()))
  await postgres?.stop()
})

async function start(): Promise<Replica> {
  const child: ChildProcess = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'replica.ts')],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, STORE: postgres.url, SECRET: 'an only secret of at least 32 characters' },
    },
  )
  const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  return {
    url: String(line).trim(),
    pid: child.pid,
    tell: word => void child.stdin?.write(`${word}\n`),
    kill: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
    end: async () => {
      const ended = once(child, 'exit')
      child.stdin?.end()
      await ended
    },
  }
}

async function send(url: string, body: Frame, session?: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session === undefined ? {} : { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  })
}

async function open(url: string): Promise<string> {
  const answer = await send(url, { id: 1, method: 'initialize', params: helloParams('2025-11-25', { roots: {} }) })
  return answer.headers.get('mcp-session-id') ?? ''
}

const call = async (url: string, session: string, name: string, more: Frame = {}): Promise<Frame> =>
  (await send(url, { id: 2, method: 'tools/call', params: { name, ...more } }, session)).json()

it('a 2025-era session that one process opened is continued by another, with its state', async () => {
  const [one, other] = replicas
  const session = await open(one.url)
  expect(textOf(await call(one.url, session, 'who'))).toBe(`${one.pid} bare 2025-11-25`)
  expect(textOf(await call(other.url, session, 'who'))).toBe(`${other.pid} bare 2025-11-25`)
  expect(textOf(await call(one.url, session, 'count'))).toBe('1')
  expect(textOf(await call(other.url, session, 'count'))).toBe('2')
  await fetch(other.url, { method: 'DELETE', headers: { 'mcp-session-id': session } })
  expect((await send(one.url, { id: 3, method: 'ping' }, session)).status).toBe(404)
})

it('the state that a client of 2026-07-28 carries is good for every process', async () => {
  const [one, other] = replicas
  await using first = await connect(one.url, { revisions: ['2026-07-28'] })
  const { meta } = await first.callTool('count')
  await using second = await connect(other.url, { revisions: ['2026-07-28'] })
  const again = await second.callTool('count', {}, { meta: { 'dev.vivarium/state': meta?.['dev.vivarium/state'] } })
  expect(again.text).toBe('2')
  expect((await second.callTool('count')).text).toBe('3')
})

it('one process answers for the task that another works on', async () => {
  const [one, other] = replicas
  const session = await open(one.url)
  const created = await call(one.url, session, 'slow', { task: {} })
  const { taskId } = resultOf(created)['task'] as { taskId: string }
  const asked = async (method: string): Promise<Frame> =>
    (await send(other.url, { id: 4, method, params: { taskId } }, session)).json()
  while (resultOf(await asked('tasks/get'))['status'] === 'working');
  expect(textOf(await asked('tasks/result'))).toBe(`done by ${one.pid}`)
})

it('an answer that is posted to the wrong process reaches the one that asked', async () => {
  const [one, other] = replicas
  const session = await open(one.url)
  const asking = await send(one.url, { id: 5, method: 'tools/call', params: { name: 'where' } }, session)
  const events = new Stream(asking, new AbortController())
  const question = (await events.next()) as Frame
  expect(question).toMatchObject({ method: 'roots/list' })
  const answer = { id: question['id'], result: { roots: [{ uri: 'file:///here' }] } }
  expect((await send(other.url, answer, session)).status).toBe(202)
  expect(textOf((await events.next()) as Frame)).toBe(`${one.pid} file:///here`)
})

const climb = { id: 7, method: 'tools/call', params: { name: 'climb', _meta: { progressToken: 't' } } }
const step = (progress: number): Frame => ({ method: 'notifications/progress', params: { progress } })

async function streamFrom(url: string, headers: Record<string, string>, body?: Frame): Promise<Stream> {
  const cutting = new AbortController()
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    signal: cutting.signal,
    ...(body === undefined ? {} : { body: JSON.stringify({ jsonrpc: '2.0', ...body }) }),
  })
  return new Stream(response, cutting)
}

const sessionRevisions: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25']

async function joined(replica: Replica, revision: RevisionId): Promise<Record<string, string>> {
  const hello = await send(replica.url, { id: 1, method: 'initialize', params: helloParams(revision, {}) })
  const headers = { 'mcp-session-id': hello.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': revision }
  await streamFrom(replica.url, headers, { method: 'notifications/initialized' })
  return headers
}

function back(headers: Record<string, string>, { lastId = '' }: Stream): Record<string, string> {
  return { ...headers, 'last-event-id': lastId }
}

describe.each(sessionRevisions)('a stream that breaks at %s', revision => {
  it('is gone on with by another process, until the answer of the one that runs the call', async () => {
    const [one, other] = replicas
    const headers = await joined(one, revision)
    const call = await streamFrom(one.url, headers, climb)
    expect(await call.next()).toMatchObject(step(1))
    call.cut()
    one.tell('step')
    const rest = await streamFrom(other.url, back(headers, call))
    expect(await rest.next()).toMatchObject(step(2))
    one.tell('step')
    expect(await rest.next()).toMatchObject(step(3))
    one.tell('top')
    expect(textOf((await rest.next()) as Frame)).toBe(`climbed by ${one.pid}`)
    expect(await rest.next()).toBeUndefined()
  })

  it('goes on with what both processes say unasked', async () => {
    const [one, other] = replicas
    const headers = await joined(one, revision)
    for (const uri of ['note://1', 'note://2', 'note://3'])
      await (await streamFrom(one.url, headers, { id: 2, method: 'resources/subscribe', params: { uri } })).all()
    const updated = (uri: string): Frame => ({ method: 'notifications/resources/updated', params: { uri } })
    const heard = await streamFrom(one.url, headers)
    one.tell('note://1')
    expect(await heard.next()).toMatchObject(updated('note://1'))
    heard.cut()
    one.tell('note://2')
    const rest = await streamFrom(other.url, back(headers, heard))
    expect(await rest.next()).toMatchObject(updated('note://2'))
    other.tell('note://3')
    expect(await rest.next()).toMatchObject(updated('note://3'))
    one.tell('note://1')
    expect(await rest.next()).toMatchObject(updated('note://1'))
    rest.cut()
  })
})

it('streams whose process was killed are replayed by another, and end with the words that it has gone', async () => {
  const [one] = replicas
  const dying = await start()
  const begun = sessionRevisions.map(async revision => {
    const headers = await joined(dying, revision)
    const call = await streamFrom(dying.url, headers, climb)
    expect(await call.next()).toMatchObject(step(1))
    return { headers: back(headers, call), call }
  })
  const calls = await Promise.all(begun)
  dying.tell('step')
  for (const { headers, call } of calls) {
    expect(await call.next()).toMatchObject(step(2))
    // Whoever reads it elsewhere has it from the store: so it is there.
    const elsewhere = await streamFrom(one.url, headers)
    expect(await elsewhere.next()).toMatchObject(step(2))
    elsewhere.cut()
  }
  await dying.kill()
  const words = { id: 7, error: { message: expect.stringContaining('The process that ran this call ended') } }
  const rests = await Promise.all(calls.map(async ({ headers }) => (await streamFrom(one.url, headers)).all()))
  expect(rests).toMatchObject(sessionRevisions.map(() => [step(2), words]))
})

it('a task whose process was killed fails, for those who ask and for those who wait', async () => {
  const [one] = replicas
  const dying = await start()
  const session = await open(dying.url)
  const { taskId } = resultOf(await call(dying.url, session, 'endless', { task: {} }))['task'] as { taskId: string }
  const asked = async (method: string): Promise<Frame> =>
    (await send(one.url, { id: 4, method, params: { taskId } }, session)).json()
  const waiting = asked('tasks/result')
  await dying.kill()
  const gone = expect.stringContaining('The process that ran this task has ended')
  while (resultOf(await asked('tasks/get'))['status'] === 'working') await wait(100)
  expect(resultOf(await asked('tasks/get'))).toMatchObject({ status: 'failed', statusMessage: gone })
  expect(await waiting).toMatchObject({ error: { message: gone } })
})

it('a client whose call breaks with its connection gets the answer through whichever process it reaches next', async () => {
  const [one, other] = replicas
  await using balancer = await balance(one.url)
  await using client = await connect(balancer.url, { revisions: ['2025-11-25'] })
  const begun = Promise.withResolvers<void>()
  const answer = client.callTool('climb', {}, { onProgress: () => begun.resolve() })
  await begun.promise
  balancer.turnTo(other.url)
  one.tell('top')
  expect((await answer).text).toBe(`climbed by ${one.pid}`)
})

/** One address in front of several processes, as operators have it. */
async function balance(first: string) {
  let to = new URL(first)
  const sockets = new Set<Socket>()
  const server = createServer(near => {
    const far = connectSocket(Number(to.port), to.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
    }
    near.pipe(far).pipe(near)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}${to.pathname}`,
    /** What is open breaks; what comes goes there. */
    turnTo: (url: string) => {
      to = new URL(url)
      cut()
    },
    [Symbol.asyncDispose]: async () => {
      cut()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
