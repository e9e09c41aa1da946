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
import { SupportedRevisions } from '../../../revisions/index.ts'
import { elicitForm } from '../elicitation/server.ts'
import { replayAsking, unsealLayer } from '../input-required/server.ts'
import { lifecycleServer } from '../lifecycle/server.ts'
import { progress } from '../progress/messages.ts'
import { subscriptionsServer } from '../subscriptions/server.ts'
import type { ToolFacts } from '../tools/entry.ts'
import { reply } from '../tools/result.ts'
import { toolsServer } from '../tools/server.ts'
import { continueAsTask, currentTask } from './current.ts'
import { type TaskFacts, tasksExtension } from './messages.ts'
import { tasksServer } from './server.ts'
import { memoryTasks } from './table.ts'

type Work = (exchange: Exchange, args: Params) => unknown

const nameForm = jsonSchema<{ name: string }>({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] })
const engines: Engine[] = []

afterEach(() => Promise.all(engines.splice(0).map(engine => engine.close())))

/** A server of tools, each with what it says of tasks. */
function serve(tools: Record<string, [TaskFacts | undefined, Work]>, clock = realClock, limits = {}) {
  const seal = createSeal({ clock })
  const cache = { ttlMs: 0, cacheScope: 'private' as const }
  const paging = createPaging({ seal, pageSize: 10, cache, cursorMs: 1000, now: clock.now })
  const offered = toolsServer<Exchange>({ paging, context: exchange => exchange, failed: () => {} })
  for (const [name, [task, work]] of Object.entries(tools)) {
    const facts: ToolFacts = { input: jsonSchema({ type: 'object' }), ...(task === undefined ? {} : { task: task.support }) }
    offered.catalog.add(offered.compile(name, facts, (args, exchange) => work(exchange, args)))
  }
  const facts = (name: string) =>
    offered.catalog.get(name) === undefined ? undefined : { facts: { task: tools[name]?.[0] ?? ('forbidden' as const) } }
  const tasks = tasksServer({
    table: memoryTasks(clock),
    seal,
    tools: { get: facts, snapshot: offered.catalog.snapshot },
    limits,
  })
  const subscriptions = subscriptionsServer({
    engine: () => engine,
    clock,
    limits: serverLimits,
    subscribers: { of: () => [], isAdmitted: () => false },
    offered: { tools: () => [], resources: () => [] },
  })
  subscriptions.kind(tasks.listening)
  const replay = { seal, clock, expiresMs: 60_000, rounds: 4 }
  const engine = new Engine({
    role: 'server',
    info: { name: 'test', version: '1' },
    spoken: new SupportedRevisions(['2026-07-28']),
    limits: serverLimits,
    sides: [lifecycleServer({ cache }), offered.side, tasks.side, subscriptions.side, { layers: [unsealLayer(replay)] }],
    asking: replayAsking(replay),
    clock,
  })
  engines.push(engine)
  return { engine, tasks, peer: (principal?: Principal) => join(engine, principal) }
}

function join(engine: Engine, principal?: Principal): RawPeer {
  const [server, client] = joined(principal)
  engine.accept(server)
  return new RawPeer(client)
}

const declared = { elicitation: {}, extensions: { [tasksExtension]: {} } }

function modern(params: Params = {}, capabilities: Params = declared): Params {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  return { ...params, _meta: { ..._meta, ...(params['_meta'] as Params | undefined) } }
}

const call = (peer: RawPeer, name: string, more: Params = {}) =>
  peer.result('tools/call', modern({ name, arguments: {}, ...more }))
const get = (peer: RawPeer, taskId: unknown) => peer.result('tasks/get', modern({ taskId }))

