/**
 * The layer on `tools/call` that makes tasks of calls: the answer is the task, and the handler works on. On the core form the
 * caller asks for it; with the extension the server decides, and a handler may first ask its questions within the call.
 */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Layer, Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Wire } from '../../../revisions/index.ts'
import { callTool } from '../tools/messages.ts'
import { declaresTasks, requireExtension } from './listen.ts'
import { coreIds, extensionIds, type TaskFacts } from './messages.ts'
import type { Runner } from './runner.ts'
import { hears, RunningTask } from './running.ts'
import type { TaskRecord } from './table.ts'
import { coreCreated, related, taskOf } from './view.ts'

export interface LayerOptions {
  readonly runner: Runner
  /** What a tool says of its tasks; undefined: it never is one. */
  readonly facts: (tool: string) => TaskFacts | undefined
  /** Whether tasks are declared at all; where they are not, a caller's wish for one is ignored. */
  readonly offered: () => boolean
}

export function taskLayer(options: LayerOptions): Layer {
  const { facts } = options
  const isCore = ({ peer }: Exchange): boolean => coreIds.includes(peer.revision.id)
  return {
    stage: 'execute',
    methods: [callTool.name],
    when: exchange => {
      const { params, peer } = exchange
      const core = isCore(exchange)
      if (!core && !extensionIds.includes(peer.revision.id)) return false
      return facts(params['name'] as string) !== undefined || (core && params['task'] !== undefined && options.offered())
    },
    run: (exchange, next) =>
      (isCore(exchange) ? asked : decided)(exchange, facts(exchange.params['name'] as string), next, options),
  }
}

/** How calls that wait for their handler's word become tasks. */
const starters = new WeakMap<Exchange, () => Promise<void>>()

/**
 * From here on the call goes on as a task, if it may: its caller has an answer, and what the handler asks is asked by the task.
 * False where the call stays a call.
 */
export async function background(exchange: Exchange): Promise<boolean> {
  if (exchange.asking instanceof RunningTask) return true
  const start = starters.get(exchange)
  if (start === undefined) return false
  exchange.signal.throwIfAborted()
  if (exchange.asking?.pending === true)
    throw new McpError('suspended', 'The call has asked something: it can not become a task before the answer')
  await start()
  return true
}

/** The task that this call has become, for its handler. */
export function currentTask({ asking }: Exchange): { readonly id: string; describe(message: string): void } | undefined {
  if (!(asking instanceof RunningTask)) return undefined
  return {
    id: asking.id,
    describe: message => {
      asking.message = clip(message, 1000)
      asking.touch()
    },
  }
}

/** Core form: the caller asks for a task. */
function asked(exchange: Exchange, facts: TaskFacts | undefined, next: Next, { runner }: LayerOptions) {
  const wish = exchange.params['task']
  const name = clip(exchange.params['name'] as string)
  if (wish === undefined) {
    if (facts?.support === 'required')
      throw new McpError('task-support', `The tool "${name}" runs only as a task; send params.task`)
    return next()
  }
  if (facts === undefined) throw new McpError('task-support', `The tool "${name}" does not run as a task; leave params.task out`)
  const ttl = isRecord(wish) ? wish['ttl'] : undefined
  if (!isRecord(wish) || (ttl !== undefined && !(Number.isSafeInteger(ttl) && (ttl as number) >= 0))) {
    throw new McpError('invalid-params', 'params.task must be an object; its ttl, if any, a whole number of milliseconds')
  }
  return atOnce(exchange, facts, next, runner, ttl as number | undefined)
}

/** The extension: a caller that declared it may get a task. */
function decided(exchange: Exchange, facts: TaskFacts | undefined, next: Next, { runner }: LayerOptions) {
  if (facts === undefined) return next()
  if (facts.support === 'required') requireExtension(exchange)
  if (!declaresTasks(exchange)) return next()
  if (exchange.caller.ephemeral === true && !runner.table.durable) {
    if (facts.support === 'optional') return next()
    throw new McpError('internal', 'Tasks need a store here: another instance may get the next request')
  }
  return facts.deferred === true ? onWord(exchange, facts, next, runner) : atOnce(exchange, facts, next, runner, undefined)
}

async function atOnce(exchange: Exchange, facts: TaskFacts, next: Next, runner: Runner, ttl: number | undefined): Promise<Wire> {
  const { record, task } = await runner.begin(exchange, facts, ttl)
  exchange.outlet = outletOf(task)
  answered(exchange).then(() => runner.work(task, next))
  return created(record)
}

/** Runs the handler in the call; when it gives the word, the task is the call's answer and the same run goes on. */
function onWord(exchange: Exchange, facts: TaskFacts, next: Next, runner: Runner): Promise<unknown> {
  return new Promise<unknown>((resolve, reject) => {
    let begun: Promise<RunningTask> | undefined
    const begin = async (): Promise<RunningTask> => {
      const { record, task } = await runner.begin(exchange, facts, undefined)
      exchange.outlet = outletOf(task)
      resolve(created(record))
      return task
    }
    starters.set(exchange, async () => {
      begun ??= begin()
      await begun
      await answered(exchange)
    })
    const work = (async () => next())()
    const settle = (): void => {
      starters.delete(exchange)
      if (begun === undefined) work.then(resolve, reject)
      // A task that could not begin leaves the call to its handler.
      else
        begun.then(
          task => runner.work(task, () => work),
          () => work.then(resolve, reject),
        )
    }
    work.then(settle, settle)
  })
}

/** One macrotask: the answer that names the task is out before anything is said of it. */
function answered({ engine }: Exchange): Promise<void> {
  return new Promise(resolve => engine.clock.setTimeout(resolve, 0))
}

function created(record: TaskRecord): Wire {
  return coreIds.includes(record.revision) ? coreCreated(record) : { resultType: 'task', ...taskOf(record) }
}

/** The extension has neither progress nor log messages for tasks; the core form sends them beside the answer, named as the task's. */
function outletOf(task: RunningTask): NonNullable<Exchange['outlet']> {
  return (method, params) =>
    hears(task) && task.exchange.engine.notify(task.exchange.conversation, method, { ...params, _meta: related(task.id) })
}
