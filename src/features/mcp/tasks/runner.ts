/** The life of tasks: begun from a call, worked on in the background, ended by result, failure, cancel or time. */

import { callerAccount } from '../../../core/accounts.ts'
import { lifetimeMs, toMilliseconds } from '../../../core/clock.ts'
import { Occupancy, shareText, Tally } from '../../../core/occupancy.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { CallToolResult } from '../tools/messages.ts'
import { setCurrentTask } from './current.ts'
import { isTerminal, type TaskFacts } from './messages.ts'
import type { TaskRecord } from './record.ts'
import { RunningTask } from './running.ts'
import type { TaskTable } from './table.ts'

/** How long tasks may be kept, and how many may run. */
interface TaskLimits extends RunningLimitOptions {
  /** How long a task is kept, work included, when neither tool nor caller says. */
  readonly ttlMs: number
  /** The longest that a caller may ask for. */
  readonly maxTtlMs: number
  readonly pollMs: number
  /** JSON text of one result. */
  readonly resultBytes: number
}

/** The limits unless options say otherwise. */
export const taskLimits: TaskLimits = {
  ttlMs: 3_600_000,
  maxTtlMs: 86_400_000,
  pollMs: 1_000,
  resultBytes: 4 * 1024 * 1024,
  runningTasks: 500,
  runningTasksPerCaller: 64,
}

interface RunnerOptions {
  readonly table: TaskTable
  /** Makes ids that nobody can guess: where nobody is identified they are all that protects a task. */
  readonly newId: () => string
  readonly limits: TaskLimits
  /** Whose the tasks of a caller are. Default: its principal's, or else whoever knows the id. */
  readonly owner?: (exchange: Exchange) => string | undefined
  /** Told after each change of a task that runs here. */
  readonly changed: (record: TaskRecord, statusChanged: boolean, task: RunningTask) => void
}

type Change = (record: TaskRecord) => TaskRecord

/** How often a task that others may decide about is looked at. */
const mindMs = 500
/** Shorter lives would end before anybody can look. */
const leastTtlMs = 1_000

