/**
 * Tasks on the wire: calls whose answer is fetched later. Two forms that share only their idea: the core one of 2025-11-25
 * (the caller asks for a task and fetches the result) and the extension of 2026-07-28 (the server decides, everything is in
 * `tasks/get`). The canonical task is the extension's.
 */
import type { Duration } from '../../../core/clock.ts'
import type { QuestionSender } from '../../../engine/asking.ts'
import type { Calls, Progress, SendOptions } from '../../../engine/calls.ts'
import { type Exchange, field } from '../../../engine/exchange.ts'
import { notification, request } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { relatedTaskKey } from '../../../engine/reserved.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { object, oneOf, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { RevisionId, Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'
import type { InputRequest, InputRequiredResult } from '../input-required/messages.ts'
import { type CallToolResult, callTool, type TaskSupport } from '../tools/messages.ts'

/** What a handler still does after its call was answered: because it took too long, or as the task that the call has become. */
export const workAfterAnswer = field<PromiseLike<unknown>>()

/** What other features may use of tasks. */
interface TasksPort {
  /** Whether a call will go on as a task before its handler is entered: what it then asks is asked by the task. */
  detaches(exchange: Exchange): boolean
  /** How a question is asked whose answer shall be worked out as a task; undefined: as any other. */
  questionSender(wish: TaskWish | undefined): QuestionSender | undefined
}

/** What other features may use of tasks. */
export const tasksPort = port<TasksPort>('tasks')

/** The extension's name among the capabilities of both ends. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'
/** The `_meta` key that says which task a message belongs to (core form). */
export { relatedTaskKey }

/** The task that a message says it belongs to. */
export function relatedTask(meta: Params | undefined): string | undefined {
  const named = meta?.[relatedTaskKey]
  return isRecord(named) && typeof named['taskId'] === 'string' ? named['taskId'] : undefined
}

const statuses = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const
/** The states of a task. */
type TaskStatus = (typeof statuses)[number]

/** A task as the canonical model has it. */
export interface Task {
  readonly taskId: string
  readonly status: TaskStatus
  /** For people. */
  readonly statusMessage?: string
  /** ISO 8601. */
  readonly createdAt: string
  /** ISO 8601. */
  readonly lastUpdatedAt: string
  /** How long it is kept, from its creation; null: without limit. */
  readonly ttlMs: number | null
  /** How often the server wishes to be asked. */
  readonly pollIntervalMs?: number
}

