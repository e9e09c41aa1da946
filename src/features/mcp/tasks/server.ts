/** Offering tasks, in both forms: two sets of methods that share no wire. What they do is loaded with the first task. */
import type { Catalog } from '../../../core/catalog.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Seal } from '../../../core/handle.ts'
import type { ProcessLeases } from '../../../core/journal/process-leases.ts'
import type { QuestionSender } from '../../../engine/asking.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Store } from '../../../stores/store.ts'
import { type ListenKind, subscriptionsPort } from '../subscriptions/messages.ts'
import { callTool, type TaskSupport, toolsPort } from '../tools/messages.ts'
import { continueAsTask, currentTask, declaresTasks, loadedOnce, requireExtension } from './current.ts'
import {
  cancelCoreTask,
  cancelTask,
  coreTaskRevisions,
  extensionTaskRevisions,
  getCoreTask,
  getTask,
  inputResponse,
  listTasks,
  type TaskFacts,
  type TaskWish,
  taskErrors,
  taskFacts,
  taskResult,
  tasksExtension,
  tasksPort,
  updateTask,
} from './messages.ts'
import type { taskLimits } from './runner.ts'
import type { createTasksRuntime } from './runtime.ts'
import type { TaskTable } from './table.ts'

/** The task of a call. */
export interface TasksContext {
  /** The task that the call has become. Undefined if it is none. */
  readonly task: CurrentTask | undefined
  /** Turns the call into a task from here on, for tools with `deferred`. False if the call cannot become a task. */
  background(): Promise<boolean>
}

/** The task that a call has become. */
type CurrentTask = NonNullable<ReturnType<typeof currentTask>>

/** Options of the server's side of tasks. */
export interface TasksOptions {
  /** Default: in memory. */
  readonly table?: TaskTable
  /** Where tasks are kept for all processes that share it. */
  readonly store?: () => Promise<Store>
  /** Which of them are alive. */
  readonly runners?: () => Promise<ProcessLeases>
  readonly clock?: Clock
  /** Seals the cursors of `tasks/list`. */
  readonly seal: Seal
  /** The tools that are offered, with what they say of tasks. */
  readonly tools: Pick<Catalog<TaskTool>, 'get' | 'snapshot'>
  readonly newId?: () => string
  readonly limits?: Partial<typeof taskLimits>
  readonly pageSize?: number
}

/** Of a tool only what matters here. */
interface TaskTool {
  readonly facts: { readonly task?: TaskSupport | TaskFacts }
}

/** Tools whose calls go on as tasks; `ctx.task` and `ctx.background`. */
export const tasksFeature = defineServerFeature<object>({
  name: 'tasks',
  context: {
    get task() {
      return currentTask(exchangeOf(this))
    },
    background() {
      return continueAsTask(exchangeOf(this))
    },
  } satisfies TasksContext & ThisType<CallContext>,
  setup(kit) {
    const { clock, seal, store, runners, shared } = kit
    const { runningTasks, runningTasksPerCaller } = kit.limits
    const { side, listening, detaches, close } = tasksServer({
      clock,
      seal,
      tools: kit.port(toolsPort).catalog,
      limits: { runningTasks, runningTasksPerCaller },
      ...(shared ? { store, runners } : {}),
    })
    return {
      sides: [side],
      provides: provide(tasksPort, { detaches, questionSender }),
      installed: () => kit.port(subscriptionsPort).kind(listening),
      stop: close,
    }
  },
})

/** Loaded when first wished for: most servers never ask so. */
function questionSender(wish: TaskWish | undefined): QuestionSender | undefined {
  if (wish === undefined || wish === false) return undefined
  return async (exchange, method, params, options) => {
    const { askThroughTask } = await import('./requestor.ts')
    return askThroughTask(exchange, method, params, options, wish)
  }
}

/** Makes the server's side of tasks. */
export function tasksServer(options: TasksOptions) {
  const { tools } = options
  const lazy = loadedOnce(async () => (await import('./runtime.ts')).createTasksRuntime(options))
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
  /** For `subscriptions/listen`: `taskIds`. */
  const listening: ListenKind = {
    member: 'taskIds',
    open: async (...wish) => (await lazy.load()).listening.open(...wish),
  }
  const side: Side = {
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
      if (extensionTaskRevisions.includes(revision.id)) return { extensions: { [tasksExtension]: {} } }
      if (!coreTaskRevisions.includes(revision.id)) return {}
      const list = caller?.principal === undefined ? {} : { list: {} }
      return { tasks: { ...list, cancel: {}, requests: { tools: { call: {} } } } }
    },
    errors: taskErrors,
  }
  return {
    side,
    listening,
    /** Stops what runs. */
    close: lazy.close,
    /** Whether a call will go on as a task before its handler is entered: what it then asks is asked by the task. */
    detaches: (exchange: Exchange): boolean => {
      const { params, peer, caller } = exchange
      const facts = taskFacts(tools.get(params['name'] as string)?.facts.task)
      if (facts === undefined) return false
      if (coreTaskRevisions.includes(peer.revision.id)) return params['task'] !== undefined
      const stored = caller.ephemeral !== true || options.store !== undefined || options.table?.durable === true
      return extensionTaskRevisions.includes(peer.revision.id) && declaresTasks(exchange) && facts.deferred !== true && stored
    },
  }
}

type LazyRuntime = ReturnType<typeof loadedOnce<ReturnType<typeof createTasksRuntime>>>
type Work = 'get' | 'update' | 'cancel' | 'cancelCore' | 'result' | 'list' | 'respond'

/** The layer on `tools/call`. Where tasks are not declared at all, a caller's wish for one is ignored. */
function taskLayer(lazy: LazyRuntime, facts: (tool: string) => TaskFacts | undefined, offered: () => boolean): Layer {
  const factsOf = ({ params }: Exchange): TaskFacts | undefined => facts(params['name'] as string)
  return {
    stage: 'execute',
    methods: [callTool.name],
    params: ['task'],
    concerns: exchange => factsOf(exchange) !== undefined,
    when: exchange => {
      const { id } = exchange.peer.revision
      const core = coreTaskRevisions.includes(id)
      if (!core && !extensionTaskRevisions.includes(id)) return false
      return factsOf(exchange) !== undefined || (core && exchange.params['task'] !== undefined && offered())
    },
    run: (exchange, next) => {
      const { loaded } = lazy
      if (loaded !== undefined) return loaded.run(exchange, next, factsOf(exchange))
      return lazy.load().then(runtime => runtime.run(exchange, next, factsOf(exchange)))
    },
  }
}
