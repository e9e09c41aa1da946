/** Using tasks: from the answer that named one to the result of the call, in both forms. The caller sees only the end. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type DetailedTask, taskChanged, taskStatus, tasksExtension } from './messages.ts'
import { isTask } from './requests.ts'

export { type FinishOptions, finishTask } from './finish.ts'
export { progressIn } from './progress-text.ts'
export { createdTask, pageOfTasks, portTo, readTask, stopTask, type TaskPort, takesTask } from './requests.ts'

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

/** Whether a refusal says that the call can only run as a task. */
export function wantsTask(error: unknown): boolean {
  if (!(error instanceof McpError)) return false
  const required = property(error.data, 'requiredCapabilities')
  return isRecord(property(property(required, 'extensions'), tasksExtension))
}

function property(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined
}
