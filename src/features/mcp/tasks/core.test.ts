import { afterEach, describe, expect, it } from 'vitest'
import { type Frame, joined, ManualClock, RawPeer } from '../../../../test/tasks/raw-peer.ts'
import { realClock } from '../../../core/clock.ts'
import { createSeal } from '../../../core/handle.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { serverLimits } from '../../../engine/limits.ts'
import { createPaging } from '../../../engine/paging.ts'
import type { Lane, Principal } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { type RevisionId, revisionById, SupportedRevisions } from '../../../revisions/index.ts'
import { cancellation, sendCancel } from '../cancellation/receiver.ts'
import { elicitForm } from '../elicitation/server.ts'
import { lifecycleServer } from '../lifecycle/server.ts'
import { sendProgress } from '../progress/server.ts'
import type { TaskSupport } from '../tools/messages.ts'
import { reply } from '../tools/result.ts'
import { toolsServer } from '../tools/server.ts'
import { continueAsTask } from './current.ts'
import { relatedTaskKey } from './messages.ts'
import { tasksServer } from './server.ts'
import { memoryTasks } from './table.ts'

type Work = (exchange: Exchange) => unknown

const nameForm = jsonSchema<{ name: string }>({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] })
const engines: Engine[] = []

afterEach(() => Promise.all(engines.splice(0).map(engine => engine.close())))

function serve(
  tools: Record<string, [TaskSupport | undefined, Work]>,
  clock = realClock,
  pageSize = 2,
  table = memoryTasks(clock),
) {
  const seal = createSeal({ clock })
  const cache = { ttlMs: 0, cacheScope: 'private' as const }
  const paging = createPaging({ seal, pageSize: 10, cache, cursorMs: 1000, now: clock.now })
  const offered = toolsServer<Exchange>({ paging, context: exchange => exchange, failed: () => {} })
  for (const [name, [task, work]] of Object.entries(tools)) {
    offered.catalog.add(offered.compile(name, task === undefined ? {} : { task }, (_, exchange) => work(exchange)))
  }
  const tasks = tasksServer({ table, seal, tools: offered.catalog, pageSize })
  const engine = new Engine({
    role: 'server',
    info: { name: 'test', version: '1' },
    spoken: new SupportedRevisions(['2025-06-18', '2025-11-25', 'draft-2026-v1']),
    limits: serverLimits,
    sides: [lifecycleServer({ cache }), offered.side, tasks.side, cancellation()],
    clock,
    sendCancel,
  })
  engines.push(engine)
  return { engine, tasks, open: (principal?: Principal, version: RevisionId = '2025-11-25') => open(engine, principal, version) }
}

/** A peer that has shaken hands. */
async function open(engine: Engine, principal: Principal | undefined, protocolVersion: string): Promise<RawPeer> {
  const [server, client] = joined(principal)
  engine.accept(server)
  const peer = new RawPeer(client)
  await peer.result('initialize', {
    protocolVersion,
    capabilities: { elicitation: {} },
    clientInfo: { name: 'raw', version: '1' },
  })
  peer.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return peer
}

const start = async (peer: RawPeer, name: string, task: Params = {}): Promise<Frame> =>
  (await peer.result('tools/call', { name, task }))['task'] as Frame
const askName = async (exchange: Exchange): Promise<string> => {
  const answer = await elicitForm(exchange, { message: 'Who?', schema: nameForm })
  return answer.action === 'accept' ? answer.content.name : answer.action
}
const never = () => new Promise(() => {})
const status = (peer: RawPeer, taskId: unknown, wanted: string) =>
  peer.heard('notifications/tasks/status', params => params['taskId'] === taskId && params['status'] === wanted)
const related = (taskId: unknown) => ({ [relatedTaskKey]: { taskId } })

