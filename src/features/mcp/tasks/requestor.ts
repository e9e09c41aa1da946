/** Asking the client for an answer as a task, where it runs such tasks (2025-11-25); where it does not, by a plain request. */
import { durationText, toMilliseconds } from '../../../core/clock.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { number, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Peer, Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'
import { type InputRequest, isInputRequired } from '../input-required/messages.ts'
import type { CallToolResult } from '../tools/messages.ts'
import {
  cancelCoreTask,
  cancelTask,
  coreTaskRevisions,
  type DetailedTask,
  fromCore,
  getCoreTask,
  getTask,
  inputResponse,
  isTerminal,
  relatedTaskKey,
  type Task,
  type TaskWish,
  taskResult,
  updateTask,
} from './messages.ts'

/** Asks the client, as a task where its revision lets it answer so. */
export async function askThroughTask(
  { engine, conversation, peer }: Exchange,
  method: Method,
  params: Params,
  options: SendOptions,
  wish: TaskWish,
): Promise<unknown> {
  if (!takesTask(peer, method.name)) return engine.call(conversation, method, params, options)
  const ttl = typeof wish === 'object' ? wish.ttl : undefined
  const task = ttl === undefined ? {} : { ttl: toMilliseconds(ttl, 'task.ttl') }
  const answer = await engine.call(conversation, method, { ...params, task }, options)
  const created = createdTask(answer)
  if (created === undefined) return answer
  const { lane, signal, timeoutMs } = options
  const port = taskRequesterFor(engine, conversation)
  // Whatever is said about the task goes the way of the question: on the stream of the call that asks.
  const along = lane === undefined ? {} : { lane }
  const request: TaskRequester['request'] = (about, what, more) => port.request(about, what, { ...more, ...along })
  return finishTask({ ...port, request }, created, { signal, totalMs: timeoutMs })
}

// The requests of both forms as one: which of the two it is depends on the wire of the conversation.

/** The way to whoever runs the tasks: the same for both roles, and whatever the caller's requests go through. */
export interface TaskRequester {
  readonly engine: Engine
  /** Which of the two forms the wire has. */
  readonly core: boolean
  request<P, R>(method: Method<P, R>, params: P, options?: SendOptions): Promise<R>
}

/** Straight to the other end of a conversation. */
export function taskRequesterFor(engine: Engine, conversation: Conversation): TaskRequester {
  return {
    engine,
    core: conversation.peer !== undefined && coreTaskRevisions.includes(conversation.peer.revision.id),
    request: (method, params, options) => engine.call(conversation, method, params, options),
  }
}

/** The task as it is now, in either form. */
export async function readTask(port: TaskRequester, taskId: string, options?: SendOptions): Promise<DetailedTask> {
  const task: DetailedTask = await port.request(port.core ? getCoreTask : getTask, { taskId }, options)
  return checkedTask(task)
}

/** Asks for a task's end. With the extension that is a wish: the task may still end otherwise. */
export async function stopTask(port: TaskRequester, taskId: string, options?: SendOptions): Promise<void> {
  if (port.core) await port.request(cancelCoreTask, { taskId }, options)
  else await port.request(cancelTask, { taskId }, options)
}

/** Whether a peer takes `params.task` with this request (core form). */
export function takesTask(peer: Peer | undefined, method: string): boolean {
  if (peer === undefined || !coreTaskRevisions.includes(peer.revision.id)) return false
  let found: unknown = peer.capabilities['tasks']
  for (const name of ['requests', ...method.split('/')]) found = isRecord(found) ? found[name] : undefined
  return isRecord(found)
}

/** The task that an answer names, in either form; undefined when the answer is the request's own. */
export function createdTask(result: unknown): Task | undefined {
  if (!isRecord(result)) return undefined
  if (result['resultType'] === 'task') {
    const { resultType, _meta, ...task } = result
    return checkedTask(task)
  }
  const nested = result['task']
  return isRecord(nested) && result['content'] === undefined ? checkedTask(fromCore(nested)) : undefined
}

