/** A record as its wire shows it. */
import type { Engine } from '../../../engine/engine.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { revisionById, stepsDown, type Wire } from '../../../revisions/index.ts'
import { type CallToolResult, callTool } from '../tools/messages.ts'
import { type DetailedTask, relatedTaskKey, type Task, toCore } from './messages.ts'
import type { TaskRecord } from './record.ts'

export function taskOf(record: TaskRecord): Task {
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

/** The core form's answer to a call that became a task, as its wire writes it. */
export function coreCreated(record: TaskRecord): Wire {
  return { task: toCore(taskOf(record) as unknown as Wire) }
}

/** What the call itself would have answered, named as the task's; a failure is thrown. */
export function finalResult(record: TaskRecord): CallToolResult {
  const { result } = record
  if (result === undefined) throw failureOf(record)
  return { ...result, _meta: { ...result._meta, ...related(record.id) } }
}

export function related(taskId: string): Readonly<Record<string, unknown>> {
  return { [relatedTaskKey]: { taskId } }
}

function failureOf({ status, error }: TaskRecord): McpError {
  if (status === 'cancelled') return new McpError('task-cancelled', 'The task was cancelled')
  if (error === undefined) return new McpError('internal', 'The task failed')
  const { kind, message, data, code } = error
  return new McpError(kind, message, { ...(data === undefined ? {} : { data }), ...(code === undefined ? {} : { code }) })
}
