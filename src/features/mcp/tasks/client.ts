/** Using tasks: from the answer that named one to the result of the call, in both forms. The caller sees only the end. */

import type { Clock } from '../../../core/clock.ts'
import type { CallOptions, Calls, Progress, SendOptions } from '../../../engine/calls.ts'
import { type ClientKit, defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Id, isRecord } from '../../../jsonrpc/message.ts'
import { elicit } from '../elicitation/messages.ts'
import { questionsPort } from '../input-required/messages.ts'
import { createMessage } from '../sampling/messages.ts'
import { progressFromText, runAtOnce } from './layer.ts'
import {
  type ClientTaskProgress,
  type ClientTasks,
  cancelCoreTask,
  clientTaskIds,
  clientTasksPort,
  coreIds,
  type DetailedTask,
  getCoreTask,
  type ListTasksResult,
  listTasks,
  type Task,
  takingTasks,
  taskChanged,
  taskErrors,
  taskResult,
  taskStatus,
  tasksExtension,
} from './messages.ts'
import { cancelCore, detailedTask, look, result, wishedTtl } from './receiver.ts'
import { tableLimits } from './record.ts'
import { createdTask, finishTask, isTask, stopTask, type TaskPort, takesTask } from './requestor.ts'
import type { Runner } from './runner.ts'

interface Answering {
  readonly onSample?: unknown
  readonly onElicit?: unknown
}

/** Waits for calls that have become tasks, and runs what the server asks as tasks where the wire has that. */
export const tasksClient = defineClientFeature<object, ClientTasks, Answering>({
  name: 'tasks',
  provides: clientTasksPort,
  uses: [questionsPort],
  options: {},
  setup(kit, { onSample, onElicit }) {
    const questions = questionTasks({
      clock: kit.clock,
      sampling: onSample !== undefined,
      elicitation: onElicit !== undefined,
    })
    const { side } = questions
    const { handlers = [] } = tasksSide()
    return {
      port: clientTasks(kit),
      side: { ...side, handlers: [...(side.handlers ?? []), ...handlers] },
      ended: () => questions.close(),
    }
  },
})

const never = new AbortController().signal

function clientTasks(kit: ClientKit): ClientTasks {
  // Requests about tasks go the way of all calls: through middleware, and on to a new session when the old one is lost.
  const tasks = (): TaskPort => {
    const { session } = kit
    const core = coreIds.includes(session.opened.revision.id)
    return { engine: session.engine, core, request: (method, params, options) => session.request(method, params, options) }
  }
  return {
    takes: method => takesTask(kit.session.opened.conversation.peer, method),
    get decides() {
      const { revision, capabilities } = kit.session.opened
      return revision.era === 'request' && declared({ revision, capabilities }, tasksExtension) !== undefined
    },
    wantedBy: wantsTask,
    created: createdTask,
    finish: (task, options) => {
      const { signal = never } = options
      return finishTask(tasks(), task, { answer: request => kit.port(questionsPort).answer(request, signal), ...options, signal })
    },
    stop: ({ taskId }) => void stopTask(tasks(), taskId).catch(lost => kit.trace('task-not-cancelled', lost)),
    allow: allowingTask,
    progress: (tell, calls) => new TaskProgress(tell, calls),
  }
}

function allowingTask(send: SendOptions): SendOptions {
  const { declares } = send
  if (declares === undefined) return { ...send, declares: takingTasks }
  const said = declares['extensions'] as object | undefined
  return { ...send, declares: { ...declares, extensions: { ...said, ...takingTasks.extensions } } }
}

