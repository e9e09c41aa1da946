/** What whoever runs tasks answers in the core form, be it server or client. */

import { noStreamToClient } from '../../../engine/asking.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { ConnectionError, type Lane } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { revisionById, stepsDown, type Wire } from '../../../revisions/index.ts'
import type { InputRequiredResult } from '../input-required/messages.ts'
import { type CallToolResult, callTool } from '../tools/messages.ts'
import { coreTaskRevisions, type DetailedTask, isTerminal, relatedTaskKey, type Task, toCore } from './messages.ts'
import type { TaskRecord } from './record.ts'
import type { Runner } from './runner.ts'
import type { RunningTask, TaskQuestion } from './running.ts'

/** Another's task, or one of another wire, is as unknown as one that never was. */
export async function findVisibleTask(runner: Runner, exchange: Exchange, id: string): Promise<TaskRecord | undefined> {
  const record = await runner.table.get(id)
  return record?.owner === runner.owner(exchange) && record?.revision === exchange.peer.revision.id ? record : undefined
}

/** The caller's task of this id; throws where there is none. */
export async function requireTask(
  runner: Runner,
  exchange: Exchange,
  id = exchange.params['taskId'] as string,
): Promise<TaskRecord> {
  const record = await findVisibleTask(runner, exchange, id)
  if (record === undefined) throw new McpError('unknown-task', `There is no task "${clip(id)}", or it has expired`)
  return record
}

/** Answers `tasks/get`. */
export async function answerTaskGet(runner: Runner, exchange: Exchange): Promise<object> {
  return detailedTask(await requireTask(runner, exchange), exchange.engine)
}

/** Answers `tasks/cancel` of the core form. */
export async function cancelCore(runner: Runner, exchange: Exchange): Promise<object> {
  const { id } = await requireTask(runner, exchange)
  const after = await runner.cancel(exchange.engine, id)
  if (after === undefined)
    throw new McpError('task-over', `The task "${clip(id)}" has already ended; only running tasks can be cancelled`)
  return taskOf(after)
}

/** Answers `tasks/result`. */
export async function answerTaskResult(runner: Runner, exchange: Exchange): Promise<unknown> {
  const record = await requireTask(runner, exchange)
  return answerResult(exchange, record, runner.running(record.id), () => requireTask(runner, exchange), runner.table.durable)
}

/** How long a caller wants its task kept, in milliseconds; undefined: as long as we like. */
export function wishedTtl({ params }: Exchange): number | undefined {
  const wish = params['task']
  const ttl = isRecord(wish) ? wish['ttl'] : undefined
  if (isRecord(wish) && (ttl === undefined || (typeof ttl === 'number' && Number.isSafeInteger(ttl) && ttl >= 0))) return ttl
  throw new McpError('invalid-params', 'params.task must be an object; its ttl, if any, a whole number of milliseconds')
}

// `tasks/result` of the core form: blocks until the task has ended. While it waits, questions go out on its stream as requests
// that name the task; the draft answers with the questions instead.

/** `read` gives the record anew, or throws when it is gone. */
async function answerResult(
  exchange: Exchange,
  record: TaskRecord,
  task: RunningTask | undefined,
  read: () => Promise<TaskRecord>,
  durable: boolean,
): Promise<CallToolResult | InputRequiredResult> {
  if (isTerminal(record.status)) return finalResult(record)
  if (task === undefined && durable) return elsewhere(exchange, record, read)
  if (task === undefined) throw new McpError('internal', 'The task was aborted because the process that ran it ended')
  await attend(exchange, task, record.createdAt + record.ttlMs)
  const asks = [...task.questions].map(([key, { request }]) => [key, request] as const)
  if (!task.over && asks.length > 0) {
    const questions: InputRequiredResult = { resultType: 'input_required', inputRequests: Object.fromEntries(asks) }
    return { ...questions, _meta: related(task.id) } as InputRequiredResult
  }
  return finalResult(await read())
}

const lookEveryMs = 500

/** Another process works on it: its end is looked for until its time is over. */
async function elsewhere(
  { engine, reply, peer, signal }: Exchange,
  first: TaskRecord,
  read: () => Promise<TaskRecord>,
): Promise<CallToolResult | InputRequiredResult> {
  for (let record = first; ; record = await read()) {
    if (isTerminal(record.status)) return finalResult(record)
    if (peer.revision.asks !== 'push' && Object.keys(record.questions).length > 0) {
      const questions: InputRequiredResult = { resultType: 'input_required', inputRequests: record.questions }
      return { ...questions, _meta: related(record.id) } as InputRequiredResult
    }
    await new Promise<void>(resolve => engine.clock.setTimeout(resolve, lookEveryMs))
    if (signal.aborted || reply.closed) throw new McpError('caller-gone', 'The caller has disconnected')
  }
}

