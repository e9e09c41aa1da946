/** Using tasks: from the answer that named one to the result of the call, in both forms. The caller sees only the end. */

import type { Clock } from '../../../core/clock.ts'
import type { CallOptions, Calls, Progress, SendOptions } from '../../../engine/calls.ts'
import { type ClientKit, defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Id, isRecord } from '../../../jsonrpc/message.ts'
import { elicit } from '../elicitation/messages.ts'
import { questionsPort } from '../input-required/messages.ts'
import { createMessage } from '../sampling/messages.ts'
import { loadedOnce } from './current.ts'
import { progressFromText, runAtOnce } from './layer.ts'
import {
  type ClientTaskProgress,
  type ClientTasks,
  cancelCoreTask,
  clientTaskRevisions,
  clientTasksPort,
  coreTaskRevisions,
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
import { answerTaskGet, answerTaskResult, cancelCore, detailedTask, wishedTtl } from './receiver.ts'
import { tableLimits } from './record.ts'
import { createdTask, finishTask, stopTask, type TaskRequester, takesTask } from './requestor.ts'
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
    const { side, close } = questionTasks(kit.clock, onSample !== undefined, onElicit !== undefined)
    return { port: clientTasks(kit), side, ended: close }
  },
})

const never = new AbortController().signal

function clientTasks(kit: ClientKit): ClientTasks {
  // Requests about tasks go the way of all calls: through middleware, and on to a new session when the old one is lost.
  const tasks = (): TaskRequester => {
    const { session } = kit
    const core = coreTaskRevisions.includes(session.opened.revision.id)
    return { engine: session.engine, core, request: (method, params, options) => session.request(method, params, options) }
  }
  return {
    takes: method => takesTask(kit.session.opened.conversation.peer, method),
    get decides() {
      const { revision, capabilities } = kit.session.opened
      return revision.era === 'request' && declaredSettings({ revision, capabilities }, tasksExtension) !== undefined
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

/** All tasks here are those of the one server at the other end. */
const owner = 'server'
const facts = { support: 'optional', pollInterval: 500 } as const

/** `sampling`, `elicitation`: whether there is a model, and a user, to ask. */
function questionTasks(clock: Clock, sampling: boolean, elicitation: boolean) {
  // Most clients are never asked for a task: what runs them is loaded with the first.
  const runner = loadedOnce(async () => {
    const [{ Runner, taskLimits }, { memoryTasks }] = await Promise.all([import('./runner.ts'), import('./table.ts')])
    const newId = () => crypto.randomUUID()
    return new Runner({ table: memoryTasks(clock), newId, limits: taskLimits, owner: () => owner, changed: () => {} })
  })
  const offered = (): boolean => sampling || elicitation
  const answer = (method: Method, does: (runner: Runner, exchange: Exchange) => unknown): [Method, GatedHandler] => {
    return [
      { ...method, in: clientTaskRevisions },
      { offered, execute: async exchange => does(await runner.load(), exchange) },
    ]
  }
  // Calls that have become tasks are looked at: what the server tells of them besides is not needed.
  const unheard = (): void => {}
  const side: Side = {
    handlers: [
      answer(getCoreTask, answerTaskGet),
      answer(cancelCoreTask, cancelCore),
      answer(taskResult, answerTaskResult),
      answer(listTasks, list),
      [taskStatus, unheard],
      [taskChanged, unheard],
    ],
    layers: [
      {
        stage: 'execute',
        methods: [createMessage.name, elicit.name],
        in: clientTaskRevisions,
        when: ({ params }) => params['task'] !== undefined,
        run: async (exchange, next) => runAtOnce(exchange, facts, next, await runner.load(), wishedTtl(exchange)),
      },
    ],
    capabilities: ({ id }) =>
      clientTaskRevisions.includes(id) && offered() ? { tasks: capabilityOf(sampling, elicitation) } : {},
    errors: taskErrors,
  }
  // What runs is stopped at the end: nobody can fetch it any more.
  return { side, close: runner.close }
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
