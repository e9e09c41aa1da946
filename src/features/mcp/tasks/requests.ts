/** The requests of both forms as one: which of the two it is depends on the wire of the conversation. */
import type { SendOptions } from '../../../engine/calls.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Wire } from '../../../revisions/index.ts'
import {
  cancelCoreTask,
  cancelTask,
  coreIds,
  type DetailedTask,
  getCoreTask,
  getTask,
  type ListTasksResult,
  listTasks,
} from './messages.ts'

export async function readTask(
  engine: Engine,
  conversation: Conversation,
  taskId: string,
  options?: SendOptions,
): Promise<DetailedTask> {
  const task: DetailedTask = isCore(conversation)
    ? await engine.call(conversation, getCoreTask, { taskId }, options)
    : await engine.call(conversation, getTask, { taskId }, options)
  return checkedTask(task)
}

/** Asks for a task's end. With the extension that is a wish: the task may still end otherwise. */
export async function stopTask(engine: Engine, conversation: Conversation, taskId: string, options?: SendOptions): Promise<void> {
  if (isCore(conversation)) await engine.call(conversation, cancelCoreTask, { taskId }, options)
  else await engine.call(conversation, cancelTask, { taskId }, options)
}

/** One page of the caller's tasks; only the core form has it. */
export function pageOfTasks(
  engine: Engine,
  conversation: Conversation,
  cursor?: string,
  options?: SendOptions,
): Promise<ListTasksResult> {
  return engine.call(conversation, listTasks, cursor === undefined ? {} : { cursor }, options)
}

export function isCore({ peer }: Conversation): boolean {
  return peer !== undefined && coreIds.includes(peer.revision.id)
}

export function isTask(value: Wire): value is Wire & DetailedTask {
  const { taskId, status, ttlMs } = value
  return (
    typeof taskId === 'string' &&
    typeof status === 'string' &&
    (ttlMs === null || ttlMs === undefined || typeof ttlMs === 'number')
  )
}

export function checkedTask(task: Wire | DetailedTask): DetailedTask {
  const wire = task as Wire
  if (isTask(wire)) return wire
  throw new McpError('invalid-answer', `The server's task is malformed: ${clip(JSON.stringify(wire) ?? '')}`)
}
