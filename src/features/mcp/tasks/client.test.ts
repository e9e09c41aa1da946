import { afterEach, describe, expect, it } from 'vitest'
import { joined, ManualClock } from '../../../../test/tasks/raw-peer.ts'
import { type Clock, realClock } from '../../../core/clock.ts'
import { createSeal } from '../../../core/handle.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { clientLimits, serverLimits } from '../../../engine/limits.ts'
import { createPaging } from '../../../engine/paging.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { type RevisionId, revisionById, SupportedRevisions } from '../../../revisions/index.ts'
import { cancellation, sendCancel } from '../cancellation/receiver.ts'
import { elicit } from '../elicitation/messages.ts'
import { elicitForm } from '../elicitation/server.ts'
import type { InputRequest } from '../input-required/messages.ts'
import { initialize } from '../lifecycle/messages.ts'
import { lifecycleServer } from '../lifecycle/server.ts'
import { callTool } from '../tools/messages.ts'
import { toolsServer } from '../tools/server.ts'
import { listTasks, type Task, takingTasks, taskChanged, taskStatus } from './messages.ts'
import { createdTask, finishTask, isTask, readTask, stopTask, takesTask, taskRequesterFor } from './requestor.ts'
import { tasksServer } from './server.ts'
import { memoryTasks } from './table.ts'

type Work = (exchange: Exchange) => unknown

const wires: readonly RevisionId[] = ['2025-11-25', '2026-07-28', 'draft-2026-v1']
const nameForm = jsonSchema<{ name: string }>({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] })
const engines: Engine[] = []

afterEach(() => Promise.all(engines.splice(0).map(engine => engine.close())))

function serve(work: Work, clock: Clock): Engine {
  const seal = createSeal({ clock })
  const cache = { ttlMs: 0, cacheScope: 'private' as const }
  const paging = createPaging({ seal, pageSize: 10, cache, cursorMs: 1000, now: clock.now })
  const tools = toolsServer<Exchange>({ paging, context: exchange => exchange, failed: () => {} })
  tools.catalog.add(tools.compile('work', { task: 'required' }, (_, exchange) => work(exchange)))
  const tasks = tasksServer({ table: memoryTasks(clock), seal, tools: tools.catalog, limits: { pollMs: 1 } })
  const sides = [lifecycleServer({ cache }), tools.side, tasks.side, cancellation()]
  return new Engine({
    role: 'server',
    info: { name: 's', version: '1' },
    spoken: new SupportedRevisions(wires),
    limits: serverLimits,
    sides,
    clock,
    sendCancel,
  })
}

/** Hears of tasks where the server tells. */
function tasksSide(onTask: (task: Task) => void): Side {
  const told = (exchange: Exchange): void => {
    const { _meta, ...task } = exchange.params
    if (isTask(task)) onTask(task)
  }
  return {
    handlers: [
      [taskStatus, told],
      [taskChanged, told],
    ],
  }
}

/** A client at one wire, joined to a server whose one tool does `work`. */
async function join(id: RevisionId, work: Work, clock: Clock = realClock): Promise<Peer> {
  const told: Task[] = []
  const answers: Side = { handlers: [[elicit, () => answered]], capabilities: () => ({ elicitation: {} }) }
  const sides = [answers, tasksSide(task => told.push(task)), cancellation()]
  const info = { name: 'c', version: '1' }
  const engine = new Engine({
    role: 'client',
    info,
    spoken: new SupportedRevisions(wires),
    limits: clientLimits,
    sides,
    clock,
    sendCancel,
  })
  const server = serve(work, clock)
  engines.push(engine, server)
  const [theirs, ours] = joined({ id: 'ann' })
  server.accept(theirs)
  const conversation = engine.accept(ours)
  const revision = revisionById(id)
  conversation.peer = { revision, capabilities: {}, info: undefined, logLevel: undefined }
  if (revision.era === 'session') {
    const hello = { protocolVersion: id, capabilities: engine.capabilities(revision), clientInfo: info }
    const { capabilities } = await engine.call(conversation, initialize, hello)
    conversation.peer = { ...conversation.peer, capabilities }
  }
  return { engine, conversation, told, wire: id }
}

