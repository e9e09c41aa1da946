/** The machinery of tasks: one table, one runner, and what the methods of both forms do with them. Loaded with the first task. */
import { realClock } from '../../../core/clock.ts'
import { HandleError, type Seal } from '../../../core/handle.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { ListenKind } from '../subscriptions/messages.ts'
import { requireExtension } from './current.ts'
import { runTask } from './layer.ts'
import {
  isTerminal,
  type ListTasksResult,
  listTasks,
  relatedTaskKey,
  type TaskFacts,
  taskChanged,
  taskStatus,
} from './messages.ts'
import { answerTaskGet, answerTaskResult, cancelCore, detailedTask, findVisibleTask, related, requireTask } from './receiver.ts'
import type { TaskRecord } from './record.ts'
import { Runner, taskLimits } from './runner.ts'
import { canNotifyCreator, type RunningTask } from './running.ts'
import type { TasksOptions } from './server.ts'
import { memoryTasks, storeTasks, type TaskTable } from './table.ts'

/** Makes the runtime of tasks. */
export function createTasksRuntime(options: TasksOptions) {
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
    /** Runs a call whose tool has something to say of tasks, or whose caller asked for one. */
    run: (exchange: Exchange, next: Next, facts: TaskFacts | undefined): Awaitable<unknown> =>
      runTask(exchange, next, facts, runner),
    get: (exchange: Exchange): Promise<unknown> => answerTaskGet(runner, exchange),
    update: (exchange: Exchange): Promise<unknown> => update(runner, exchange, exchange.params['taskId']),
    cancel: (exchange: Exchange): Promise<unknown> => cancel(runner, exchange),
    cancelCore: (exchange: Exchange): Promise<unknown> => cancelCore(runner, exchange),
    result: (exchange: Exchange): Promise<unknown> => answerTaskResult(runner, exchange),
    list: (exchange: Exchange): Promise<unknown> => list(table, options, exchange),
    respond: (exchange: Exchange): Promise<unknown> => respond(runner, exchange),
    listening: taskListening(listeners, (exchange, id) => findVisibleTask(runner, exchange, id)),
    close: (): void => runner.close(),
  }
}

function tableOf({ table, store, runners, clock = realClock }: TasksOptions): TaskTable {
  return table ?? (store === undefined ? memoryTasks(clock) : storeTasks({ open: store, clock, runners }))
}

async function update(runner: Runner, exchange: Exchange, id: unknown): Promise<Record<string, never>> {
  const record = await requireTask(runner, exchange, id as string)
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
  const record = await requireTask(runner, exchange)
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
    throw new McpError('method-not-found', 'tasks/list requires an authenticated caller; store the ids of your tasks instead')
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
    throw new McpError(
      'invalid-params',
      'params.cursor was not issued by this server, or has expired; start again without a cursor',
    )
  }
}

/** Core form: whoever made the task hears of its status, where there is a stream for what is said unasked. */
function tellStatus(record: TaskRecord, task: RunningTask): void {
  const { engine, conversation } = task.exchange
  if (canNotifyCreator(task)) engine.notify(conversation, taskStatus, detailedTask(record, engine))
}

// Hearing of tasks instead of polling: what a `subscriptions/listen` may ask for under `taskIds` (2026-07-28, tasks extension).

/** Ids in one listen request; more are not honoured. */
const maxIds = 100

type Listener = (record: TaskRecord) => void

class TaskListeners {
  readonly #listeners = new Map<string, Set<Listener>>()

  tell(record: TaskRecord): void {
    for (const fn of this.#listeners.get(record.id) ?? []) fn(record)
  }

  add(id: string, fn: Listener): void {
    const set = this.#listeners.get(id)
    if (set === undefined) this.#listeners.set(id, new Set([fn]))
    else set.add(fn)
  }

  delete(id: string, fn: Listener): void {
    const set = this.#listeners.get(id)
    if (set?.delete(fn) === true && set.size === 0) this.#listeners.delete(id)
  }
}

/** `find` gives a record that the caller may see. */
function taskListening(
  listeners: TaskListeners,
  find: (exchange: Exchange, id: string) => Promise<TaskRecord | undefined>,
): ListenKind {
  return {
    member: 'taskIds',
    open: async (exchange, wanted, send) => {
      requireExtension(exchange)
      if (!Array.isArray(wanted) || wanted.some(id => typeof id !== 'string')) {
        throw new McpError('invalid-params', 'params.notifications.taskIds must be an array of strings')
      }
      const { engine } = exchange
      const ids: string[] = []
      for (const id of new Set<string>(wanted.slice(0, maxIds))) if ((await find(exchange, id)) !== undefined) ids.push(id)
      if (ids.length === 0) return undefined
      let open = true
      const tell: Listener = record => {
        if (open) send(taskChanged, detailedTask(record, engine))
      }
      // A change that nobody was told of yet must not be waited for in vain.
      const catchUp = async (id: string): Promise<void> => {
        const record = await find(exchange, id)
        if (record !== undefined && record.status !== 'working') tell(record)
      }
      return {
        accepted: ids,
        start: () => {
          for (const id of ids) {
            listeners.add(id, tell)
            catchUp(id).catch(error => engine.trace('task-not-told', error))
          }
        },
        close: () => {
          open = false
          for (const id of ids) listeners.delete(id, tell)
        },
      }
    },
  }
}
