/**
 * Parked calls: upstream calls that stay open while their client collects the user's answers. `ParkedCalls` keeps those of this process;
 * `SharedParkedCalls` lets the client continue at another process that shares the store.
 */
import type { Clock } from '../../core/clock.ts'
import { Problem, type ProblemCode, type ProblemMore, problem } from '../../core/problem.ts'
import { pause } from '../../engine/backoff.ts'
import { exchangeOf } from '../../engine/context.ts'
import { addRetryState, type Exchange } from '../../engine/exchange.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/api.ts'
import { append, type LogPosition, put, remove, type Store } from '../../stores/store.ts'
import { SlotShares, sharerOf } from '../shares.ts'
import { translatedError } from './failures.ts'
import { askClient, questionIn } from './questions.ts'
import { type UpstreamCall, upstreamCallKey } from './upstream-call.ts'

/** How long the outcome is kept after the client received it, in case its connection broke. */
const retentionMs = 60_000
/** Parked calls of all clients together. */
const mostParked = 10_000

interface ParkedCallsOptions {
  readonly clock: Clock
  /** How long a client may take to answer. */
  readonly askMs: number
  /** Set where the client may continue at another process. */
  readonly shared?: SharedParkedCalls | undefined
}

/** Keeps upstream calls open while their clients collect answers, and drops those whose client does not come back. */
export class ParkedCalls {
  readonly #options: ParkedCallsOptions
  readonly #upstreamCalls = new Map<string, UpstreamCall>()
  readonly #ends = new Map<string, () => void>()
  readonly #places = new SlotShares(mostParked)

  constructor(options: ParkedCallsOptions) {
    // Answers that other processes received for calls of this process.
    this.#options = options
    options.shared?.answered(({ upstreamCall, key, said }) => {
      const question = this.#upstreamCalls.get(upstreamCall)?.open.get(key)
      try {
        question?.resolve(readWrittenOutcome(said))
      } catch (error) {
        question?.reject(error)
      }
    })
  }

  /** A name that is unique across processes. */
  name(): string {
    return this.#options.shared?.name() ?? crypto.randomUUID()
  }

  /** The client continues with its answers, here or at a process other than the one that made the call. */
  rejoin(name: string, ctx: Context): Promise<unknown> {
    const upstreamCall = this.#upstreamCalls.get(name)
    if (upstreamCall !== undefined) return upstreamCall.join(ctx)
    const { shared } = this.#options
    return shared === undefined ? Promise.reject(lost()) : shared.join(name, ctx)
  }

  /** Keeps a call until its client continues. Rejects where the client has reached its share of parked calls. */
  park(upstreamCall: UpstreamCall): Awaitable<void> {
    const { name } = upstreamCall
    if (name === undefined) return
    if (!this.#upstreamCalls.has(name)) {
      if (!this.#places.take(sharerOf(upstreamCall.first.caller))) return this.#refuse(upstreamCall)
      this.#upstreamCalls.set(name, upstreamCall)
    }
    this.#within(name, this.#options.askMs, () => upstreamCall.stop('The client did not return with the answers in time'))
    return this.#options.shared?.save(upstreamCall, this.#options.askMs)
  }

  /** Cancels the call and rejects with the reason, instead of sending the questions to the client. */
  #refuse(upstreamCall: UpstreamCall): Promise<void> {
    const held = this.#places.of(sharerOf(upstreamCall.first.caller))
    const message = `${held} of your calls wait for your answers, which is your share of the limit (${mostParked} for all clients)`
    upstreamCall.stop(message)
    return Promise.reject(
      problem('RATE_LIMIT_EXCEEDED', message, { retryAfter: 5_000, suggestion: 'Answer some of their questions first' }),
    )
  }

  /** The client is back: stops the timer. */
  joined({ name = '' }: UpstreamCall): void {
    this.#stopTimer(name)
  }

