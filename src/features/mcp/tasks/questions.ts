/** A client that runs what its server asks as tasks (2025-11-25): the model and the user may take their time. */
import type { Clock } from '../../../core/clock.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { elicit } from '../elicitation/messages.ts'
import { createMessage } from '../sampling/messages.ts'
import { tableLimits } from './eviction.ts'
import { runAtOnce } from './layer.ts'
import {
  cancelCoreTask,
  clientTaskIds,
  getCoreTask,
  type ListTasksResult,
  listTasks,
  taskErrors,
  taskResult,
} from './messages.ts'
import { cancelCore, look, result, wishedTtl } from './receiver.ts'
import type { Runner } from './runner.ts'
import { detailedTask } from './view.ts'

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

export function questionTasks({
  clock,
  sampling,
  elicitation,
  newId = () => crypto.randomUUID(),
}: QuestionTasksOptions): QuestionTasks {
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
      capabilities: ({ id }) => (clientTaskIds.includes(id) && offered() ? { tasks: declared(sampling, elicitation) } : {}),
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

function declared(sampling: boolean, elicitation: boolean): Readonly<Record<string, unknown>> {
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