interface Peer {
  readonly engine: Engine
  readonly conversation: Conversation
  readonly told: readonly Task[]
  readonly wire: RevisionId
}

async function begin({ engine, conversation, wire }: Peer): Promise<Task> {
  const params = { name: 'work', ...(wire === '2026-07-28' ? {} : { task: { ttl: 60_000 } }) }
  const task = createdTask(await engine.call(conversation, callTool, params, { declares: takingTasks }))
  if (task === undefined) throw new Error('The call did not become a task')
  return task
}

const finish = async (peer: Peer, options: Parameters<typeof finishTask>[2] = {}) =>
  finishTask(taskRequesterFor(peer.engine, peer.conversation), await begin(peer), {
    answer: () => answered,
    leastPollMs: 1,
    ...options,
  })
const answered = { action: 'accept' as const, content: { name: 'Ann' } }
const never = () => new Promise(() => {})
const ask: Work = async exchange => {
  const [one, two] = await Promise.all([
    elicitForm(exchange, { message: 'Who?', schema: nameForm }),
    elicitForm(exchange, { message: 'Really?' }),
  ])
  return `${JSON.stringify(one)} ${two.action}`
}

describe.each(wires)('a client that waits for a task at %s', wire => {
  it('gets the result of the call', async () => {
    const result = await finish(await join(wire, () => 'done'))
    expect(result.content).toEqual([{ type: 'text', text: 'done' }])
    expect(result).not.toHaveProperty('resultType')
  })

  it('answers what the task asks, once per question', async () => {
    const asked: [string, InputRequest][] = []
    const answer = (request: InputRequest, key: string) => {
      asked.push([key, request])
      return answered
    }
    const result = await finish(await join(wire, ask), { answer })
    expect(result.content).toEqual([{ type: 'text', text: `${JSON.stringify(answered)} accept` }])
    const keys = asked.map(([key, { method }]) => `${key} ${method}`)
    expect(keys).toEqual(wire === '2025-11-25' ? [] : ['elicit-1 elicitation/create', 'elicit-2 elicitation/create'])
  })

  it('is told of a failure with its number', async () => {
    const fails = () => Promise.reject(new McpError('invalid-params', 'wrong', { data: { why: 1 } }))
    await expect(finish(await join(wire, fails))).rejects.toMatchObject({
      kind: 'remote',
      code: -32602,
      message: 'wrong',
      data: { why: 1 },
    })
  })

  it("gets a tool's own failure as a result", async () => {
    expect(await finish(await join(wire, () => Promise.reject(new Error('no disk'))))).toMatchObject({ isError: true })
  })

  it('cancels the task when it is aborted', async () => {
    const stopped = Promise.withResolvers<unknown>()
    const work: Work = exchange => {
      exchange.signal.addEventListener('abort', () => stopped.resolve(true))
      abort.abort(new Error('enough'))
      return never()
    }
    const abort = new AbortController()
    await expect(finish(await join(wire, work), { signal: abort.signal })).rejects.toThrow('enough')
    expect(await stopped.promise).toBe(true)
  })

  it('cancels the task and says so when it takes too long', async () => {
    const clock = new ManualClock()
    const stopped = Promise.withResolvers<unknown>()
    const work: Work = exchange => {
      exchange.signal.addEventListener('abort', () => stopped.resolve(true))
      queueMicrotask(() => clock.advance(1_000))
      return never()
    }
    await expect(finish(await join(wire, work, clock), { totalMs: 500, leastPollMs: 100 })).rejects.toMatchObject({
      kind: 'timeout',
    })
    expect(await stopped.promise).toBe(true)
  })
})