  #stopTimer(name: string): void {
    this.#ends.get(name)?.()
    this.#ends.delete(name)
  }

  /** Saves new questions, or the outcome, for the process at which the client continues. */
  changed(upstreamCall: UpstreamCall): void {
    const { name } = upstreamCall
    if (name === undefined || !this.#upstreamCalls.has(name)) return
    this.#options.shared?.save(upstreamCall, upstreamCall.ended === undefined ? this.#options.askMs : retentionMs).catch(() => {})
    if (upstreamCall.ended !== undefined) this.#within(name, retentionMs)
  }

  /** The client has received the outcome; it is kept for `retentionMs` in case the connection broke. */
  ended({ name }: UpstreamCall): void {
    if (name === undefined || !this.#upstreamCalls.has(name)) return
    this.#within(name, retentionMs)
    this.#options.shared?.drop(name).catch(() => {})
  }

  /** Cancels the calls whose clients have lost the right to make them. */
  withdraw(isOver: (first: Exchange) => boolean): void {
    for (const [name, upstreamCall] of this.#upstreamCalls) {
      if (!isOver(upstreamCall.first)) continue
      this.#forget(name, upstreamCall)
      upstreamCall.stop('The client is no longer allowed to make this call')
      this.#options.shared?.drop(name).catch(() => {})
    }
  }

  /** Cancels all parked calls. */
  async close(): Promise<void> {
    for (const cancel of this.#ends.values()) cancel()
    for (const upstreamCall of this.#upstreamCalls.values()) upstreamCall.stop('The gateway is shutting down')
    this.#upstreamCalls.clear()
    await this.#options.shared?.close()
  }

  #forget(name: string, { first }: UpstreamCall): void {
    this.#stopTimer(name)
    this.#upstreamCalls.delete(name)
    this.#places.leave(sharerOf(first.caller))
  }

  /** Starts or restarts the timer after which a call is forgotten and `then` runs, if given. */
  #within(name: string, ms: number, then?: () => void): void {
    this.#stopTimer(name)
    const over = (): void => {
      const upstreamCall = this.#upstreamCalls.get(name)
      if (upstreamCall !== undefined) this.#forget(name, upstreamCall)
      then?.()
    }
    this.#ends.set(name, this.#options.clock.setTimeout(over, ms, true))
  }
}

/** The parked call is gone: its process ended, or the client came back too late. */
function lost(): Error {
  return problem('OUTCOME_UNKNOWN', 'The call that these answers are for is no longer open. Its outcome is unknown', {
    suggestion: 'The call may have been executed: check before you repeat it',
  })
}

// Outcomes as JSON, so that they can cross processes.

/** Exactly one of these members, by the kind of the outcome. */
type WrittenOutcome =
  | { readonly result: unknown }
  | { readonly mcp: { readonly kind: string; readonly message: string; readonly code?: number; readonly data?: unknown } }
  | { readonly connection: { readonly kind: ConnectionError['kind']; readonly message: string } }
  | { readonly problem: { readonly code: ProblemCode; readonly message: string; readonly more: ProblemMore } }
  | { readonly failed: string }

/** Errors of other classes keep only their message. */
function written(ended: NonNullable<UpstreamCall['ended']>): WrittenOutcome {
  if ('result' in ended) return { result: ended.result }
  const { error } = ended
  if (error instanceof McpError) {
    const { kind, message, code, data } = error
    return { mcp: { kind, message, ...(code !== undefined && { code }), ...(data !== undefined && { data }) } }
  }
  if (error instanceof ConnectionError) return { connection: { kind: error.kind, message: error.message } }
  if (error instanceof Problem) {
    const { code, message, category, retryAfter, suggestion, actor, details } = error
    return { problem: { code, message, more: { category, retryAfter, suggestion, actor, details } } }
  }
  return { failed: error instanceof Error ? error.message : String(error) }
}

/** Returns the result, or throws the error. */
function readWrittenOutcome(ended: WrittenOutcome): unknown {
  if ('result' in ended) return ended.result
  if ('mcp' in ended) {
    const { kind, message, ...more } = ended.mcp
    throw new McpError(kind, message, more)
  }
  if ('connection' in ended) throw new ConnectionError(ended.connection.kind, ended.connection.message)
  if ('problem' in ended) throw new Problem(ended.problem.code, ended.problem.message, ended.problem.more)
  throw new Error(ended.failed)
}

// Parked calls with several processes. The process that made a call keeps it open. Its questions and outcome are in the store, and
// answers reach it through a log per process. A lease shows that the process lives; a call whose process is gone is never repeated.

/** A client's answer on its way to the process that owns the call. */
interface RelayedAnswer {
  readonly upstreamCall: string
  readonly key: string
  readonly said: WrittenOutcome
}

/** An open question, as it is stored. */
interface ParkedQuestion {
  readonly key: string
  readonly method: string
  readonly params: unknown
}

/** A parked call, as it is stored. */
interface State {
  readonly questions: readonly ParkedQuestion[]
  readonly ended?: WrittenOutcome
}

/** How long a lease lasts, and how often it is renewed. */
const leaseMs = 5_000
const renewMs = 1_500
/** Watch hints may get lost, so the store is also polled at this interval. */
const lookMs = 500

const root = 'gateway/'

/** Lets a client answer at any process that shares the store with the one that made the upstream call. */
export class SharedParkedCalls {
  readonly #store: Store
  readonly #clock: Clock
  readonly #id = crypto.randomUUID()
  readonly #stop = new AbortController()
  #running: Promise<unknown> | undefined = undefined
  #tell: (answered: RelayedAnswer) => void = () => {}

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Sets the callback for answers that arrive for calls of this process. */
  answered(tell: (answered: RelayedAnswer) => void): void {
    this.#tell = tell
  }

  /** Starts with the id of this process, so that others can find the owner of a call. */
  name(): string {
    return `${this.#id}.${crypto.randomUUID()}`
  }

  /** Stores the questions or the outcome of a call. The first save also starts the lease. */
  async save({ name = '', open, ended }: UpstreamCall, ttl: number): Promise<void> {
    const questions = [...open.values()].map(({ key, method, params }) => ({ key, method: method.name, params }))
    const state: State = { questions, ...(ended !== undefined && { ended: written(ended) }) }
    await this.#store.commit([
      put(stateKey(name), JSON.stringify(state), { ttl }),
      ...(this.#running === undefined ? [put(leaseKey(this.#id), '{}', { ttl: leaseMs })] : []),
    ])
    this.#running ??= Promise.allSettled([this.#renew(), this.#listen()])
  }

  /** Deletes a finished call. */
  async drop(name: string): Promise<void> {
    await this.#store.commit([remove(stateKey(name))])
  }

  /** Forwards a client's answers to the process that owns the call, and returns the call's outcome. */
  async join(name: string, ctx: Context): Promise<unknown> {
    const exchange = exchangeOf(ctx)
    const { signal } = exchange
    const [owner = ''] = name.split('.')
    const sent = new Set<string>()
    for await (const _ of this.#looks(stateKey(name), signal)) {
      const entry = await this.#store.get(stateKey(name))
      if (entry === undefined) throw lost()
      const { questions, ended } = JSON.parse(entry.value) as State
      if (ended !== undefined) return readWrittenOutcome(ended)
      if ((await this.#store.get(leaseKey(owner))) === undefined) throw lost()
      const open = questions.filter(({ key }) => !sent.has(key))
      if (open.length === 0) continue
      addRetryState(exchange, upstreamCallKey, name)
      const answers = await Promise.all(open.map(question => answerTo(exchange, question)))
      await this.#store.commit(
        answers.map(answer => append(answersLog(owner), JSON.stringify({ upstreamCall: name, ...answer }))),
      )
      for (const { key } of answers) sent.add(key)
    }
    signal.throwIfAborted()
    throw lost()
  }

  /** Stops the loops and gives up the lease. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
    if (this.#running !== undefined) await this.#store.commit([remove(leaseKey(this.#id))]).catch(() => {})
  }

  /** Yields once at the start, then after each change at the key or after each poll interval. */
  async *#looks(key: string, signal: AbortSignal): AsyncGenerator<void, void> {
    const ending = new AbortController()
    const hints = this.#store.watch([key], AbortSignal.any([signal, ending.signal, this.#stop.signal]))[Symbol.asyncIterator]()
    try {
      // Requested before the read, so that a change during the read is not missed.
      let hint = hints.next()
      while (!signal.aborted && !this.#stop.signal.aborted) {
        yield
        if (await this.#soon(hint)) hint = hints.next()
      }
    } finally {
      ending.abort()
    }
  }

  /** True when the hint arrives, false when the poll interval is over first. */
  async #soon(hint: Promise<unknown>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const cancel = this.#clock.setTimeout(() => resolve(false), lookMs, true)
    hint.then(
      () => resolve(true),
      () => {},
    )
    return promise.finally(cancel)
  }

  /** Renews the lease until this process closes. */
  async #renew(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await pause(this.#clock, renewMs, signal, true)
      if (!signal.aborted) await this.#store.commit([put(leaseKey(this.#id), '{}', { ttl: leaseMs })]).catch(() => {})
    }
  }

  /** Reads the answers that other processes received for calls of this process. */
  async #listen(): Promise<void> {
    const log = answersLog(this.#id)
    let after: LogPosition = 0
    for await (const _ of this.#looks(log, this.#stop.signal)) {
      const entries = await this.#store.read(log, { after }).catch(() => [])
      for (const { position, value } of entries) {
        after = position
        this.#tell(JSON.parse(value) as RelayedAnswer)
      }
    }
  }
}

/** The client's answer, or its error: the upstream needs one of them. */
async function answerTo(exchange: Exchange, { key, ...request }: ParkedQuestion): Promise<Omit<RelayedAnswer, 'upstreamCall'>> {
  try {
    const { method, params } = questionIn(request)
    const result = await askClient(exchange, method, params, { key, signal: exchange.signal })
    return { key, said: { result } }
  } catch (error) {
    // `suspended` carries the question to the client and is not an answer.
    if (error instanceof McpError && error.kind === 'suspended') throw error
    return { key, said: written({ error: translatedError(error) }) }
  }
}

function stateKey(name: string): string {
  return `${root}flight/${name}`
}

function leaseKey(id: string): string {
  return `${root}process/${id}`
}

function answersLog(id: string): string {
  return `${root}answers/${id}`
}