/** Runs calls as tasks: starts them, keeps their records current, cancels them and lets them ask. */
export class Runner {
  readonly table: TaskTable
  readonly #options: RunnerOptions
  readonly #running = new Map<string, RunningTask>()
  readonly #places: RunningTasks

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#places = new RunningTasks(options.limits)
    this.table = options.table
  }

  owner(exchange: Exchange): string | undefined {
    return this.#options.owner === undefined ? exchange.caller.principal?.id : this.#options.owner(exchange)
  }

  running(id: string): RunningTask | undefined {
    return this.#running.get(id)
  }

  /** Makes a task of a call. From here on the call's questions are the task's. */
  async begin(
    exchange: Exchange,
    facts: TaskFacts,
    wantedTtl: number | undefined,
  ): Promise<{ readonly record: TaskRecord; readonly task: RunningTask }> {
    const { engine, peer } = exchange
    const record: TaskRecord = {
      id: this.#options.newId(),
      owner: this.owner(exchange),
      account: callerAccount(exchange.caller),
      revision: peer.revision.id,
      status: 'working',
      createdAt: engine.clock.now(),
      updatedAt: engine.clock.now(),
      ttlMs: this.#ttl(facts, wantedTtl),
      pollMs:
        facts.pollInterval === undefined
          ? this.#options.limits.pollMs
          : Math.max(1, Math.round(toMilliseconds(facts.pollInterval))),
      questions: {},
      bytes: 0,
    }
    this.#places.take(exchange)
    try {
      await this.table.add(record)
    } catch (error) {
      this.#places.leave(exchange)
      throw error
    }
    const before = exchange.asking ?? engine.asking(exchange)
    const task = new RunningTask(record.id, exchange, before, running => this.#save(running))
    exchange.asking = task
    setCurrentTask(exchange, task)
    this.#running.set(record.id, task)
    engine.inFlight.detached.set(exchange, why => this.#withdraw(task, why))
    engine.deadlines.add(record.createdAt + record.ttlMs, () => this.#expire(engine, record.id))
    if (this.table.durable) this.#mind(task)
    return { record, task }
  }

  /** Other processes may be told of its end, or get the answers to its questions. */
  #mind(task: RunningTask): void {
    const { engine } = task.exchange
    const look = async (): Promise<void> => {
      if (task.over) return
      const record = await this.table.get(task.id)
      if (record === undefined || isTerminal(record.status))
        return task.closing ? undefined : this.#stop(task, 'The task has ended')
      for (const answers of task.questions.size === 0 ? [] : await this.table.take(task.id)) task.answer(answers)
    }
    const again = (): void => {
      if (!task.over) engine.clock.setTimeout(() => void look().catch(trouble).finally(again), mindMs, true)
    }
    const trouble = (error: unknown): void => engine.trace('task-not-minded', error)
    again()
  }

  /** Does the work of a task that has begun. */
  async work(task: RunningTask, next: Next): Promise<void> {
    const { exchange } = task
    // The caller was gone before it had its answer: nobody knows of the task.
    if (exchange.cancelled) return this.#finish(task, cancelled)
    let result: unknown
    try {
      result = await next()
    } catch (error) {
      return this.#finish(task, this.#refused(exchange, error))
    }
    return this.#finish(task, this.#completed(exchange.engine, result as CallToolResult))
  }

  /** The record when it was cancelled by this; undefined when it had ended before. */
  async cancel(engine: Engine, id: string): Promise<TaskRecord | undefined> {
    const task = this.#running.get(id)
    const after = await this.#apply(engine, id, cancelled)
    if (after !== undefined && task !== undefined) this.#stop(task, 'The task was cancelled')
    return after
  }

  close(): void {
    for (const task of [...this.#running.values()]) this.#stop(task, 'The server is closing')
  }

  #ttl(facts: TaskFacts, wanted: number | undefined): number {
    const { ttlMs, maxTtlMs } = this.#options.limits
    const own = facts.ttl === undefined ? ttlMs : toMilliseconds(facts.ttl)
    const mostMs = Math.max(maxTtlMs, own)
    return Math.max(leastTtlMs, lifetimeMs(wanted === undefined ? undefined : Math.round(wanted), { mostMs, defaultMs: own }))
  }

  /** A failure may be a result that says so. */
  #refused(exchange: Exchange, error: unknown): Change {
    const { engine, route } = exchange
    const instead = route.recover?.(exchange, error)
    return instead === undefined ? failed(engine, error) : this.#completed(engine, instead as CallToolResult)
  }

  #completed(engine: Engine, result: CallToolResult): Change {
    const { resultBytes } = this.#options.limits
    let bytes: number
    try {
      bytes = JSON.stringify(result).length
    } catch (cause) {
      return failed(engine, new McpError('internal', 'The result cannot be serialised as JSON', { cause }))
    }
    if (bytes <= resultBytes) return record => ({ ...record, status: 'completed', result, bytes })
    return failed(engine, new McpError('internal', `The result has ${bytes} characters; the limit for tasks is ${resultBytes}`))
  }

  async #finish(task: RunningTask, change: Change): Promise<void> {
    if (task.closing) return
    const { engine } = task.exchange
    task.close()
    await task.saved
    try {
      await this.#apply(engine, task.id, change)
    } catch (error) {
      await this.#apply(engine, task.id, failed(engine, error)).catch(again => engine.trace('task-lost', again))
    }
    this.#forget(task)
  }

  #stop(task: RunningTask, reason: string): void {
    task.exchange.stop(reason)
    task.close()
    this.#forget(task)
  }

  /** Its caller may not have this done any more. */
  #withdraw(task: RunningTask, why: Error): void {
    const { engine } = task.exchange
    this.#apply(engine, task.id, this.#refused(task.exchange, why)).catch(error => engine.trace('task-not-saved', error))
    this.#stop(task, why.message)
  }

  /** Its place is free at once, whatever its handler still does. */
  #forget(task: RunningTask): void {
    if (this.#running.delete(task.id)) {
      this.#places.leave(task.exchange)
      task.exchange.engine.inFlight.detached.delete(task.exchange)
      this.table.left(task.id)
    }
    task.end()
  }

  async #expire(engine: Engine, id: string): Promise<void> {
    const task = this.#running.get(id)
    try {
      await this.table.delete(id)
    } catch (error) {
      engine.trace('task-not-deleted', error)
    }
    if (task !== undefined) this.#stop(task, 'The task took longer than its ttl')
  }

  /**
   * Writes what the task is at this moment, after what it was before: whoever is told of its status misses no step, however slow the table.
   * Never rejects: a table that fails for a moment must not fail the work.
   */
  #save(task: RunningTask): Promise<unknown> {
    const { engine } = task.exchange
    const state = {
      status: task.questions.size > 0 ? ('input_required' as const) : ('working' as const),
      questions: Object.fromEntries([...task.questions].map(([key, { request }]) => [key, request])),
      ...(task.message === undefined ? {} : { message: task.message }),
    }
    return task.saved
      .then(() => this.#apply(engine, task.id, record => ({ ...record, ...state })))
      .catch(error => engine.trace('task-not-saved', error))
  }

  async #apply(engine: Engine, id: string, change: Change): Promise<TaskRecord | undefined> {
    const task = this.#running.get(id)
    let before: TaskRecord | undefined
    const after = await this.table.change(id, record => {
      before = record
      return { ...change(record), updatedAt: engine.clock.now() }
    })
    if (after !== undefined && task !== undefined) this.#options.changed(after, after.status !== before?.status, task)
    return after
  }
}