describe('a client that waits for a task', () => {
  it('gives up and cancels when nobody answers its questions (rev E §2.3)', async () => {
    const peer = await join('2026-07-28', ask)
    const failing = () => Promise.reject(new Error('no user here'))
    await expect(finish(peer, { answer: undefined })).rejects.toMatchObject({ kind: 'capability-missing' })
    await expect(finish(peer, { answer: failing })).rejects.toThrow('no user here')
  })

  it.each(wires)('hears that somebody else cancelled it at %s', async wire => {
    const peer = await join(wire, never)
    const task = await begin(peer)
    const waiting = finishTask(taskRequesterFor(peer.engine, peer.conversation), task, { leastPollMs: 1 })
    await stopTask(taskRequesterFor(peer.engine, peer.conversation), task.taskId)
    await expect(waiting).rejects.toThrow('The task was cancelled')
  })

  it('waits as long as the server wishes between two looks, within its own bounds', async () => {
    const waits: number[] = []
    const clock: Clock = {
      now: realClock.now,
      setTimeout: (fn, ms, background) => {
        if (background !== true && ms > 0) waits.push(ms)
        return realClock.setTimeout(fn, background === true ? ms : 0, background)
      },
    }
    const peer = await join('2026-07-28', () => 'done', clock)
    const task = await begin(peer)
    await finishTask(taskRequesterFor(peer.engine, peer.conversation), { ...task, pollIntervalMs: 700 }, { mostPollMs: 500 })
    await finishTask(taskRequesterFor(peer.engine, peer.conversation), { ...task, pollIntervalMs: 70 }, { mostPollMs: 500 })
    await finishTask(taskRequesterFor(peer.engine, peer.conversation), { ...task, pollIntervalMs: 7 })
    expect(waits.filter(ms => ms !== 1)).toEqual([500, 70, 50])
  })

  it('shows each status on the way', async () => {
    const seen: string[] = []
    await finish(await join('2026-07-28', ask), { onStatus: ({ status }) => seen.push(status) })
    expect(seen).toContain('input_required')
    expect(seen.at(-1)).toBe('completed')
  })

  it('knows whether the server takes tasks, hears of them, and lists its own (rev D §1.6)', async () => {
    const peer = await join('2025-11-25', () => 'done')
    expect(takesTask(peer.conversation.peer, callTool.name)).toBe(true)
    expect(takesTask((await join('2026-07-28', never)).conversation.peer, callTool.name)).toBe(false)
    const { taskId } = await begin(peer)
    await finishTask(
      taskRequesterFor(peer.engine, peer.conversation),
      await readTask(taskRequesterFor(peer.engine, peer.conversation), taskId),
      {
        leastPollMs: 1,
      },
    )
    expect(peer.told).toMatchObject([{ taskId, status: 'completed', ttlMs: 60_000, pollIntervalMs: 1 }])
    const { tasks } = await taskRequesterFor(peer.engine, peer.conversation).request(listTasks, {})
    expect(tasks).toMatchObject([{ taskId, ttlMs: 60_000 }])
  })
})

describe('the answer that names a task', () => {
  it('is read in either form, and an ordinary result is none', () => {
    const task = { taskId: 'a', status: 'working', createdAt: '', lastUpdatedAt: '' }
    const flat: Params = { resultType: 'task', ...task, ttlMs: 5, _meta: {} }
    expect(createdTask(flat)).toEqual({ ...task, ttlMs: 5 })
    expect(createdTask({ task: { ...task, ttl: null, pollInterval: 9 } })).toEqual({ ...task, ttlMs: null, pollIntervalMs: 9 })
    expect(createdTask({ content: [], task: {} })).toBeUndefined()
    expect(createdTask({ resultType: 'complete', content: [] })).toBeUndefined()
    expect(() => createdTask({ resultType: 'task' })).toThrow('malformed')
  })
})