const shape = object({
  taskId: string,
  status: string,
  statusMessage: optional(string),
  pollIntervalMs: optional(number),
  inputRequests: optional(record),
  result: optional(record),
  error: optional(object({ code: number, message: string })),
})

/** Whether a value is a task with whatever its state brings. */
export function isTask(value: unknown): value is Wire & DetailedTask {
  if (shape.check(value) !== undefined) return false
  const { ttlMs } = value as Wire
  return ttlMs === null || ttlMs === undefined || typeof ttlMs === 'number'
}

function checkedTask(task: unknown): DetailedTask {
  if (isTask(task)) return task
  throw new McpError('invalid-answer', `The server returned a malformed task: ${echo(task)}`)
}

// Waiting for a task: looking again and again as its server wishes, answering what it asks, cancelling it when given up.

/** How to wait for a task. */
interface FinishOptions {
  /** Aborted: the task is cancelled, and the wait ends with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Answers a question with the bare result of its method. Where questions are requests of their own it is not used. */
  readonly answer?: ((request: InputRequest, key: string) => Awaitable<unknown>) | undefined
  /** Called after each look. */
  readonly onStatus?: ((task: Task) => void) | undefined
  /** How long to wait in all. Default: as long as the task is kept, a day at most. */
  readonly totalMs?: number | undefined
  /** Between two looks, whatever the server wishes. */
  readonly leastPollMs?: number
  readonly mostPollMs?: number
}

const dayMs = 86_400_000
/** Questions that one task may ask; one that never ends is no task but a trap. */
const maxQuestions = 1_000

/** Waits for the end of the task that a call has become and gives the call's result; a failure is thrown. */
export async function finishTask(port: TaskRequester, created: Task, options: FinishOptions = {}): Promise<CallToolResult> {
  const { engine } = port
  const { signal } = options
  const stop = new AbortController()
  const waitMs = options.totalMs ?? Math.min(created.ttlMs ?? dayMs, dayMs)
  const late = new McpError(
    'timeout',
    `The task did not end within ${durationText(waitMs)} and was cancelled; if it may take longer, raise the timeout of the call`,
  )
  const deadline = engine.deadlines.add(engine.clock.now() + waitMs, () => stop.abort(late))
  const aborted = (): void => stop.abort(signal?.reason)
  signal?.addEventListener('abort', aborted, { once: true })
  const wait = new Wait(port, created, options, stop, engine.clock.now() + waitMs)
  try {
    // Given up before anybody waited: the server works on it all the same.
    if (signal?.aborted === true) aborted()
    stop.signal.throwIfAborted()
    return await (port.core ? wait.core() : wait.extension())
  } catch (error) {
    if (!stop.signal.aborted) throw error
    // Nobody waits for it any more; whether the server hears that changes nothing here.
    stopTask(port, created.taskId).catch(lost => engine.trace('task-not-cancelled', lost))
    throw stop.signal.reason
  } finally {
    engine.deadlines.cancel(deadline)
    signal?.removeEventListener('abort', aborted)
  }
}

/** What kind of result it is was for the wire to say. */
function plain(result: CallToolResult): CallToolResult {
  if (!isRecord(result)) throw new McpError('invalid-answer', `The result of the task is not an object but ${echo(result)}`)
  return without(result as unknown as Wire, 'resultType') as unknown as CallToolResult
}

class Wait {
  readonly #port: TaskRequester
  readonly #options: FinishOptions
  readonly #stop: AbortController
  readonly #until: number
  readonly #asked = new Set<string>()
  #task: DetailedTask

  constructor(port: TaskRequester, task: Task, options: FinishOptions, stop: AbortController, until: number) {
    this.#port = port
    this.#task = task
    this.#options = options
    this.#stop = stop
    this.#until = until
  }