/** Hears of tasks where the server tells. The extension is declared with the calls that may become tasks, not with all. */
export function tasksSide(onTask?: (task: DetailedTask, exchange: Exchange) => void): Side {
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
function wantsTask(error: unknown): boolean {
  if (!(error instanceof McpError)) return false
  const required = property(error.data, 'requiredCapabilities')
  return isRecord(property(property(required, 'extensions'), tasksExtension))
}

function property(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined
}

// Progress of a call, also once it has become a task: by notifications under the call's token where the wire has that for tasks, else by
// what the task says of itself each time it is looked at.

const mostEarly = 100

/** One call's progress. */
class TaskProgress implements ClientTaskProgress {
  readonly #tell: (step: Progress) => void
  readonly #calls: () => Calls | undefined
  #stop: () => void = () => {}
  #last = Number.NEGATIVE_INFINITY
  #said: string | undefined
  #notified = false
  /** What came between the answer and its reading; undefined once the call is known to be a task. */
  #early: Progress[] | undefined = []

  constructor(tell: (step: Progress) => void, calls: () => Calls | undefined) {
    this.#tell = tell
    this.#calls = calls
  }

  /** What a request has to be sent with. The first that is told of it counts: a call that is made again has another token. */
  options({ onSent }: CallOptions): Pick<CallOptions, 'onProgress' | 'onSent'> {
    return {
      onProgress: step => this.#step(step),
      onSent: (id: Id) => {
        onSent?.(id)
        this.#stop()
        // Each request counts anew.
        this.#last = Number.NEGATIVE_INFINITY
        this.#stop =
          this.#calls()?.hear(id, step => {
            if (this.#early === undefined) this.#notify(step)
            else if (this.#early.length < mostEarly) this.#early.push(step)
          }) ?? (() => {})
      },
    }
  }

  /** The call has become a task: from here on its token outlives its answer. A call that has failed is told of no more. */
  begun(): void {
    const early = this.#early ?? []
    this.#early = undefined
    for (const step of early) this.#notify(step)
  }

  /** The task, as it was just looked at. */
  looked({ statusMessage }: Task): void {
    if (this.#notified || statusMessage === undefined || statusMessage === this.#said) return
    this.#said = statusMessage
    const found = progressFromText(statusMessage)
    this.#step('progress' in found ? found : { ...found, progress: Math.max(0, this.#last) + 1 })
  }

  end(): void {
    this.#stop()
  }

  #notify(step: Progress): void {
    this.#notified = true
    this.#step(step)
  }

  #step(step: Progress): void {
    if (!(step.progress > this.#last)) return
    this.#last = step.progress
    this.#tell(step)
  }
}

// A client that runs what its server asks as tasks (2025-11-25): the model and the user may take their time.

interface QuestionTasksOptions {
  readonly clock: Clock
  /** Whether there is a model to ask. */
  readonly sampling: boolean
  /** Whether there is a user to ask. */
  readonly elicitation: boolean
  readonly newId?: () => string
}

interface QuestionTasks {
  readonly side: Side
  /** Stops what runs: nobody can fetch it any more. */
  close(): void
}

/** All tasks here are those of the one server at the other end. */
const owner = 'server'
const facts = { support: 'optional', pollInterval: 500 } as const

function questionTasks({ clock, sampling, elicitation, newId = () => crypto.randomUUID() }: QuestionTasksOptions): QuestionTasks {
  const load = lazily(clock, newId)
  const offered = (): boolean => sampling || elicitation
  const answer = (method: Method, does: (runner: Runner, exchange: Exchange) => unknown): [Method, GatedHandler] => {
    return [
      { ...method, in: clientTaskIds },
      { offered, execute: async exchange => does(await load.runner(), exchange) },
    ]
  }
  return {
    close: load.close,
    side: {
      handlers: [
        answer(getCoreTask, look),
        answer(cancelCoreTask, cancelCore),
        answer(taskResult, result),
        answer(listTasks, list),
      ],
      layers: [
        {
          stage: 'execute',
          methods: [createMessage.name, elicit.name],
          in: clientTaskIds,
          when: ({ params }) => params['task'] !== undefined,
          run: async (exchange, next) => runAtOnce(exchange, facts, next, await load.runner(), wishedTtl(exchange)),
        },
      ],
      capabilities: ({ id }) => (clientTaskIds.includes(id) && offered() ? { tasks: capabilityOf(sampling, elicitation) } : {}),
      errors: taskErrors,
    },
  }
}

/** Most clients are never asked for a task: what runs them is loaded with the first. */
function lazily(clock: Clock, newId: () => string): { runner(): Promise<Runner>; close(): void } {
  let loading: Promise<Runner> | undefined
  let loaded: Runner | undefined
  const load = async (): Promise<Runner> => {
    const [{ Runner, taskLimits }, { memoryTasks }] = await Promise.all([import('./runner.ts'), import('./table.ts')])
    loaded = new Runner({ table: memoryTasks(clock), newId, limits: taskLimits, owner: () => owner, changed: () => {} })
    return loaded
  }
  return {
    runner: () => {
      loading ??= load()
      return loading
    },
    close: () => {
      if (loaded === undefined) loading?.then(runner => runner.close())
      else loaded.close()
    },
  }
}

function capabilityOf(sampling: boolean, elicitation: boolean): Readonly<Record<string, unknown>> {
  const requests = {
    ...(sampling ? { sampling: { createMessage: {} } } : {}),
    ...(elicitation ? { elicitation: { create: {} } } : {}),
  }
  return { list: {}, cancel: {}, requests }
}

/** All on one page: no more are kept. */
async function list({ table }: Runner, { engine, peer }: Exchange): Promise<ListTasksResult> {
  const { records } = await table.list(owner, peer.revision.id, { limit: tableLimits.tasksPerPrincipal })
  return { tasks: records.map(record => detailedTask(record, engine)) }
}
