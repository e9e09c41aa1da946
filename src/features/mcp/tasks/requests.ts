/** The requests of both forms as one: which of the two it is depends on the wire of the conversation. */
import type { SendOptions } from '../../../engine/calls.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { echo } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { number, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Peer, Wire } from '../../../revisions/index.ts'
import {
  cancelCoreTask,
  cancelTask,
  coreIds,
  type DetailedTask,
  fromCore,
  getCoreTask,
  getTask,
  type ListTasksResult,
  listTasks,
  type Task,
} from './messages.ts'

/** The way to whoever runs the tasks: the same for both roles, and whatever the caller's requests go through. */
export interface TaskPort {
  readonly engine: Engine
  /** Which of the two forms the wire has. */
  readonly core: boolean
  request<P, R>(method: Method<P, R>, params: P, options?: SendOptions): Promise<R>
}

/** Straight to the other end of a conversation. */
export function portTo(engine: Engine, conversation: Conversation): TaskPort {
  return {
    engine,
    core: conversation.peer !== undefined && coreIds.includes(conversation.peer.revision.id),
    request: (method, params, options) => engine.call(conversation, method, params, options),
  }
}

export async function readTask(port: TaskPort, taskId: string, options?: SendOptions): Promise<DetailedTask> {
  const task: DetailedTask = await port.request(port.core ? getCoreTask : getTask, { taskId }, options)
  return checkedTask(task)
}

/** Asks for a task's end. With the extension that is a wish: the task may still end otherwise. */
export async function stopTask(port: TaskPort, taskId: string, options?: SendOptions): Promise<void> {
  if (port.core) await port.request(cancelCoreTask, { taskId }, options)
  else await port.request(cancelTask, { taskId }, options)
}

/** One page of the caller's tasks; only the core form has it. */
export function pageOfTasks(port: TaskPort, cursor?: string, options?: SendOptions): Promise<ListTasksResult> {
  return port.request(listTasks, cursor === undefined ? {} : { cursor }, options)
}

/** Whether a peer takes `params.task` with this request (core form). */
export function takesTask(peer: Peer | undefined, method: string): boolean {
  if (peer === undefined || !coreIds.includes(peer.revision.id)) return false
  let found: unknown = peer.capabilities['tasks']
  for (const name of ['requests', ...method.split('/')]) found = isRecord(found) ? found[name] : undefined
  return isRecord(found)
}

/** The task that an answer names, in either form; undefined when the answer is the request's own. */
export function createdTask(result: unknown): Task | undefined {
  if (!isRecord(result)) return undefined
  if (result['resultType'] === 'task') {
    const { resultType, _meta, ...task } = result
    return checkedTask(task)
  }
  const nested = result['task']
  return isRecord(nested) && result['content'] === undefined ? checkedTask(fromCore(nested)) : undefined
}

const shape = object({
  taskId: string,
  status: string,
  statusMessage: optional(string),
  pollIntervalMs: optional(number),
  inputRequests: optional(record),
  result: optional(record),
  error: optional(object({ code: number, message: string })),
})

export function isTask(value: unknown): value is Wire & DetailedTask {
  if (shape.check(value) !== undefined) return false
  const { ttlMs } = value as Wire
  return ttlMs === null || ttlMs === undefined || typeof ttlMs === 'number'
}

function checkedTask(task: unknown): DetailedTask {
  if (isTask(task)) return task
  throw new McpError('invalid-answer', `The task that came back is malformed: ${echo(task)}`)
}
