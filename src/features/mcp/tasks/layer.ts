/**
 * Makes tasks of calls: the answer is the task, and the handler works on. On the core form the
 * caller asks for it; with the extension the server decides, and a handler may first ask its questions within the call.
 */
import type { Progress } from '../../../engine/calls.ts'
import type { BackgroundSender, Exchange } from '../../../engine/exchange.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import type { Wire } from '../../../revisions/index.ts'
import { progress } from '../progress/messages.ts'
import { declaresTasks, requireExtension, setTaskStarter } from './current.ts'
import { coreTaskRevisions, type TaskFacts, workAfterAnswer } from './messages.ts'
import { created, related, wishedTtl } from './receiver.ts'
import type { Runner } from './runner.ts'
import { canNotifyCreator, type RunningTask } from './running.ts'

/** Runs a call that is, or may become, a task. `facts` is what its tool says of that; undefined: it never is one. */
export function runTask(exchange: Exchange, next: Next, facts: TaskFacts | undefined, runner: Runner): Awaitable<unknown> {
  return (coreTaskRevisions.includes(exchange.peer.revision.id) ? asked : decided)(exchange, facts, next, runner)
}

/** Core form: the caller asks for a task. */
function asked(exchange: Exchange, facts: TaskFacts | undefined, next: Next, runner: Runner) {
  const wish = exchange.params['task']
  const name = clip(exchange.params['name'] as string)
  if (wish === undefined) {
    if (facts?.support === 'required')
      throw new McpError('task-support', `The tool "${name}" runs only as a task; send params.task`)
    return next()
  }
  if (facts === undefined) throw new McpError('task-support', `The tool "${name}" does not run as a task; remove params.task`)
  return runAtOnce(exchange, facts, next, runner, wishedTtl(exchange))
}

/** The extension: a caller that declared it may get a task. */
function decided(exchange: Exchange, facts: TaskFacts | undefined, next: Next, runner: Runner) {
  if (facts === undefined) return next()
  if (facts.support === 'required') requireExtension(exchange)
  if (!declaresTasks(exchange)) return next()
  if (exchange.caller.ephemeral === true && !runner.table.durable) {
    if (facts.support === 'optional') return next()
    throw new McpError(
      'internal',
      'Tasks need a shared store because another instance may receive the next request. Give createServer the option store',
    )
  }
  return facts.deferred === true ? onWord(exchange, facts, next, runner) : runAtOnce(exchange, facts, next, runner, undefined)
}

/** The answer is the task; the work begins when it is out. */
export async function runAtOnce(
  exchange: Exchange,
  facts: TaskFacts,
  next: Next,
  runner: Runner,
  ttl: number | undefined,
): Promise<Wire> {
  const { record, task } = await runner.begin(exchange, facts, ttl)
  exchange.detach(backgroundSenderOf(task))
  exchange.set(
    workAfterAnswer,
    answered(exchange).then(() => runner.work(task, next)),
  )
  return created(record)
}

/** Runs the handler in the call; when it gives the word, the task is the call's answer and the same run goes on. */
function onWord(exchange: Exchange, facts: TaskFacts, next: Next, runner: Runner): Promise<unknown> {
  return new Promise<unknown>((resolve, reject) => {
    let begun: Promise<RunningTask> | undefined
    const begin = async (): Promise<RunningTask> => {
      const { record, task } = await runner.begin(exchange, facts, undefined)
      exchange.detach(backgroundSenderOf(task))
      exchange.set(workAfterAnswer, work)
      resolve(created(record))
      return task
    }
    setTaskStarter(exchange, async () => {
      begun ??= begin()
      await begun
      await answered(exchange)
    })
    const work = (async () => next())()
    const settle = (): void => {
      setTaskStarter(exchange, undefined)
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

/**
 * The extension has neither progress nor log messages for tasks; the core form sends them beside the answer, named as the task's. In
 * both the task says how far it is by its status message, for those who look at it.
 */
function backgroundSenderOf(task: RunningTask): BackgroundSender {
  return (method, params) => {
    if (method.name === progress.name) task.progressed(progressText(params as unknown as Progress))
    return (
      canNotifyCreator(task) &&
      task.exchange.engine.notify(task.exchange.conversation, method, { ...params, _meta: related(task.id) })
    )
  }
}

// How far a task is, as its status message says it: `2/3 step 2`. Task wires without progress notifications have nothing else for it, and
// people read it as well.

/** Progress as the status message of a task; `progressFromText` reads it. */
export function progressText({ progress, total, message }: Progress): string {
  const count = total === undefined ? `${progress}` : `${progress}/${total}`
  return clip(message === undefined ? count : `${count} ${message}`, 1_000)
}

/** What a status message says of it; of one that begins with no number only its words. */
export function progressFromText(text: string): Progress | { readonly message: string } {
  const [, progress, total, message] = /^(\d+(?:\.\d+)?)(?:\/(\d+(?:\.\d+)?))?(?:\s+([\s\S]+))?$/.exec(text) ?? []
  if (progress === undefined) return { message: text }
  return {
    progress: Number(progress),
    ...(total !== undefined && { total: Number(total) }),
    ...(message !== undefined && { message }),
  }
}