/** Looks again, a macrotask apart, until it fits. */
async function seen<T>(look: () => T | Promise<T>, fits: (value: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 2_000; tries++) {
    const value = await look()
    if (fits(value)) return value
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  throw new Error('It never came to that')
}

const until = (peer: RawPeer, taskId: unknown, status: string): Promise<Frame> =>
  seen(
    () => get(peer, taskId),
    task => task['status'] === status,
  )

const optional: TaskFacts = { support: 'optional' }
const required: TaskFacts = { support: 'required' }
const never = () => new Promise(() => {})

async function askName(exchange: Exchange, key?: string): Promise<string> {
  const answer = await elicitForm(exchange, { message: 'Who?', schema: nameForm, ...(key === undefined ? {} : { key }) })
  return answer.action === 'accept' ? answer.content.name : answer.action
}

const named = (name: string) => ({ action: 'accept', content: { name } })

describe('tasks of the extension (rev E §2.3)', () => {
  it('answers a call of a task tool with a flat task, and tasks/get then holds its result', async () => {
    const peer = serve({ slow: [optional, () => 'done'] }).peer()
    const created = await call(peer, 'slow')
    expect(created).toMatchObject({
      resultType: 'task',
      taskId: expect.any(String),
      status: 'working',
      ttlMs: 3_600_000,
      pollIntervalMs: 1_000,
    })
    expect(Object.keys(created).sort()).toEqual([
      '_meta',
      'createdAt',
      'lastUpdatedAt',
      'pollIntervalMs',
      'resultType',
      'status',
      'taskId',
      'ttlMs',
    ])
    const task = await until(peer, created['taskId'], 'completed')
    expect(task).toMatchObject({ resultType: 'complete', result: { content: [{ type: 'text', text: 'done' }] } })
  })

  it('finds the task from the moment the answer is out, though nothing has been done yet', async () => {
    const peer = serve({ slow: [optional, never] }).peer()
    const { taskId } = await call(peer, 'slow')
    expect(await get(peer, taskId)).toMatchObject({ resultType: 'complete', taskId, status: 'working' })
  })

  it('runs an optional tool at once for a caller without the extension, and refuses a required one', async () => {
    const peer = serve({ may: [optional, () => 'now'], must: [required, () => 'later'] }).peer()
    expect(await peer.result('tools/call', modern({ name: 'may' }, {}))).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'now' }],
    })
    const { error } = await peer.request('tools/call', modern({ name: 'must' }, { tasks: {} }))
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } } })
  })

  it('ignores params.task, which belongs to the other form (trap 30)', async () => {
    const peer = serve({ plain: [undefined, () => 'hello'], slow: [optional, never] }).peer()
    expect(await call(peer, 'plain', { task: { ttl: 1 } })).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'hello' }],
    })
    expect(await call(peer, 'slow', { task: 'nonsense' })).toMatchObject({ resultType: 'task', ttlMs: 3_600_000 })
  })

  it('refuses tasks/* of a caller without the extension, and an id that nobody has', async () => {
    const peer = serve({ slow: [optional, never] }).peer()
    const params = { taskId: 'nobody', inputResponses: {} }
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      expect(await peer.code(method, modern(params, {}))).toBe(-32021)
      expect(await peer.code(method, modern(params))).toBe(-32602)
    }
    for (const method of ['tasks/result', 'tasks/list']) expect(await peer.code(method, modern(params))).toBe(-32601)
  })

  it('declares the extension only while a tool may be a task, and has no tasks/* otherwise', async () => {
    const [bare, full] = [serve({ plain: [undefined, () => ''] }).peer(), serve({ slow: [optional, never] }).peer()]
    expect((await bare.result('server/discover', modern()))['capabilities']).not.toHaveProperty('extensions')
    expect(await bare.code('tasks/get', modern({ taskId: 'x' }))).toBe(-32601)
    const { capabilities } = await full.result('server/discover', modern())
    expect(capabilities).toMatchObject({ extensions: { [tasksExtension]: {} } })
    expect(capabilities).not.toHaveProperty('tasks')
  })

  it("counts a tool's own failure as completed, a protocol failure as failed with its number", async () => {
    const tool = new Error('no disk')
    const protocol = new McpError('invalid-params', 'wrong', { data: { why: 'so' } })
    const fails = (error: Error) => () => Promise.reject(error)
    const peer = serve({ tool: [optional, fails(tool)], protocol: [optional, fails(protocol)] }).peer()
    const one = await until(peer, (await call(peer, 'tool'))['taskId'], 'completed')
    expect(one).toMatchObject({ result: { isError: true, content: [{ text: 'no disk' }] } })
    const two = await until(peer, (await call(peer, 'protocol'))['taskId'], 'failed')
    expect(two['error']).toEqual({ code: -32602, message: 'wrong', data: { why: 'so' } })
    expect(two).not.toHaveProperty('result')
  })

  it('tells of bad arguments at once, without a task', async () => {
    const { engine, peer } = serve({ slow: [optional, never] })
    expect(engine.plan).toBeDefined()
    expect(await peer().code('tools/call', modern({ name: 'slow', arguments: 1 }))).toBe(-32602)
  })

  it('cancels with an empty answer, again and again, and aborts the work', async () => {
    let signal: AbortSignal | undefined
    const peer = serve({
      slow: [
        optional,
        exchange => {
          signal = exchange.signal
          return never()
        },
      ],
    }).peer()
    const { taskId } = await call(peer, 'slow')
    await until(peer, taskId, 'working')
    await seen(
      () => signal,
      given => given !== undefined,
    )
    for (const _ of [1, 2])
      expect(Object.keys(await peer.result('tasks/cancel', modern({ taskId }))).sort()).toEqual(['_meta', 'resultType'])
    expect(await get(peer, taskId)).toMatchObject({ status: 'cancelled' })
    expect(signal?.aborted).toBe(true)
  })

  it('stays cancelled when the work ends all the same', async () => {
    let finish: ((text: string) => void) | undefined
    const peer = serve({ slow: [optional, () => new Promise<string>(resolve => (finish = resolve))] }).peer()
    const { taskId } = await call(peer, 'slow')
    await seen(
      () => finish,
      given => given !== undefined,
    )
    await peer.result('tasks/cancel', modern({ taskId }))
    finish?.('too late')
    expect(await until(peer, taskId, 'cancelled')).not.toHaveProperty('result')
  })

  it('asks through the task: open questions in tasks/get, answers by tasks/update, each key for one question only', async () => {
    const work: Work = async exchange => {
      const both = await Promise.all([askName(exchange, 'who'), askName(exchange, 'who')])
      return `${both.join(' and ')}, ${await askName(exchange)}`
    }
    const peer = serve({ ask: [optional, work] }).peer()
    const { taskId } = await call(peer, 'ask')
    const first = await until(peer, taskId, 'input_required')
    expect(first['inputRequests']).toMatchObject({
      who: { method: 'elicitation/create', params: { mode: 'form', message: 'Who?' } },
      'who-2': {},
    })
    const update = (inputResponses: Params) => peer.result('tasks/update', modern({ taskId, inputResponses }))
    expect(Object.keys(await update({ who: named('Ann'), unknown: 1 })).sort()).toEqual(['_meta', 'resultType'])
    const second = await get(peer, taskId)
    expect(Object.keys(second['inputRequests'] as object)).toEqual(['who-2'])
    await update({ who: named('Eve'), 'who-2': named('Bob') })
    const third = await until(peer, taskId, 'input_required')
    expect(Object.keys(third['inputRequests'] as object)).toEqual(['elicit-1'])
    await update({ 'elicit-1': { action: 'decline' } })
    expect(await until(peer, taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'Ann and Bob, decline' }] } })
  })

  it('refuses an answer that does not fit its question and keeps the question open', async () => {
    const peer = serve({ ask: [optional, exchange => askName(exchange, 'who')] }).peer()
    const { taskId } = await call(peer, 'ask')
    await until(peer, taskId, 'input_required')
    expect(await peer.code('tasks/update', modern({ taskId, inputResponses: { who: named(7 as never) } }))).toBe(-32602)
    expect(await get(peer, taskId)).toMatchObject({ status: 'input_required', inputRequests: { who: {} } })
  })

  it('fails the task that asks what the call did not declare', async () => {
    const peer = serve({ ask: [optional, exchange => askName(exchange)] }).peer()
    const { taskId } = await peer.result('tools/call', modern({ name: 'ask' }, { extensions: declared.extensions }))
    expect((await until(peer, taskId, 'failed'))['error']).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: {} } },
    })
  })

  it('lets a deferred tool ask within the call first; its task then knows the answer (finish MRTR before creating a task)', async () => {
    let entered = 0
    const work: Work = async exchange => {
      const id = await exchange.once('id', () => ++entered)
      const name = await askName(exchange, 'user_name')
      expect(await continueAsTask(exchange)).toBe(true)
      return `${name} ${await exchange.once('id', () => 99)} ${id}, ${await askName(exchange, 'user_name')}`
    }
    const peer = serve({ mixed: [{ support: 'required', deferred: true }, work] }).peer()
    const first = await call(peer, 'mixed')
    expect(first).toMatchObject({ resultType: 'input_required', inputRequests: { user_name: {} } })
    expect(first).not.toHaveProperty('taskId')
    const created = await call(peer, 'mixed', {
      requestState: first['requestState'],
      inputResponses: { user_name: named('Alice') },
    })
    expect(created).toMatchObject({ resultType: 'task', status: 'working' })
    expect(created).not.toHaveProperty('requestState')
    const { taskId } = created
    expect(await until(peer, taskId, 'input_required')).not.toHaveProperty('requestState')
    await peer.result('tasks/update', modern({ taskId, inputResponses: { user_name: named('Bob') } }))
    expect(await until(peer, taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'Alice 1 1, Bob' }] } })
  })

  it('begins no task for a caller that has cancelled before the word', async () => {
    const gave = Promise.withResolvers<unknown>()
    const work: Work = async exchange => {
      exchange.cancel('enough')
      gave.resolve(await continueAsTask(exchange).catch((error: Error) => error.name))
    }
    const peer = serve({ mixed: [{ support: 'optional', deferred: true }, work] }).peer()
    peer.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: modern({ name: 'mixed' }) })
    expect(await gave.promise).toBe('AbortError')
  })

  it('answers a deferred tool that never gives the word like any call', async () => {
    const peer = serve({ quick: [{ support: 'optional', deferred: true }, () => 'at once'] }).peer()
    expect(await call(peer, 'quick')).toMatchObject({ resultType: 'complete', content: [{ text: 'at once' }] })
  })

  it('keeps a call a call where it may not become a task', async () => {
    const work: Work = async exchange => `${await continueAsTask(exchange)} ${currentTask(exchange)?.id}`
    const peer = serve({ mixed: [{ support: 'optional', deferred: true }, work] }).peer()
    expect(await peer.result('tools/call', modern({ name: 'mixed' }, {}))).toMatchObject({
      content: [{ text: 'false undefined' }],
    })
  })

  it('leaves a deferred call to its handler when there is no room for a task', async () => {
    const work: Work = async exchange => continueAsTask(exchange).then(String, (error: Error) => error.message)
    const tools: Parameters<typeof serve>[0] = { slow: [optional, never], mixed: [{ support: 'optional', deferred: true }, work] }
    const { peer } = serve(tools, realClock, { runningTasksPerCaller: 200 })
    const full = peer({ id: 'ann' })
    for (let at = 0; at < 100; at++) await call(full, 'slow')
    expect(await full.code('tools/call', modern({ name: 'slow' }))).toBe(-32603)
    expect((await call(full, 'mixed'))['content']).toMatchObject([
      { text: expect.stringContaining('100 of your tasks are kept') },
    ])
  })

  it('is silent about progress: neither before nor after the answer', async () => {
    const work: Work = exchange => {
      const params = { progressToken: 't', progress: 1 }
      return `${exchange.notify(progress, params)}`
    }
    const peer = serve({ slow: [optional, work] }).peer()
    const { taskId } = await call(peer, 'slow', { _meta: { progressToken: 't' } })
    expect(await until(peer, taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'false' }] } })
    expect(peer.said).toEqual([])
  })

  it('lets the handler describe where it stands', async () => {
    const work: Work = exchange => {
      currentTask(exchange)?.describe('half way')
      return never()
    }
    const peer = serve({ slow: [optional, work] }).peer()
    const { taskId } = await call(peer, 'slow')
    const task = await seen(
      () => get(peer, taskId),
      ({ statusMessage }) => statusMessage !== undefined,
    )
    expect(task).toMatchObject({ status: 'working', statusMessage: 'half way' })
  })

  it('gives another principal the same answer as for an id that never was, on every method', async () => {
    const { peer } = serve({ slow: [optional, never] })
    const [ann, eve, nobody] = [peer({ id: 'ann' }), peer({ id: 'eve' }), peer()]
    const { taskId } = await call(ann, 'slow')
    expect(await get(ann, taskId)).toMatchObject({ status: 'working' })
    for (const other of [eve, nobody]) {
      for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
        const { error } = await other.request(method, modern({ taskId, inputResponses: {} }))
        expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(/^There is no task/) })
      }
    }
    expect(await get(ann, taskId)).toMatchObject({ status: 'working' })
  })

  it('survives the connection that made it', async () => {
    let finish: ((text: string) => void) | undefined
    const { engine, peer } = serve({ slow: [optional, () => new Promise<string>(resolve => (finish = resolve))] })
    const [server, client] = joined()
    engine.accept(server)
    const { taskId } = await call(new RawPeer(client), 'slow')
    await seen(
      () => finish,
      given => given !== undefined,
    )
    await client.close()
    finish?.('still here')
    expect(await until(peer(), taskId, 'completed')).toMatchObject({ result: { content: [{ text: 'still here' }] } })
  })

  it('forgets a task when its time is over and aborts what it still does', async () => {
    const clock = new ManualClock()
    let signal: AbortSignal | undefined
    const work: Work = exchange => {
      signal = exchange.signal
      return never()
    }
    const peer = serve({ slow: [{ support: 'optional', ttl: '5s', pollInterval: 20 }, work] }, clock).peer()
    const { taskId, ttlMs, pollIntervalMs } = await call(peer, 'slow')
    expect([ttlMs, pollIntervalMs]).toEqual([5_000, 20])
    await seen(
      () => signal,
      given => given !== undefined,
    )
    clock.advance(4_999)
    expect(await get(peer, taskId)).toMatchObject({ status: 'working' })
    clock.advance(1)
    expect(await peer.code('tasks/get', modern({ taskId }))).toBe(-32602)
    clock.advance(250)
    await seen(
      () => signal,
      given => given?.aborted === true,
    )
  })

  it('fails a task whose result is too large or no JSON', async () => {
    const odd = () => reply({ content: [], structured: { n: 1n } })
    const peer = serve({ big: [optional, () => 'x'.repeat(2_000)], odd: [optional, odd] }, realClock, {
      resultBytes: 1_000,
    }).peer()
    const failure = async (tool: string) => (await until(peer, (await call(peer, tool))['taskId'], 'failed'))['error']
    expect(await failure('big')).toMatchObject({ code: -32603, message: expect.stringContaining('the limit for tasks is 1000') })
    expect(await failure('odd')).toMatchObject({ code: -32603, message: 'The result cannot be serialised as JSON' })
  })
})