const cancelled: Change = record => ({ ...record, status: 'cancelled', questions: {}, message: 'The task was cancelled' })

function failed(engine: Engine, thrown: unknown): Change {
  const { kind, message, data, code, cause } = McpError.from(thrown)
  if (kind === 'internal') engine.trace('internal', cause ?? thrown)
  const error: TaskRecord['error'] = {
    kind,
    message,
    ...(data === undefined ? {} : { data }),
    ...(code === undefined ? {} : { code }),
  }
  return record => ({ ...record, status: 'failed', error, message: clip(message, 200) })
}

// How many tasks are at work: per user, else per session or connection, and in all.

interface RunningLimitOptions {
  /** Tasks at work in all. */
  readonly runningTasks: number
  /** Tasks at work per principal, else per session or connection. */
  readonly runningTasksPerCaller: number
}

class RunningTasks {
  readonly #limits: RunningLimitOptions
  readonly #owners = new Tally<object | string>()
  readonly #places: Occupancy
  readonly #accounts = new WeakMap<Exchange, string>()

  constructor(limits: RunningLimitOptions) {
    this.#limits = limits
    this.#places = new Occupancy(limits.runningTasks)
  }

  /** Throws a busy refusal when there is none left. */
  take(exchange: Exchange): void {
    const { runningTasks, runningTasksPerCaller } = this.#limits
    const owner = ownerOf(exchange)
    if (owner !== undefined && this.#owners.of(owner) >= runningTasksPerCaller)
      throw full(`${runningTasksPerCaller} of your tasks are running, which is the limit (runningTasksPerCaller)`)
    const account = callerAccount(exchange.caller)
    const refusal = this.#places.refusal(account)
    if (refusal === 'share') throw full(`${shareText(`${runningTasks} tasks that may run`)} (runningTasks)`)
    if (refusal !== undefined) throw full(`${runningTasks} tasks are running, which is the limit (runningTasks)`)
    this.#places.enter(account)
    // Kept, because a socket forgets its address when it is closed.
    this.#accounts.set(exchange, account)
    if (owner !== undefined) this.#owners.add(owner, 1)
  }

  leave(exchange: Exchange): void {
    const owner = ownerOf(exchange)
    this.#places.leave(this.#accounts.get(exchange) ?? callerAccount(exchange.caller))
    if (owner !== undefined) this.#owners.add(owner, -1)
  }
}

/** Undefined where nothing tells one caller from another: only the total holds for those. */
function ownerOf({ caller, conversation }: Exchange): object | string | undefined {
  if (caller.principal !== undefined) return callerAccount(caller)
  return conversation.connection === undefined && conversation.session === undefined ? undefined : conversation
}

const waitMs = 1_000

function full(what: string): McpError {
  const message = `${what}; retry in ${waitMs} ms, or cancel a task`
  return new McpError('busy', message, { data: { retryAfterMs: waitMs } })
}
