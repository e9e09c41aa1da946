/** The machinery of tasks: one table, one runner, and what the methods of both forms do with them. Loaded with the first task. */
import { realClock } from '../../../core/clock.ts'
import { HandleError, type Seal } from '../../../core/handle.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { runTask } from './layer.ts'
import { TaskListeners, type TaskListenKind, taskListening } from './listen.ts'
import { isTerminal, type ListTasksResult, listTasks, relatedTaskKey, type TaskFacts, taskStatus } from './messages.ts'
import { cancelCore, find, look, result, visible } from './receiver.ts'
import type { TaskRecord } from './record.ts'
import { Runner, taskLimits } from './runner.ts'
import { hears, type RunningTask } from './running.ts'
import type { TasksOptions } from './server.ts'
import { memoryTasks, storeTasks, type TaskTable } from './table.ts'
import { detailedTask, related } from './view.ts'

export interface TasksRuntime {
  /** Runs a call whose tool has something to say of tasks, or whose caller asked for one. */
  run(exchange: Exchange, next: Next, facts: TaskFacts | undefined): Awaitable<unknown>
  get(exchange: Exchange): Promise<unknown>
  update(exchange: Exchange): Promise<unknown>
  cancel(exchange: Exchange): Promise<unknown>
  cancelCore(exchange: Exchange): Promise<unknown>
  result(exchange: Exchange): Promise<unknown>
  list(exchange: Exchange): Promise<unknown>
  respond(exchange: Exchange): Promise<unknown>
  readonly listening: TaskListenKind
  close(): void
}

export function createTasksRuntime(options: TasksOptions): TasksRuntime {
  const table = tableOf(options)
  const listeners = new TaskListeners()
  const runner = new Runner({
    table,
    newId: options.newId ?? (() => crypto.randomUUID()),
    limits: { ...taskLimits, ...options.limits },
    changed: (record, statusChanged, task) => {
      listeners.tell(record)
      if (statusChanged) tellStatus(record, task)
    },
  })
  table.onAbandoned(record => listeners.tell(record))
  return {
    run: (exchange, next, facts) => runTask(exchange, next, facts, runner),
    get: exchange => look(runner, exchange),
    update: exchange => update(runner, exchange, exchange.params['taskId']),
    cancel: exchange => cancel(runner, exchange),
    cancelCore: exchange => cancelCore(runner, exchange),
    result: exchange => result(runner, exchange),
    list: exchange => list(table, options, exchange),
    respond: exchange => respond(runner, exchange),
    listening: taskListening(listeners, (exchange, id) => visible(runner, exchange, id)),
    close: () => runner.close(),
  }
}

function tableOf({ table, store, runners, clock = realClock }: TasksOptions): TaskTable {
  return table ?? (store === undefined ? memoryTasks(clock) : storeTasks({ open: store, clock, runners }))
}

async function update(runner: Runner, exchange: Exchange, id: unknown): Promise<Record<string, never>> {
  const record = await find(runner, exchange, id as string)
  const task = runner.running(record.id)
  const answers = exchange.params['inputResponses'] as Params
  task?.answer(answers)
  await task?.saved
  if (task === undefined && !isTerminal(record.status)) await leave(runner, record, answers)
  return {}
}

/** Leaves the answers to open questions for the process that asks them. What answers nothing would only lie on the store. */
async function leave({ table }: Runner, { id, questions }: TaskRecord, answers: Params): Promise<void> {
  const wanted = Object.entries(answers).filter(([key]) => Object.hasOwn(questions, key))
  if (table.durable && wanted.length > 0) await table.post(id, Object.fromEntries(wanted))
}

/** An acknowledgement: cancelling what has ended is no mistake. */
async function cancel(runner: Runner, exchange: Exchange): Promise<Record<string, never>> {
  const record = await find(runner, exchange)
  await runner.cancel(exchange.engine, record.id)
  return {}
}

/** The draft names the task in `_meta`; `params.taskId` is taken too. */
async function respond(runner: Runner, exchange: Exchange): Promise<Record<string, unknown>> {
  const named = exchange.meta?.[relatedTaskKey]
  const said = isRecord(named) ? named['taskId'] : undefined
  const { taskId = said } = exchange.params
  const id = said ?? taskId
  if (id !== taskId)
    throw new McpError('invalid-params', `params.taskId and params._meta["${relatedTaskKey}"] name different tasks; name one`)
  if (typeof id !== 'string') throw new McpError('invalid-params', `params._meta["${relatedTaskKey}"].taskId must be a string`)
  await update(runner, exchange, id)
  return { _meta: related(id) }
}

const cursorMs = 3_600_000

/** Only for callers who are someone: ids are all that protects the tasks of the others. */
async function list(table: TaskTable, { seal, pageSize = 100 }: TasksOptions, exchange: Exchange): Promise<ListTasksResult> {
  const owner = exchange.caller.principal?.id
  if (owner === undefined)
    throw new McpError('method-not-found', 'tasks/list is for identified callers; remember the ids of your tasks')
  const purpose = { kind: 'cursor', audience: listTasks.name, principal: owner }
  const cursor = exchange.params['cursor']
  const after = cursor === undefined ? undefined : ((await opened(seal, cursor, purpose)) as string)
  const { records, next } = await table.list(owner, exchange.peer.revision.id, { after, limit: pageSize })
  const tasks = records.map(record => detailedTask(record, exchange.engine))
  if (next === undefined) return { tasks }
  return { tasks, nextCursor: await seal.seal({ ...purpose, expiresAt: exchange.engine.clock.now() + cursorMs, data: next }) }
}

async function opened(
  seal: Seal,
  cursor: unknown,
  purpose: { kind: string; audience: string; principal: string },
): Promise<unknown> {
  try {
    return await seal.open(cursor, purpose)
  } catch (error) {
    if (!(error instanceof HandleError)) throw error
    throw new McpError('invalid-params', 'params.cursor is not one that this server gave; start again without a cursor')
  }
}

/** Core form: whoever made the task hears of its status, where there is a stream for what is said unasked. */
function tellStatus(record: TaskRecord, task: RunningTask): void {
  const { engine, conversation } = task.exchange
  if (hears(task)) engine.notify(conversation, taskStatus, detailedTask(record, engine))
}
