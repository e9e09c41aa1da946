/** Hearing of tasks instead of polling: what a `subscriptions/listen` may ask for under `taskIds` (2026-07-28, tasks extension). */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { requireExtension } from './declared.ts'
import { taskChanged } from './messages.ts'
import type { TaskRecord } from './record.ts'
import { detailedTask } from './view.ts'

/** What one listen request was granted of a kind. */
interface Granted {
  /** For the acknowledgement: the part that is honoured. */
  readonly accepted: unknown
  /** The acknowledgement is out: from here on things may be sent. */
  start(): void
  close(): void
}

/** A kind of thing to listen for, beside lists and resources: one member of the request's filter. */
export interface TaskListenKind {
  readonly member: string
  /** Throws where the caller may not ask for it; undefined when nothing of it is honoured. `send` adds what every such message carries. */
  open(
    exchange: Exchange,
    wanted: unknown,
    send: <P>(method: Method<P, undefined>, params: P) => void,
  ): Promise<Granted | undefined>
}

/** Ids in one listen request; more are not honoured. */
const maxIds = 100

type Listener = (record: TaskRecord) => void

export class TaskListeners {
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
export function taskListening(
  listeners: TaskListeners,
  find: (exchange: Exchange, id: string) => Promise<TaskRecord | undefined>,
): TaskListenKind {
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