describe('tasks of the core form (rev D §1.6)', () => {
  it('answers a call that asks for a task with the task, then tells its status and gives the wrapped result', async () => {
    const peer = await serve({ slow: ['optional', () => 'done'] }).open()
    const created = await peer.result('tools/call', { name: 'slow', task: { ttl: 60_000 } })
    expect(created).toEqual({
      task: {
        taskId: expect.any(String),
        status: 'working',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        lastUpdatedAt: expect.any(String),
        ttl: 60_000,
        pollInterval: 1_000,
      },
    })
    const { taskId } = created['task'] as Frame
    expect(await status(peer, taskId, 'completed')).toMatchObject({ ttl: 60_000 })
    expect(await peer.result('tasks/get', { taskId })).toMatchObject({
      taskId,
      status: 'completed',
      ttl: 60_000,
      pollInterval: 1_000,
    })
    expect(await peer.result('tasks/result', { taskId })).toEqual({
      content: [{ type: 'text', text: 'done' }],
      _meta: related(taskId),
    })
  })

  it("puts a wrapped result through the call's own version steps", async () => {
    const peer = await serve({ list: ['optional', () => reply({ structured: [1, 2] })] }).open()
    const { taskId } = await start(peer, 'list')
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({ structuredContent: { result: [1, 2] } })
  })

  it('runs a call without params.task at once, unless the tool runs only as a task', async () => {
    const peer = await serve({ may: ['optional', () => 'now'], must: ['required', () => 'later'] }).open()
    expect(await peer.result('tools/call', { name: 'may' })).toEqual({ content: [{ type: 'text', text: 'now' }] })
    expect(await peer.code('tools/call', { name: 'must' })).toBe(-32601)
  })

  it('refuses params.task for a tool that does not run as one, and a wish it can not read', async () => {
    const peer = await serve({ plain: [undefined, () => ''], not: ['forbidden', () => ''], may: ['optional', never] }).open()
    for (const name of ['plain', 'not']) expect(await peer.code('tools/call', { name, task: {} })).toBe(-32601)
    for (const task of [true, { ttl: 'long' }, { ttl: 1.5 }, { ttl: -1 }])
      expect(await peer.code('tools/call', { name: 'may', task })).toBe(-32602)
  })

  it('ignores params.task while tasks are not declared, and on wires that have none', async () => {
    const bare = await serve({ plain: [undefined, () => 'now'] }).open()
    expect(await bare.result('tools/call', { name: 'plain', task: {} })).toMatchObject({ content: [{ text: 'now' }] })
    const old = await serve({ must: ['required', () => 'now'] }).open(undefined, '2025-06-18')
    expect(await old.result('tools/call', { name: 'must', task: {} })).toMatchObject({ content: [{ text: 'now' }] })
    expect(await old.code('tasks/get', { taskId: 'x' })).toBe(-32601)
  })

  it('keeps a task as long as the caller asks for, within bounds', async () => {
    const peer = await serve({ slow: ['optional', never] }).open()
    expect(await start(peer, 'slow', { ttl: 0 })).toMatchObject({ ttl: 1_000 })
    expect(await start(peer, 'slow', { ttl: 1e12 })).toMatchObject({ ttl: 86_400_000 })
  })

  it("counts a tool's own failure as failed and still gives its result", async () => {
    const peer = await serve({ bad: ['optional', () => Promise.reject(new Error('no disk'))] }).open()
    const { taskId } = await start(peer, 'bad')
    await status(peer, taskId, 'failed')
    expect(await peer.result('tasks/get', { taskId })).toMatchObject({ status: 'failed' })
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({
      isError: true,
      content: [{ text: 'no disk' }],
      _meta: related(taskId),
    })
  })

  it('gives the very error of the call from tasks/result', async () => {
    const peer = await serve({
      bad: ['optional', () => Promise.reject(new McpError('invalid-params', 'wrong', { data: 1 }))],
    }).open()
    const { taskId } = await start(peer, 'bad')
    expect((await peer.request('tasks/result', { taskId }))['error']).toEqual({ code: -32602, message: 'wrong', data: 1 })
  })

  it('blocks tasks/result until the end, asking on its way with the task named', async () => {
    const peer = await serve({
      ask: ['optional', async exchange => `Hello ${await askName(exchange)} and ${await askName(exchange)}`],
    }).open()
    const names = ['Ann', 'Bob']
    peer.onRequest = () => ({ action: 'accept', content: { name: names.shift() } })
    const { taskId } = await start(peer, 'ask')
    await status(peer, taskId, 'input_required')
    expect(peer.said.some(({ method }) => method === 'elicitation/create')).toBe(false)
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'Hello Ann and Bob' }] })
    const asked = peer.said.filter(({ method }) => method === 'elicitation/create')
    expect(asked).toMatchObject([{ params: { message: 'Who?', _meta: related(taskId) } }, { params: { _meta: related(taskId) } }])
    const states = peer.said
      .filter(({ method }) => method === 'notifications/tasks/status')
      .map(({ params }) => (params as Params)['status'])
    expect(states).toEqual(['input_required', 'working', 'input_required', 'working', 'completed'])
  })

  it('tells every step of the status, in order, however slow the table is', async () => {
    const table = memoryTasks(realClock)
    const change = table.change.bind(table)
    table.change = async (...args) => {
      await new Promise(resolve => setTimeout(resolve, 20))
      return change(...args)
    }
    const twice: Work = async exchange => `${await askName(exchange)} and ${await askName(exchange)}`
    const peer = await serve({ ask: ['optional', twice] }, realClock, 2, table).open()
    peer.onRequest = () => ({ action: 'accept', content: { name: 'Ann' } })
    const { taskId } = await start(peer, 'ask')
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'Ann and Ann' }] })
    const states = peer.said
      .filter(({ method }) => method === 'notifications/tasks/status')
      .map(({ params }) => (params as Params)['status'])
    expect(states).toEqual(['input_required', 'working', 'input_required', 'working', 'completed'])
  })

  it('asks again on the next tasks/result what was left unanswered on one that was given up', async () => {
    const peer = await serve({ ask: ['optional', askName] }).open()
    const { taskId } = await start(peer, 'ask')
    await status(peer, taskId, 'input_required')
    peer.send({ jsonrpc: '2.0', id: 900, method: 'tasks/result', params: { taskId } })
    await peer.heard('elicitation/create')
    peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 900 } })
    await peer.heard('notifications/cancelled')
    peer.onRequest = () => ({ action: 'accept', content: { name: 'Ann' } })
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'Ann' }] })
  })

  it('hands a malformed answer and a refusal to the handler', async () => {
    const peer = await serve({ ask: ['optional', exchange => askName(exchange).catch((error: Error) => error.message)] }).open()
    const { taskId } = await start(peer, 'ask')
    peer.onRequest = () => ({ action: 'shrug' })
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({
      content: [{ text: expect.stringContaining('malformed') }],
    })
  })

  it('cancels a task that runs and answers it; one that has ended or never was is refused', async () => {
    let signal: AbortSignal | undefined
    const peer = await serve({
      slow: [
        'optional',
        exchange => {
          signal = exchange.signal
          return askName(exchange)
        },
      ],
    }).open()
    const { taskId } = await start(peer, 'slow')
    await status(peer, taskId, 'input_required')
    const waiting = peer.request('tasks/result', { taskId })
    expect(await peer.result('tasks/cancel', { taskId })).toMatchObject({
      taskId,
      status: 'cancelled',
      statusMessage: 'The task was cancelled',
    })
    expect(signal?.aborted).toBe(true)
    expect((await waiting)['error']).toMatchObject({ code: -32603, message: 'The task was cancelled' })
    expect(await peer.code('tasks/cancel', { taskId })).toBe(-32602)
    expect(await peer.code('tasks/cancel', { taskId: 'nobody' })).toBe(-32602)
  })

  it('lists the tasks of an identified caller in pages, and nobody else', async () => {
    const { open } = serve({ slow: ['optional', never] })
    const [ann, eve, nobody] = [await open({ id: 'ann' }), await open({ id: 'eve' }), await open()]
    const ids: unknown[] = []
    for (let at = 0; at < 3; at++) ids.push((await start(ann, 'slow'))['taskId'])
    const first = await ann.result('tasks/list')
    const second = await ann.result('tasks/list', { cursor: first['nextCursor'] })
    expect([first, second].flatMap(({ tasks }) => (tasks as Frame[]).map(({ taskId }) => taskId))).toEqual(ids)
    expect(second).not.toHaveProperty('nextCursor')
    expect(first['tasks']).toMatchObject([{ ttl: 3_600_000 }, {}])
    expect(await eve.result('tasks/list')).toEqual({ tasks: [] })
    expect(await eve.code('tasks/list', { cursor: first['nextCursor'] })).toBe(-32602)
    expect(await nobody.code('tasks/list')).toBe(-32601)
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
      expect(await eve.code(method, { taskId: ids[0] })).toBe(-32602)
  })

  it('declares what it takes, and the list only to a caller that is someone', async () => {
    const { tasks } = serve({ slow: ['optional', never] })
    const revision = revisionById('2025-11-25')
    const requests = { tools: { call: {} } }
    expect(tasks.side.capabilities?.(revision)).toEqual({ tasks: { cancel: {}, requests } })
    const caller = { carrier: 'memory' as const, connection: {}, principal: { id: 'ann' } }
    expect(tasks.side.capabilities?.(revision, caller)).toEqual({ tasks: { list: {}, cancel: {}, requests } })
    expect(tasks.side.capabilities?.(revisionById('2025-06-18'))).toEqual({})
  })

  it("goes on with the call's progress after the answer, named as the task's", async () => {
    const peer = await serve({
      slow: ['optional', exchange => `${sendProgress(exchange, { progress: 1 }, () => true)} ${String(exchange.answered)}`],
    }).open()
    const { task } = await peer.result('tools/call', { name: 'slow', task: {}, _meta: { progressToken: 7 } })
    const { taskId } = task as Frame
    expect(await peer.heard('notifications/progress')).toEqual({ progressToken: 7, progress: 1, _meta: related(taskId) })
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'true true' }] })
  })

  it('is a task at once here, whatever its handler says later', async () => {
    const peer = await serve({ slow: ['optional', async exchange => String(await continueAsTask(exchange))] }).open()
    const { taskId } = await start(peer, 'slow')
    expect(await peer.result('tasks/result', { taskId })).toMatchObject({ content: [{ text: 'true' }] })
  })

  it('ends the wait of tasks/result when the time of the task is over', async () => {
    const clock = new ManualClock()
    const peer = await serve({ slow: ['optional', never] }, clock).open()
    const { taskId } = await start(peer, 'slow', { ttl: 1_000 })
    const waiting = peer.request('tasks/result', { taskId })
    await peer.result('tasks/get', { taskId })
    clock.advance(1_250)
    expect((await waiting)['error']).toMatchObject({ code: -32602 })
  })
})