describe('listening for tasks (rev E §2.2)', () => {
  const told = (peer: RawPeer, member: string) =>
    peer.said.filter(({ method }) => method === 'notifications/tasks').map(({ params }) => (params as Params)[member])
  const acknowledged = async (peer: RawPeer) =>
    (await peer.heard('notifications/subscriptions/acknowledged'))['notifications'] as Params

  it('refuses taskIds of a caller without the extension, and what are no ids', async () => {
    const peer = serve({ slow: [optional, never] }).peer()
    const { error } = await peer.request('subscriptions/listen', modern({ notifications: { taskIds: ['x'] } }, {}))
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } } })
    expect(await peer.code('subscriptions/listen', modern({ notifications: { taskIds: [1] } }))).toBe(-32602)
  })

  it('tells all that tasks/get would say, at once what was missed, each under its subscription', async () => {
    const peer = serve({ ask: [optional, exchange => askName(exchange, 'who')] }).peer()
    const { taskId } = await call(peer, 'ask')
    await until(peer, taskId, 'input_required')
    peer.send({
      jsonrpc: '2.0',
      id: 'sub',
      method: 'subscriptions/listen',
      params: modern({ notifications: { taskIds: [taskId, 'nobody'] } }),
    })
    expect(await acknowledged(peer)).toEqual({ taskIds: [taskId] })
    await peer.heard('notifications/tasks')
    await peer.result('tasks/update', modern({ taskId, inputResponses: { who: named('Ann') } }))
    const last = await peer.heard('notifications/tasks', ({ status }) => status === 'completed')
    const { resultType, _meta, ...task } = await get(peer, taskId)
    expect(last).toEqual({ ...task, _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' } })
    expect(told(peer, 'status')).toEqual(['input_required', 'working', 'completed'])
  })

  it("honours nothing of another's tasks", async () => {
    const { peer } = serve({ slow: [optional, never] })
    const { taskId } = await call(peer({ id: 'ann' }), 'slow')
    const eve = peer({ id: 'eve' })
    eve.send({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: modern({ notifications: { taskIds: [taskId] } }) })
    expect(await acknowledged(eve)).toEqual({})
  })
})

describe('task headers (rev E §2.5)', () => {
  it('wants Mcp-Name to be the task id over HTTP', async () => {
    const { engine } = serve({ slow: [optional, never] })
    const post = (name: string): Promise<string> =>
      new Promise(resolve => {
        const lane: Lane = { send: resolve, end: () => {}, closed: false, onClose: () => {} }
        const headers = new Map([
          ['mcp-protocol-version', '2026-07-28'],
          ['mcp-method', 'tasks/get'],
          ['mcp-name', name],
        ])
        const body = { jsonrpc: '2.0', id: 1, method: 'tasks/get', params: modern({ taskId: 'abc' }) }
        engine.deliver(JSON.stringify(body), { carrier: 'http', connection: {}, header: key => headers.get(key) }, lane)
      })
    expect(JSON.parse(await post('other'))).toMatchObject({ error: { code: -32020 } })
    expect(JSON.parse(await post('abc'))).toMatchObject({ error: { code: -32602 } })
  })
})
