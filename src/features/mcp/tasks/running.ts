/**
 * A task at work in this process: the questions it has open, and who waits for it to change. To the handler it is the way to
 * ask, whatever the wire: by `tasks/update`, by a request on the stream of `tasks/result`, or by the draft's input response.
 */
import { type AskOptions, capabilityMissing, type QuestionChannel, type QuestionSender } from '../../../engine/asking.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import { stepsDown } from '../../../revisions/index.ts'
import type { InputRequest } from '../input-required/messages.ts'

/** One open question. */
export interface TaskQuestion {
  readonly method: Method
  /** Canonical. */
  readonly params: Params
  /** As the task's wire writes it inside a state or result. */
  readonly request: InputRequest
  /** Whether an answer has the form of the method's result. */
  readonly accepts: (answer: unknown) => boolean
  /** Sends the question in a way of its own. */
  readonly by: QuestionSender | undefined
  /** Somebody has been asked by a request of its own and may still answer. */
  asked: boolean
  resolve(answer: unknown): void
  reject(error: unknown): void
}

/** The least time between two writes of how far a task is. */
const progressMs = 250

/** A task while its call runs in this process: its open questions, and who watches it. */
export class RunningTask implements QuestionChannel {
  readonly id: string
  readonly exchange: Exchange
  /** The call has its answer already: questions never take its place. */
  readonly pending = false
  readonly questions = new Map<string, TaskQuestion>()
  /** Settles when the table knows the questions that are open now. */
  saved: Promise<unknown> = Promise.resolve()
  /** On its way out: nothing can be asked any more. */
  closing = false
  /** Its record is final, or gone. */
  over = false
  /** Described by its handler. */
  message: string | undefined = undefined
  readonly #before: QuestionChannel
  readonly #save: (task: RunningTask) => Promise<unknown>
  readonly #used = new Set<string>()
  readonly #watchers = new Set<() => void>()
  #progress: string | undefined = undefined
  #toldAt = 0
  #late = false

  constructor(id: string, exchange: Exchange, before: QuestionChannel, save: (task: RunningTask) => Promise<unknown>) {
    this.id = id
    this.exchange = exchange
    this.#before = before
    this.#save = save
  }

  ask<P, R>(method: Method<P, R>, params: P, options: AskOptions): Promise<R> {
    const { revision } = this.exchange.peer
    if (!options.allowed || !method.in.includes(revision.id))
      return Promise.reject(capabilityMissing(method.name, options.requires))
    if (this.closing) return Promise.reject(ended())
    if (options.signal?.aborted === true) return Promise.reject(options.signal.reason)
    const down = stepsDown(method.paramsDown, revision)
    const wire = down === undefined ? (params as Params) : down(params as Params)
    const key = this.#key(options.key ?? options.kind, options.key === undefined)
    return new Promise<unknown>((resolve, reject) => {
      const release = this.#bounded(key, method, options)
      const settle = (act: () => void): void => {
        if (!this.questions.delete(key)) return
        release()
        act()
        this.touch()
      }
      this.questions.set(key, {
        method,
        params: params as Params,
        request: { method: method.name, params: wire },
        accepts: options.accepts,
        by: options.by,
        asked: false,
        resolve: answer => settle(() => resolve(answer)),
        reject: error => settle(() => reject(error)),
      })
      this.touch()
    }) as Promise<R>
  }

  /** What was done before the call became a task counts as done. */
  once<T>(key: string, fn: () => Awaitable<T>): Promise<T> {
    return this.#before.once(key, fn)
  }

  conclude(): Promise<unknown> {
    return Promise.reject(new McpError('internal', 'A task cannot end with questions'))
  }

  /** Takes answers by key. Keys that are not open are ignored; an answer to another question than the one asked is refused. */
  answer(responses: Params): void {
    const given: [TaskQuestion, unknown][] = []
    for (const [key, question] of this.questions) {
      if (!Object.hasOwn(responses, key)) continue
      if (!question.accepts(responses[key])) {
        throw new McpError(
          'invalid-params',
          `params.inputResponses["${clip(key)}"] is not an answer to ${question.request.method}`,
        )
      }
      given.push([question, responses[key]])
    }
    for (const [question, answer] of given) question.resolve(answer)
  }

  /** Calls `fn` whenever a question comes or goes and when the task is over, until the returned function is called. */
  watch(fn: () => void): () => void {
    this.#watchers.add(fn)
    return () => this.#watchers.delete(fn)
  }

  /** Something has changed: the table is told, then those who wait. */
  touch(): void {
    if (!this.closing) this.saved = this.#save(this)
    this.wake()
  }

  /** How far it is, for those who look; written now and then. What the handler has said of it in its own words stays. */
  progressed(text: string): void {
    if (this.message !== this.#progress) return
    const { clock } = this.exchange.engine
    const due = this.#toldAt + progressMs - clock.now()
    this.message = text
    this.#progress = text
    if (due <= 0) return this.#write()
    if (this.#late) return
    this.#late = true
    clock.setTimeout(() => this.#write(), due, true)
  }

  #write(): void {
    this.#late = false
    this.#toldAt = this.exchange.engine.clock.now()
    if (!this.over) this.touch()
  }

  /** Whoever still waits for an answer learns that none will come. */
  close(): void {
    this.closing = true
    for (const question of [...this.questions.values()]) question.reject(ended())
  }

  end(): void {
    this.over = true
    this.wake()
  }

  wake(): void {
    for (const fn of [...this.#watchers]) fn()
  }

  /** A key is never used twice in a task's life. */
  #key(name: string, numbered: boolean): string {
    let count = 1
    let key = numbered ? `${name}-1` : name
    while (this.#used.has(key)) key = `${name}-${++count}`
    this.#used.add(key)
    return key
  }

  /** The handler may wait for less than the whole life of the task. */
  #bounded(key: string, method: Method, { signal, timeoutMs }: AskOptions): () => void {
    const { deadlines, clock } = this.exchange.engine
    const give = (error: unknown): void => this.questions.get(key)?.reject(error)
    const late = (): void =>
      give(new McpError('timeout', `No response to ${method.name} within ${timeoutMs} ms; raise timeoutMs if it may take longer`))
    const aborted = (): void => give(signal?.reason)
    const deadline = timeoutMs === undefined ? undefined : deadlines.add(clock.now() + timeoutMs, late)
    signal?.addEventListener('abort', aborted, { once: true })
    return () => {
      if (deadline !== undefined) deadlines.cancel(deadline)
      signal?.removeEventListener('abort', aborted)
    }
  }
}

/** Whether whoever made the task can be told something unasked: on a wire that knows its caller beyond one request, and a stream is open. */
export function canNotifyCreator({ exchange: { conversation, peer } }: RunningTask): boolean {
  const { connection, push } = conversation
  return conversation.peer?.revision === peer.revision && (connection !== undefined || push !== undefined)
}

function ended(): DOMException {
  return new DOMException('The task has ended', 'AbortError')
}