/** A task with what its status brings: open questions, the result, or the failure. */
export interface DetailedTask extends Task {
  /** While it waits for answers. */
  readonly inputRequests?: Readonly<Record<string, InputRequest>>
  /** Once it is completed. */
  readonly result?: CallToolResult
  /** Once it has failed. */
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** The result of `tasks/list`. */
export interface ListTasksResult {
  readonly tasks: readonly Task[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

/** How calls of a tool run as tasks. */
export interface TaskFacts {
  /** Whether a call may run as a task (`optional`) or must (`required`). */
  readonly support: 'optional' | 'required'
  /**
   * Whether the handler decides when the call becomes a task, by `ctx.background()`. Until then it can ask the user within the
   * call. A client that requested a task gets one at once. Default false: the call is a task from its start.
   */
  readonly deferred?: boolean
  /** How long the task is kept from its creation, unless the client asks for another time (at most 24 h). Default 1 h. */
  readonly ttl?: Duration
  /** How long clients should wait between two polls. Default: the server decides. */
  readonly pollInterval?: Duration
}

const plain: Readonly<Record<'optional' | 'required', TaskFacts>> = {
  optional: { support: 'optional' },
  required: { support: 'required' },
}

/** A tool's `task` option, spelled out. Undefined: it never is one. */
export function taskFacts(declared: TaskSupport | TaskFacts | undefined): TaskFacts | undefined {
  if (declared === undefined || declared === 'forbidden') return undefined
  const facts = typeof declared === 'string' ? plain[declared] : declared
  if (facts?.support === 'optional' || facts?.support === 'required') return facts
  throw new TypeError(
    `task is ${clip(JSON.stringify(declared))}: give 'optional', 'required' or { support: 'optional' | 'required' }`,
  )
}

/**
 * Has the answer to a question worked out as a task, if the client runs such tasks (2025-11-25): the answer may take as long as
 * the task is kept, and outlives the request. Otherwise the question is asked as usual.
 */
export type TaskWish =
  | boolean
  | {
      /** How long the task is kept. Default: the client decides. */
      readonly ttl?: Duration
    }

/** Whether a task in this state has ended. */
export function isTerminal(status: TaskStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** The wires of the core form. */
export const coreTaskRevisions: readonly RevisionId[] = ['2025-11-25', 'draft-2026-v1']
/** The one wire on which servers send requests and tasks are known: its clients run tasks for their server. */
export const clientTaskRevisions: readonly RevisionId[] = ['2025-11-25']
/** The revisions that have tasks as an extension. */
export const extensionTaskRevisions: readonly RevisionId[] = ['2026-07-28']

const named = object({ taskId: string })
const shown = object({ taskId: string, status: oneOf(...statuses) })
const coreDown = { '2025-11-25': toCore, 'draft-2026-v1': toCore }
const coreUp = { '2025-11-25': fromCore, 'draft-2026-v1': fromCore }

// ── the extension ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a caller declares that takes a task for an answer. */
export const takingTasks = { extensions: { [tasksExtension]: {} } } as const

const ofTask = { to: 'server', in: extensionTaskRevisions, nameParam: 'taskId', declares: takingTasks } as const

/** `tasks/get` of the extension: the task with its questions, result or failure. */
export const getTask = request<DetailedTask>()({ ...ofTask, name: 'tasks/get', params: named })

/** `tasks/update`: answers to questions of a task. */
export const updateTask = request<Record<string, never>>()({
  ...ofTask,
  name: 'tasks/update',
  params: object({ taskId: string, inputResponses: record }),
})

/** `tasks/cancel` of the extension: a wish, to which the server need not give way. */
export const cancelTask = request<Record<string, never>>()({ ...ofTask, name: 'tasks/cancel', params: named })

/** To those who listen for this task: all that `tasks/get` would say. */
export const taskChanged = notification({ name: 'notifications/tasks', to: 'client', in: extensionTaskRevisions, params: shown })

// ── the core form ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Either end may run tasks for the other. */
const ofCore = { to: 'both', in: coreTaskRevisions } as const

/** `tasks/get` of the core form: the state alone. */
export const getCoreTask = request<Task>()({
  ...ofCore,
  name: 'tasks/get',
  params: named,
  resultDown: coreDown,
  resultUp: coreUp,
})

/** `tasks/cancel` of the core form: gives the task as it ended. */
export const cancelCoreTask = request<Task>()({
  ...ofCore,
  name: 'tasks/cancel',
  params: named,
  resultDown: coreDown,
  resultUp: coreUp,
})

const { resultDown = {}, resultUp = {} } = callTool

/** Blocks until the task has ended; the draft may answer with questions instead. */
export const taskResult = request<CallToolResult | InputRequiredResult>()({
  ...ofCore,
  name: 'tasks/result',
  params: named,
  resultDown,
  resultUp,
})

/** `tasks/list`: the caller's tasks, page by page. */
export const listTasks = request<ListTasksResult>()({
  ...ofCore,
  name: 'tasks/list',
  params: object({ cursor: optional(string) }),
  resultDown: { '2025-11-25': eachTask(toCore), 'draft-2026-v1': eachTask(toCore) },
  resultUp: { '2025-11-25': eachTask(fromCore), 'draft-2026-v1': eachTask(fromCore) },
})

/** The draft's way to answer what `tasks/result` asked; the task is named in `_meta`. */
export const inputResponse = request<Record<string, unknown>>()({
  to: 'server',
  in: ['draft-2026-v1'],
  name: 'tasks/input_response',
  params: object({ inputResponses: record, taskId: optional(string), _meta: optional(record) }),
})

/** `notifications/tasks/status`: the state of a task has changed. */
export const taskStatus = notification({
  name: 'notifications/tasks/status',
  to: 'both',
  in: coreTaskRevisions,
  params: shown,
  paramsDown: coreDown,
  paramsUp: coreUp,
})

/** Error kinds of tasks, with their numbers. */
export const taskErrors = {
  'unknown-task': { default: -32602 },
  'task-over': { default: -32602 },
  'task-support': { default: -32601 },
  'task-cancelled': { default: -32603 },
  'task-abandoned': { default: -32603 },
}

/** The core form: other names, no payload, and a tool's own failure counts as the task's. */
export function toCore(task: Wire): Wire {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, result } =
    task as unknown as DetailedTask
  return {
    taskId,
    status: status === 'completed' && result?.isError === true ? 'failed' : status,
    ...(statusMessage === undefined ? {} : { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttl: ttlMs,
    ...(pollIntervalMs === undefined ? {} : { pollInterval: pollIntervalMs }),
  }
}

/** A task of the core form as the canonical model has it. */
export function fromCore(wire: Wire): Wire {
  const { ttl, pollInterval } = wire
  return {
    ...without(wire, 'ttl', 'pollInterval'),
    ttlMs: ttl ?? null,
    ...(pollInterval === undefined ? {} : { pollIntervalMs: pollInterval }),
  }
}

function eachTask(change: (task: Wire) => Wire): (result: Wire) => Wire {
  return result => (Array.isArray(result['tasks']) ? { ...result, tasks: result['tasks'].filter(isRecord).map(change) } : result)
}

/** Progress of a call that may become a task. */
export interface ClientTaskProgress {
  /** What the request has to be sent with. */
  options(send: SendOptions): Pick<SendOptions, 'onProgress' | 'onSent'>
  /** The call has become a task. */
  begun(): void
  /** The task, as it was just looked at. */
  looked(task: Task): void
  end(): void
}

/** The tasks of a server, for features of a client whose calls may become tasks. */
export interface ClientTasks {
  /** Whether the server takes `params.task` with this request, on wires where the caller decides. */
  takes(method: string): boolean
  /** Whether the server decides which calls become tasks, and has some. */
  readonly decides: boolean
  /** Whether a refusal says that the call can only run as a task. */
  wantedBy(error: unknown): boolean
  /** The task that an answer names; undefined where it is the call's own. */
  created(result: unknown): Task | undefined
  /** Waits for the end of a task, answers its questions, and returns the result of the call. */
  finish(
    task: Task,
    options: {
      readonly signal?: AbortSignal | undefined
      readonly totalMs?: number | undefined
      readonly answer?: ((request: InputRequest) => Promise<unknown>) | undefined
      readonly onStatus?: ((task: Task) => void) | undefined
    },
  ): Promise<CallToolResult>
  /** Asks for a task's end; whether the server hears of it changes nothing for whoever has given it up. */
  stop(task: Task): void
  /** The same request, whose answer may be a task. */
  allow(send: SendOptions): SendOptions
  progress(tell: (step: Progress) => void, calls: () => Calls | undefined): ClientTaskProgress
}

/** The client's tasks. */
export const clientTasksPort: Port<ClientTasks> = port('tasks')