/** Settles when the task is over, or has questions that the answer itself must carry; rejects when the caller has gone. */
function attend(exchange: Exchange, task: RunningTask, until: number): Promise<void> {
  const { conversation, reply, signal, peer } = exchange
  const pushes = peer.revision.asks === 'push'
  const leave = new AbortController()
  return new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (task.over || (!pushes && task.questions.size > 0)) settle(resolve)
      else if (pushes) {
        try {
          put(exchange, task, until, leave.signal)
        } catch (error) {
          settle(() => reject(error))
        }
      }
    }
    const gone = (): void => settle(() => reject(new McpError('caller-gone', 'The caller has disconnected')))
    const settle = (act: () => void): void => {
      unwatch()
      signal.removeEventListener('abort', gone)
      act()
      leave.abort(new DOMException('The stream with the question has ended', 'AbortError'))
    }
    const unwatch = task.watch(look)
    signal.addEventListener('abort', gone, { once: true })
    // A duplex connection that ends cancels what runs for it; streams of their own just close.
    if (conversation.connection === undefined) reply.onClose(gone)
    look()
  })
}

/** Asks what nobody has been asked yet; throws where this caller can not be asked. A question whose stream ends is asked again on the next one. */
function put(exchange: Exchange, task: RunningTask, until: number, signal: AbortSignal): void {
  for (const question of task.questions.values()) {
    if (question.asked) continue
    const lane =
      exchange.conversation.connection === undefined ? (exchange.aside ?? noStreamToClient(question.method.name)) : undefined
    question.asked = true
    send(exchange, task.id, question, until, signal, lane).then(
      answer => {
        if (question.accepts(answer)) question.resolve(answer)
        else question.reject(new McpError('invalid-answer', `The client's answer to ${question.method.name} is malformed`))
      },
      error => {
        if (!signal.aborted && !(error instanceof ConnectionError)) return question.reject(error)
        question.asked = false
        // Another stream of the same task may take it over; one that can not send would only try for ever.
        if (signal.aborted) task.wake()
      },
    )
  }
}

function send(
  exchange: Exchange,
  taskId: string,
  question: TaskQuestion,
  until: number,
  signal: AbortSignal,
  lane: Lane | undefined,
): Promise<unknown> {
  const { engine, conversation } = exchange
  const timeoutMs = Math.max(1, until - engine.clock.now())
  if (lane !== undefined) engine.streaming(exchange)
  const along = lane === undefined ? {} : { lane }
  const options = { ...along, signal, timeoutMs, totalMs: timeoutMs, meta: related(taskId) }
  if (question.by !== undefined) return question.by(exchange, question.method, question.params, options)
  return engine.call(conversation, question.method, question.params, options)
}

// A record as its wire shows it.

/** The task that a record describes, without its questions, result or failure. */
function taskOf(record: TaskRecord): Task {
  return {
    taskId: record.id,
    status: record.status,
    ...(record.message === undefined ? {} : { statusMessage: record.message }),
    createdAt: new Date(record.createdAt).toISOString(),
    lastUpdatedAt: new Date(record.updatedAt).toISOString(),
    ttlMs: record.ttlMs,
    pollIntervalMs: record.pollMs,
  }
}

/** With what the status brings. The result has gone through the steps of the call it answers. */
export function detailedTask(record: TaskRecord, engine: Engine): DetailedTask {
  const { status, questions, result } = record
  const revision = revisionById(record.revision)
  if (status === 'input_required') return { ...taskOf(record), inputRequests: questions }
  if (status === 'completed' && result !== undefined) {
    const down = stepsDown(callTool.resultDown, revision)
    const wire = down === undefined ? result : (down(result as unknown as Wire) as unknown as CallToolResult)
    const complete = { resultType: 'complete', ...wire }
    return { ...taskOf(record), result: complete }
  }
  if (status !== 'failed') return taskOf(record)
  const error = failureOf(record)
  const body = {
    code: engine.outcome.number(error, revision),
    message: error.message,
    ...(error.data === undefined ? {} : { data: error.data }),
  }
  return { ...taskOf(record), error: body }
}

/** The answer to a call that became a task, as its wire writes it. */
export function created(record: TaskRecord): Wire {
  const task = taskOf(record)
  return coreTaskRevisions.includes(record.revision) ? { task: toCore(task as unknown as Wire) } : { resultType: 'task', ...task }
}

/** What the call itself would have answered, named as the task's; a failure is thrown. */
function finalResult(record: TaskRecord): CallToolResult {
  const { result } = record
  if (result === undefined) throw failureOf(record)
  return { ...result, _meta: { ...result._meta, ...related(record.id) } }
}

/** The `_meta` that names the task a message belongs to. */
export function related(taskId: string): Readonly<Record<string, unknown>> {
  return { [relatedTaskKey]: { taskId } }
}

function failureOf({ status, error }: TaskRecord): McpError {
  if (status === 'cancelled') return new McpError('task-cancelled', 'The task was cancelled')
  if (error === undefined) return new McpError('internal', 'The task failed')
  const { kind, message, data, code } = error
  return new McpError(kind, message, { ...(data === undefined ? {} : { data }), ...(code === undefined ? {} : { code }) })
}
