/** Using tasks: from the answer that named one to the result of the call, in both forms. The caller sees only the end. */
import type { Conversation } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { coreIds, type DetailedTask, fromCore, type Task, taskChanged, taskStatus, tasksExtension } from './messages.ts'
import { checkedTask, isTask } from './requests.ts'

export { type FinishOptions, finishTask } from './finish.ts'
export { pageOfTasks, readTask, stopTask } from './requests.ts'

/** Hears of tasks where the server tells. The extension is declared with the calls that may become tasks, not with all. */
export function tasksClient(onTask?: (task: DetailedTask, exchange: Exchange) => void): Side {
  const told = (exchange: Exchange): void => {
    const { _meta, ...task } = exchange.params
    if (isTask(task)) onTask?.(task, exchange)
  }
  return {
    handlers: [
      [taskStatus, told],
      [taskChanged, told],
    ],
  }
}

/** The task that a call's answer names, in either form; undefined when the answer is the call's own. */
export function createdTask(result: unknown): Task | undefined {
  if (!isRecord(result)) return undefined
  if (result['resultType'] === 'task') {
    const { resultType, _meta, ...task } = result
    return checkedTask(task)
  }
  const nested = result['task']
  return isRecord(nested) && result['content'] === undefined ? checkedTask(fromCore(nested)) : undefined
}

/** Whether a refusal says that the call can only run as a task. */
export function wantsTask(error: unknown): boolean {
  if (!(error instanceof McpError)) return false
  const required = property(error.data, 'requiredCapabilities')
  return isRecord(property(property(required, 'extensions'), tasksExtension))
}

/** Whether this server takes `params.task` with a call of a tool (core form); the tool must allow it too. */
export function takesTasks(conversation: Conversation): boolean {
  const { peer } = conversation
  if (peer === undefined || !coreIds.includes(peer.revision.id)) return false
  const requests = property(property(peer.capabilities, 'tasks'), 'requests')
  return isRecord(property(property(requests, 'tools'), 'call'))
}

function property(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined
}
