/** Using tasks: from the answer that named one to the result of the call, in both forms. The caller sees only the end. */
import type { SendOptions } from '../../../engine/calls.ts'
import { type ClientKit, defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { questionsPort } from '../input-required/messages.ts'
import { finishTask } from './finish.ts'
import {
  type ClientTasks,
  clientTasksPort,
  coreIds,
  type DetailedTask,
  takingTasks,
  taskChanged,
  taskStatus,
  tasksExtension,
} from './messages.ts'
import { questionTasks } from './questions.ts'
import { createdTask, isTask, stopTask, type TaskPort, takesTask } from './requests.ts'
import { TaskProgress } from './task-progress.ts'

export { type FinishOptions, finishTask } from './finish.ts'
export { createdTask, pageOfTasks, portTo, readTask, stopTask, type TaskPort, takesTask } from './requests.ts'

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
