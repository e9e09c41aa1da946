/** Offering tasks, in both forms: two sets of methods that share no wire. What they do is loaded with the first task. */
import type { Catalog } from '../../../core/catalog.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Seal } from '../../../core/handle.ts'
import type { Runners } from '../../../core/journal/runners.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Store } from '../../../stores/store.ts'
import { callTool, type TaskSupport } from '../tools/messages.ts'
import { declaresTasks, requireExtension } from './declared.ts'
import type { ListenKind } from './listen.ts'
import {
  cancelCoreTask,
  cancelTask,
  coreIds,
  extensionIds,
  getCoreTask,
  getTask,
  inputResponse,
  listTasks,
  type TaskFacts,
  taskErrors,
  taskFacts,
  taskResult,
  tasksExtension,
  updateTask,
} from './messages.ts'
import type { TaskLimits } from './runner.ts'
import type { TasksRuntime } from './runtime.ts'
import type { TaskTable } from './table.ts'

export { background, currentTask } from './current.ts'
export type { ListenKind } from './listen.ts'

export interface TasksOptions {
  /** Default: in memory. */
  readonly table?: TaskTable
  /** Where tasks are kept for all processes that share it. */
  readonly store?: () => Promise<Store>
  /** Which of them are alive. */
  readonly runners?: () => Promise<Runners>
  readonly clock?: Clock
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
  /** Whether a call will go on as a task before its handler is entered: what it then asks is asked by the task. */
  detaches(exchange: Exchange): boolean
  /** Stops what runs. */
  close(): void
}

export function tasksServer(options: TasksOptions): TasksServer {
  const { tools } = options
  const lazy = lazily(options)
  let ever = false
  const offered = (): boolean => {
    ever ||= tools.snapshot.memo('task tools', () =>
      tools.snapshot.entries.some(tool => taskFacts(tool.facts.task) !== undefined),
    )
    return ever
  }
  const factsOf = (tool: string): TaskFacts | undefined => {
    const facts = taskFacts(tools.get(tool)?.facts.task)
    // What is begun now can be asked after, also when its tool has gone.
    ever ||= facts !== undefined
    return facts
  }
  const gated = (does: Work): GatedHandler => ({ offered, execute: async exchange => (await lazy.load())[does](exchange) })
  const extended = (does: Work): GatedHandler => ({ ...gated(does), resolve: requireExtension })
  return {
    listening: { member: 'taskIds', open: async (...wish) => (await lazy.load()).listening.open(...wish) },
    close: lazy.close,
    detaches: exchange => {
      const { params, peer, caller } = exchange
      const facts = taskFacts(tools.get(params['name'] as string)?.facts.task)
      if (facts === undefined) return false
      if (coreIds.includes(peer.revision.id)) return params['task'] !== undefined
      const kept = caller.ephemeral !== true || options.store !== undefined || options.table?.durable === true
      return extensionIds.includes(peer.revision.id) && declaresTasks(exchange) && facts.deferred !== true && kept
    },
    side: {
      handlers: [
        [getTask, extended('get')],
        [updateTask, extended('update')],
        [cancelTask, extended('cancel')],
        [getCoreTask, gated('get')],
        [cancelCoreTask, gated('cancelCore')],
        [taskResult, gated('result')],
        [listTasks, gated('list')],
        [inputResponse, gated('respond')],
      ],
      layers: [taskLayer(lazy, factsOf, offered)],
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

type Work = 'get' | 'update' | 'cancel' | 'cancelCore' | 'result' | 'list' | 'respond'

interface LazyRuntime {
  /** Undefined until it was loaded. */
  readonly loaded: TasksRuntime | undefined
  load(): Promise<TasksRuntime>
  close(): void
}

function lazily(options: TasksOptions): LazyRuntime {
  let loading: Promise<TasksRuntime> | undefined
  let loaded: TasksRuntime | undefined
  return {
    get loaded() {
      return loaded
    },
    load: () => {
      loading ??= import('./runtime.ts').then(({ createTasksRuntime }) => {
        loaded = createTasksRuntime(options)
        return loaded
      })
      return loading
    },
    close: () => {
      if (loaded === undefined) loading?.then(runtime => runtime.close())
      else loaded.close()
    },
  }
}

/** The layer on `tools/call`. Where tasks are not declared at all, a caller's wish for one is ignored. */
function taskLayer(lazy: LazyRuntime, facts: (tool: string) => TaskFacts | undefined, offered: () => boolean): Layer {
  const factsOf = ({ params }: Exchange): TaskFacts | undefined => facts(params['name'] as string)
  return {
    stage: 'execute',
    methods: [callTool.name],
    when: exchange => {
      const { id } = exchange.peer.revision
      const core = coreIds.includes(id)
      if (!core && !extensionIds.includes(id)) return false
      return factsOf(exchange) !== undefined || (core && exchange.params['task'] !== undefined && offered())
    },
    run: (exchange, next) => {
      const { loaded } = lazy
      if (loaded !== undefined) return loaded.run(exchange, next, factsOf(exchange))
      return lazy.load().then(runtime => runtime.run(exchange, next, factsOf(exchange)))
    },
  }
}
