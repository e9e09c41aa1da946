import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connect } from '../src/client/index.ts'
import { startPostgres, type TestPostgres } from './real-postgres.ts'
import { type Frame, helloParams, resultOf, textOf } from './spec/wire.ts'

interface Replica {
  readonly url: string
  readonly pid: number | undefined
  end(): Promise<void>
}

let postgres: TestPostgres
let replicas: readonly [Replica, Replica]
beforeAll(async () => {
  postgres = await startPostgres()
  replicas = await Promise.all([start(), start()])
}, 60_000)
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
  const events = eventsOf(asking)
  const question = (await events.next()).value as Frame
  expect(question).toMatchObject({ method: 'roots/list' })
  const answer = { id: question['id'], result: { roots: [{ uri: 'file:///here' }] } }
  expect((await send(other.url, answer, session)).status).toBe(202)
  expect(textOf((await events.next()).value as Frame)).toBe(`${one.pid} file:///here`)
})

async function* eventsOf({ body }: Response): AsyncGenerator<Frame, void> {
  let text = ''
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += new TextDecoder().decode(chunk)
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = /^data: ?(\S.*)$/m.exec(text.slice(0, end))?.[1]
      text = text.slice(end + 2)
      if (data !== undefined) yield JSON.parse(data)
    }
  }
}