describe('tasks over HTTP (rev D §1.2)', () => {
  it('asks on the stream of tasks/result and gives up on it when that stream is gone', async () => {
    const { engine } = serve({ ask: ['optional', askName] })
    const post = http(engine)
    const hello = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo: { name: 'raw', version: '1' } }
    const session = (await post('initialize', hello).first).headers?.['mcp-session-id']
    const { task } = (await post('tools/call', { name: 'ask', task: {} }, session).first).frame['result'] as { task: Frame }
    const lost = post('tasks/result', task, session)
    const question = await lost.first
    expect(question.frame).toMatchObject({ method: 'elicitation/create', params: { _meta: related(task['taskId']) } })
    lost.close()
    const again = post('tasks/result', task, session)
    const second = await again.first
    expect(second.frame).toMatchObject({ method: 'elicitation/create' })
    post(undefined, { id: second.frame['id'], result: { action: 'accept', content: { name: 'Ann' } } }, session)
    expect((await again.second).frame).toMatchObject({ result: { content: [{ text: 'Ann' }] } })
  })
})

interface Sent {
  readonly frame: Frame
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Posts bodies as a carrier would; each has a lane of its own. Without a method the params are the body's own members. */
function http(engine: Engine) {
  let id = 0
  return (method: string | undefined, params: Params, session?: string) => {
    const sent = [Promise.withResolvers<Sent>(), Promise.withResolvers<Sent>()]
    let at = 0
    let onClose = (): void => {}
    const lane: { -readonly [K in keyof Lane]: Lane[K] } = {
      closed: false,
      send: (text, hints) => sent[at++]?.resolve({ frame: JSON.parse(text), headers: hints?.headers }),
      end: () => {},
      onClose: fn => {
        onClose = fn
      },
    }
    const header = (name: string) => (name === 'mcp-session-id' ? session : undefined)
    const body = method === undefined ? { jsonrpc: '2.0', ...params } : { jsonrpc: '2.0', id: ++id, method, params }
    engine.deliver(JSON.stringify(body), { carrier: 'http', connection: {}, header }, lane)
    const close = (): void => {
      lane.closed = true
      onClose()
    }
    return { first: sent[0]?.promise as Promise<Sent>, second: sent[1]?.promise as Promise<Sent>, close }
  }
}

describe('tasks of the draft (§2.8)', () => {
  const modern = (params: Params): Params => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': 'DRAFT-2026-v1',
      'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    }
    return { ...params, _meta: { ..._meta, ...(params['_meta'] as Params | undefined) } }
  }

  it('answers tasks/result with the questions, takes tasks/input_response, and wraps the result like 2025-11-25', async () => {
    const { engine } = serve({ ask: ['required', askName] })
    const [server, client] = joined()
    engine.accept(server)
    const peer = new RawPeer(client)
    const created = await peer.result('tools/call', modern({ name: 'ask', task: { ttl: 5_000 } }))
    expect(created).toMatchObject({ resultType: 'complete', task: { status: 'working', ttl: 5_000 } })
    const { taskId } = created['task'] as Frame
    const questions = await peer.result('tasks/result', modern({ taskId }))
    expect(questions).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'elicit-1': { method: 'elicitation/create' } },
    })
    const inputResponses = { 'elicit-1': { action: 'accept', content: { name: 'Ann' } } }
    expect(await peer.code('tasks/input_response', modern({ inputResponses }))).toBe(-32602)
    const taken = await peer.result('tasks/input_response', modern({ inputResponses, _meta: related(taskId) }))
    expect(taken).toEqual({ resultType: 'complete', _meta: related(taskId) })
    const result = await peer.result('tasks/result', modern({ taskId }))
    expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'Ann' }], _meta: related(taskId) })
    expect(await peer.result('tasks/get', modern({ taskId }))).toMatchObject({ status: 'completed', ttl: 5_000 })
    expect(peer.said).toEqual([])
  })
})
