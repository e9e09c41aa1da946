/** Offering tasks, in both forms: one table, one runner, two sets of methods that share no wire. */
import type { Catalog } from '../../../core/catalog.ts'
import { HandleError, type Seal } from '../../../core/handle.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import type { Handler } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { TaskSupport } from '../tools/messages.ts'
import { taskLayer } from './layer.ts'
import { type ListenKind, requireExtension, TaskListeners, taskListening } from './listen.ts'
import {
  cancelCoreTask,
  cancelTask,
  coreIds,
  extensionIds,
  getCoreTask,
  getTask,
  inputResponse,
  type ListTasksResult,
  listTasks,
  relatedTaskKey,
  type TaskFacts,
  taskErrors,
  taskFacts,
  taskResult,
  taskStatus,
  tasksExtension,
  updateTask,
} from './messages.ts'
import { answerResult } from './result.ts'
import { Runner, type TaskLimits, taskLimits } from './runner.ts'
import { hears, type RunningTask } from './running.ts'
import type { TaskRecord, TaskTable } from './table.ts'
import { detailedTask, related, taskOf } from './view.ts'

export { background, currentTask } from './layer.ts'
export type { ListenKind } from './listen.ts'

export interface TasksOptions {
  readonly table: TaskTable
  /** Seals the cursors of `tasks/list`. */
  readonly seal: Seal
  /** The tools that are offered, with what they say of tasks. */
  readonly tools: Pick<Catalog<TaskTool>, 'get' | 'snapshot'>
  readonly newId?: () => string
  readonly limits?: Partial<TaskLimits>
  readonly pageSize?: number
}

/** Of a tool only what matters here. */
export interface TaskTool {
  readonly facts: { readonly task?: TaskSupport | TaskFacts }
}

export interface TasksServer {
  readonly side: Side
  /** For `subscriptions/listen`: `taskIds`. */
  readonly listening: ListenKind
  /** Stops what runs. */
  close(): void
}

export function tasksServer(options: TasksOptions): TasksServer {
  const { table, tools } = options
  const facts = (tool: string): TaskFacts | undefined => taskFacts(tools.get(tool)?.facts.task)
  let ever = false
  const offered = (): boolean => {
    ever ||= tools.snapshot.memo('task tools', () =>
      tools.snapshot.entries.some(tool => taskFacts(tool.facts.task) !== undefined),
    )
    return ever
  }
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
  const gated = (execute: Handler['execute']): GatedHandler => ({ offered, execute })
  const extended = (execute: Handler['execute']): GatedHandler => ({ offered, resolve: requireExtension, execute })
  return {
    listening: taskListening(listeners, (exchange, id) => visible(table, exchange, id)),
    close: () => runner.close(),
    side: {
      handlers: [
        [getTask, extended(async exchange => detailedTask(await find(table, exchange), exchange.engine))],
        [updateTask, extended(exchange => update(runner, exchange, exchange.params['taskId']))],
        [cancelTask, extended(exchange => cancel(runner, exchange))],
        [getCoreTask, gated(async exchange => detailedTask(await find(table, exchange), exchange.engine))],
        [cancelCoreTask, gated(exchange => cancelCore(runner, exchange))],
        [taskResult, gated(exchange => result(runner, exchange))],
        [listTasks, gated(exchange => list(options, exchange))],
        [inputResponse, gated(exchange => respond(runner, exchange))],
      ],
      layers: [taskLayer({ runner, facts, offered })],
      capabilities: (revision, caller) => {
        if (!offered()) return {}
        if (extensionIds.includes(revision.id)) return { extensions: { [tasksExtension]: {} } }
        if (!coreIds.includes(revision.id)) return {}
        const list = caller?.principal === undefined ? {} : { list: {} }
        return { tasks: { ...list, cancel: {}, requests: { tools: { call: {} } } } }
      },
      errors: taskErrors,
    },
  }
}

/** Another's task, or one of another wire, is as unknown as one that never was. */
async function visible(table: TaskTable, { caller, peer }: Exchange, id: string): Promise<TaskRecord | undefined> {
  const record = await table.get(id)
  return record?.owner === caller.principal?.id && record?.revision === peer.revision.id ? record : undefined
}

async function find(table: TaskTable, exchange: Exchange, id = exchange.params['taskId'] as string): Promise<TaskRecord> {
  const record = await visible(table, exchange, id)
  if (record === undefined) throw new McpError('unknown-task', `There is no task "${clip(id)}", or its time is over`)
  return record
}

async function update(runner: Runner, exchange: Exchange, id: unknown): Promise<Record<string, never>> {
  const record = await find(runner.table, exchange, id as string)
  const task = runner.running(record.id)
  task?.answer(exchange.params['inputResponses'] as Params)
  await task?.saved
  return {}
}

/** An acknowledgement: cancelling what has ended is no mistake. */
async function cancel(runner: Runner, exchange: Exchange): Promise<Record<string, never>> {
  const record = await find(runner.table, exchange)
  await runner.cancel(exchange.engine, record.id)
  return {}
}

async function cancelCore(runner: Runner, exchange: Exchange): Promise<object> {
  const { id } = await find(runner.table, exchange)
  const after = await runner.cancel(exchange.engine, id)
  if (after === undefined)
    throw new McpError('task-over', `The task "${clip(id)}" has ended; only one that still runs can be cancelled`)
  return taskOf(after)
}

async function result(runner: Runner, exchange: Exchange): Promise<unknown> {
  const record = await find(runner.table, exchange)
  return answerResult(exchange, record, runner.running(record.id), () => find(runner.table, exchange))
}

/** The draft names the task in `_meta`; `params.taskId` is taken too. */
async function respond(runner: Runner, exchange: Exchange): Promise<Record<string, unknown>> {
  const named = exchange.meta?.[relatedTaskKey]
  const id = (isRecord(named) ? named['taskId'] : undefined) ?? exchange.params['taskId']
  if (typeof id !== 'string') throw new McpError('invalid-params', `params._meta["${relatedTaskKey}"].taskId must be a string`)
  await update(runner, exchange, id)
  return { _meta: related(id) }
}

const cursorMs = 3_600_000

/** Only for callers who are someone: ids are all that protects the tasks of the others. */
async function list({ table, seal, pageSize = 100 }: TasksOptions, exchange: Exchange): Promise<ListTasksResult> {
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