  /** Everything is in the task: questions, result, failure. */
  async extension(): Promise<CallToolResult> {
    while (!isTerminal(this.#task.status)) {
      await this.#look()
      for (const [key, request] of Object.entries(this.#task.inputRequests ?? {})) {
        // The user may take longer than the next look; the answer goes out when it is there.
        if (this.#isNew(key)) this.#respond(key, request).catch(error => this.#stop.abort(error))
      }
    }
    const { status, result, error, statusMessage } = this.#task
    if (status === 'completed' && result !== undefined) return plain(result)
    if (error !== undefined)
      throw new McpError('remote', clip(error.message, 1000), {
        code: error.code,
        ...(error.data === undefined ? {} : { data: error.data }),
      })
    throw new McpError(
      status === 'cancelled' ? 'task-cancelled' : 'invalid-answer',
      clip(statusMessage ?? `The task ended as ${status} without a result`, 1000),
    )
  }

  /** The result is fetched; while that blocks the server asks by requests of its own, or answers with its questions. */
  async core(): Promise<CallToolResult> {
    for (;;) {
      do await this.#look()
      while (this.#task.status === 'working')
      const result = await this.#port.request(taskResult, { taskId: this.#task.taskId }, this.#blocking())
      if (!isInputRequired(result)) return plain(result)
      const answers: Record<string, unknown> = {}
      for (const [key, request] of Object.entries(result.inputRequests ?? {}))
        if (this.#isNew(key)) answers[key] = await this.#answer(key, request)
      const meta = { [relatedTaskKey]: { taskId: this.#task.taskId } }
      await this.#port.request(inputResponse, { inputResponses: answers }, { signal: this.#stop.signal, meta })
    }
  }

  /** After the time that the server wishes for, within bounds. */
  async #look(): Promise<void> {
    const { leastPollMs = 50, mostPollMs = 60_000, onStatus } = this.#options
    const wish = this.#task.pollIntervalMs ?? 1_000
    await this.#pause(Math.min(Math.max(wish, leastPollMs), mostPollMs))
    this.#task = await readTask(this.#port, this.#task.taskId, { signal: this.#stop.signal })
    onStatus?.(this.#task)
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stop
    return new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const aborted = (): void => {
        cancel()
        reject(signal.reason)
      }
      const cancel = this.#port.engine.clock.setTimeout(() => {
        signal.removeEventListener('abort', aborted)
        resolve()
      }, ms)
      signal.addEventListener('abort', aborted, { once: true })
    })
  }

  /** Keys are never used twice, so one that was seen is the same question again. */
  #isNew(key: string): boolean {
    if (this.#asked.has(key)) return false
    if (this.#asked.size >= maxQuestions)
      throw this.#given(new McpError('invalid-answer', `The task asked more than ${maxQuestions} questions`))
    this.#asked.add(key)
    return true
  }

  async #respond(key: string, request: InputRequest): Promise<void> {
    const answer = await this.#answer(key, request)
    if (isTerminal(this.#task.status)) return
    const { taskId } = this.#task
    await this.#port.request(updateTask, { taskId, inputResponses: { [key]: answer } }, { signal: this.#stop.signal })
  }

  async #answer(key: string, request: InputRequest): Promise<unknown> {
    const { answer } = this.#options
    if (answer === undefined)
      throw this.#given(
        new McpError('capability-missing', `The task sent ${clip(request.method)}, which this client does not support`),
      )
    try {
      return await answer(request, key)
    } catch (error) {
      throw this.#given(error)
    }
  }

  /** Given up: the task is cancelled. */
  #given(error: unknown): unknown {
    this.#stop.abort(error)
    return error
  }

  #blocking(): { signal: AbortSignal; timeoutMs: number; totalMs: number } {
    const left = Math.max(1, this.#until - this.#port.engine.clock.now())
    return { signal: this.#stop.signal, timeoutMs: left, totalMs: left }
  }
}
