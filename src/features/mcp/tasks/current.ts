/**
 * What every call needs to know of tasks: whether its caller takes them, and the task that the call is or may become. Apart from the
 * code that runs tasks, which is loaded with the first one.
 */
import { capabilityMissing } from '../../../engine/asking.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { tasksExtension } from './messages.ts'
import type { RunningTask } from './running.ts'

const tasks = new WeakMap<Exchange, RunningTask>()
/** How calls that wait for their handler's word become tasks. */
const starters = new WeakMap<Exchange, () => Promise<void>>()

/** The call goes on as this task. */
export function setCurrentTask(exchange: Exchange, task: RunningTask): void {
  tasks.set(exchange, task)
}

/** The call becomes a task when its handler gives the word; undefined: it can not any more. */
export function setTaskStarter(exchange: Exchange, start: (() => Promise<void>) | undefined): void {
  if (start === undefined) starters.delete(exchange)
  else starters.set(exchange, start)
}

/**
 * From here on the call goes on as a task, if it may: its caller has an answer, and what the handler asks is asked by the task.
 * False where the call stays a call.
 */
export async function continueAsTask(exchange: Exchange): Promise<boolean> {
  if (tasks.has(exchange)) return true
  const start = starters.get(exchange)
  if (start === undefined) return false
  exchange.signal.throwIfAborted()
  if (exchange.asking?.pending === true)
    throw new McpError('suspended', 'The call waits for an answer of the client, so it cannot become a task yet')
  await start()
  return true
}

/** The task that this call has become, for its handler. */
export function currentTask(exchange: Exchange): { readonly id: string; describe(message: string): void } | undefined {
  const task = tasks.get(exchange)
  if (task === undefined) return undefined
  return {
    id: task.id,
    describe: message => {
      task.message = clip(message, 1000)
      task.touch()
    },
  }
}

/** Throws unless this request declared the extension. */
export function requireExtension(exchange: Exchange): void {
  if (declaresTasks(exchange)) return
  throw capabilityMissing(exchange.route.method.name, { extensions: { [tasksExtension]: {} } })
}

/** Whether this request declared the extension. */
export function declaresTasks({ peer }: Exchange): boolean {
  return declaredSettings(peer, tasksExtension) !== undefined
}

/** What is loaded when it is first asked for, and closed if it was. */
export function loadedOnce<T extends { close(): void }>(load: () => Promise<T>) {
  let loading: Promise<T> | undefined
  let loaded: T | undefined
  return {
    /** Undefined until it was loaded. */
    get loaded(): T | undefined {
      return loaded
    },
    load: (): Promise<T> => {
      loading ??= load().then(made => {
        loaded = made
        return made
      })
      return loading
    },
    close: (): void => {
      if (loaded === undefined) loading?.then(late => late.close())
      else loaded.close()
    },
  }
}
