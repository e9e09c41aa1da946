/** Calls whose callers are away with questions: kept until they come back, and given up when they do not. */
import type { Clock } from '../../core/clock.ts'
import { Problem, type ProblemCode, type ProblemMore, problem } from '../../core/problem.ts'
import { exchangeOf } from '../../engine/context.ts'
import { carry, type Exchange } from '../../engine/exchange.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/api.ts'
import { append, type LogPosition, put, remove, type Store } from '../../stores/store.ts'
import { SlotShares, sharerOf } from '../shares.ts'
import { passedOn } from './failures.ts'
import { passOn, questionIn } from './questions.ts'
import { type CallParking, type EndedCall, type UpstreamCall, upstreamCallKey } from './upstream-call.ts'

/** How long the outcome of a call that was parked is kept for a caller whose connection broke over it. */
const keptMs = 60_000
const mostParked = 10_000

interface ParkedCallsOptions {
  readonly clock: Clock
  /** How long a caller may take over its answers. */
  readonly askMs: number
  /** Where callers may come back to another process. */
  readonly shared?: SharedParkedCalls | undefined
}

/** Keeps upstream calls open while their clients collect answers, and drops those whose client does not come back. */
export class ParkedCalls implements CallParking {
  readonly #options: ParkedCallsOptions
  readonly #upstreamCalls = new Map<string, UpstreamCall>()
  readonly #ends = new Map<string, () => void>()
  readonly #places = new SlotShares(mostParked)

  constructor(options: ParkedCallsOptions) {
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

  /** A name that no other call has, on any process. */
  name(): string {
    return this.#options.shared?.name() ?? crypto.randomUUID()
  }

  /** The caller is back with its answers, here or at another process than the one that made the call. */
  rejoin(name: string, ctx: Context): Promise<unknown> {
    const upstreamCall = this.#upstreamCalls.get(name)
    if (upstreamCall !== undefined) return upstreamCall.join(ctx)
    const { shared } = this.#options
    return shared === undefined ? Promise.reject(lost()) : shared.join(name, ctx)
  }

  /** Keeps a call until its caller comes back. Rejects where the caller has its share of parked calls. */
  park(upstreamCall: UpstreamCall): Awaitable<void> {
    const { name } = upstreamCall
    if (name === undefined) return
    if (!this.#upstreamCalls.has(name)) {
      if (!this.#places.take(sharerOf(upstreamCall.first.caller))) return this.#refuse(upstreamCall)
      this.#upstreamCalls.set(name, upstreamCall)
    }
    this.#within(name, this.#options.askMs, () => upstreamCall.stop('The caller did not come back with its answers'))
    return this.#options.shared?.save(upstreamCall, this.#options.askMs)
  }

  /** It is given up, and its caller hears why instead of what it is asked. */
  #refuse(upstreamCall: UpstreamCall): Promise<void> {
    const held = this.#places.of(sharerOf(upstreamCall.first.caller))
    const message = `${held} of your calls wait for your answers, which is your share: ${mostParked} may wait in all`
    upstreamCall.stop(message)
    return Promise.reject(problem('RATE_LIMIT_EXCEEDED', message, { retryAfter: 5_000, suggestion: 'Answer some of them first' }))
  }

  /** The caller is back: its call is not given up any more. */
  joined({ name = '' }: UpstreamCall): void {
    this.#ends.get(name)?.()
    this.#ends.delete(name)
  }

  /** Writes down what it asks, or how it ended, for the process at which the caller comes back. */
  changed(upstreamCall: UpstreamCall): void {
    const { name } = upstreamCall
    if (name === undefined || !this.#upstreamCalls.has(name)) return
    this.#options.shared?.save(upstreamCall, upstreamCall.ended === undefined ? this.#options.askMs : keptMs).catch(() => {})
    if (upstreamCall.ended !== undefined) this.#within(name, keptMs, () => {})
  }

  /** The caller has the outcome; it is kept for a while in case the connection broke. */
  ended({ name }: UpstreamCall): void {
    if (name === undefined || !this.#upstreamCalls.has(name)) return
    this.#within(name, keptMs, () => {})
    this.#options.shared?.drop(name).catch(() => {})
  }

  /** Their callers may not go on with them: what their upstreams asked is never answered. */
  withdraw(isOver: (first: Exchange) => boolean): void {
    for (const [name, upstreamCall] of this.#upstreamCalls) {
      if (!isOver(upstreamCall.first)) continue
      this.#ends.get(name)?.()
      this.#ends.delete(name)
      this.#upstreamCalls.delete(name)
      this.#places.leave(sharerOf(upstreamCall.first.caller))
      upstreamCall.stop('The caller may not make this call any more')
      this.#options.shared?.drop(name).catch(() => {})
    }
  }

  /** Gives up all calls that are parked. */
  async close(): Promise<void> {
    for (const cancel of this.#ends.values()) cancel()
    for (const upstreamCall of this.#upstreamCalls.values()) upstreamCall.stop('The gateway is closed')
    this.#upstreamCalls.clear()
    await this.#options.shared?.close()
  }

  /** Forgets a call after a time, unless that is put off again. */
  #within(name: string, ms: number, then: () => void): void {
    this.#ends.get(name)?.()
    const over = (): void => {
      this.#ends.delete(name)
      const upstreamCall = this.#upstreamCalls.get(name)
      if (upstreamCall !== undefined) this.#places.leave(sharerOf(upstreamCall.first.caller))
      this.#upstreamCalls.delete(name)
      then()
    }
    this.#ends.set(name, this.#options.clock.setTimeout(over, ms, true))
  }
}

/** What was parked is gone: with its process, or because nobody came for so long. */
function lost(): Error {
  return problem('OUTCOME_UNKNOWN', 'The call that this answers is no longer waited for; what came of it is not known', {
    suggestion: 'Look whether it was done before you call again',
  })
}

// What came of a call, as text for another process, and back.

/** One member of these, by what kind of outcome it is. */
type WrittenOutcome =
  | { readonly result: unknown }
  | { readonly mcp: { readonly kind: string; readonly message: string; readonly code?: number; readonly data?: unknown } }
  | { readonly connection: { readonly kind: ConnectionError['kind']; readonly message: string } }
  | { readonly problem: { readonly code: ProblemCode; readonly message: string; readonly more: ProblemMore } }
  | { readonly failed: string }

/** What is no error of ours keeps its message alone. */
function written(ended: EndedCall): WrittenOutcome {
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

/** Gives the result, or throws what was thrown. */
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

// Parked calls where several processes serve the same clients. The process that made a call keeps it; what it asks and what comes of
// it stand in the store, and the answers travel to it through a log of its own. It is there as long as it says so: what one that has
// gone had under way is not made again.

/** An answer on its way to the one who asked. */
interface Answered {
  readonly upstreamCall: string
  readonly key: string
  readonly said: WrittenOutcome
}

/** An open question as it is stored. */
interface Asked {
  readonly key: string
  readonly method: string
  readonly params: unknown
}

/** A parked call as it is stored. */
interface State {
  readonly questions: readonly Asked[]
  readonly ended?: WrittenOutcome
}

/** How long a process counts as there after it last said so, and how often it does. */
const leaseMs = 5_000
const renewMs = 1_500
/** A hint may get lost: this often it is looked at in any case. */
const lookMs = 500

const root = 'gateway/'

/** Lets a client answer at any process that shares the store with the one that made the upstream call. */
export class SharedParkedCalls {
  readonly #store: Store
  readonly #clock: Clock
  readonly #id = crypto.randomUUID()
  readonly #stop = new AbortController()
  #running: Promise<unknown> | undefined = undefined
  #tell: (answered: Answered) => void = () => {}

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Sets who is told of answers that arrive here. */
  answered(tell: (answered: Answered) => void): void {
    this.#tell = tell
  }

  name(): string {
    return `${this.#id}.${crypto.randomUUID()}`
  }

  /** Writes down what a call asks, or what came of it. From the first on this process says that it is there. */
  async save({ name = '', open, ended }: UpstreamCall, ttl: number): Promise<void> {
    const questions = [...open.values()].map(({ key, method, params }) => ({ key, method: method.name, params }))
    const state: State = { questions, ...(ended !== undefined && { ended: written(ended) }) }
    await this.#store.commit([
      put(stateKey(name), JSON.stringify(state), { ttl }),
      ...(this.#running === undefined ? [put(leaseKey(this.#id), '{}', { ttl: leaseMs })] : []),
    ])
    this.#running ??= Promise.allSettled([this.#renew(), this.#listen()])
  }

  /** Forgets a call that is over. */
  async drop(name: string): Promise<void> {
    await this.#store.commit([remove(stateKey(name))])
  }

  /** Brings the answers of a caller to the process that made its call, and what comes of it back. */
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
      carry(exchange, upstreamCallKey, name)
      const answers = await Promise.all(open.map(question => answerTo(exchange, question)))
      await this.#store.commit(
        answers.map(answer => append(answersLog(owner), JSON.stringify({ upstreamCall: name, ...answer }))),
      )
      for (const { key } of answers) sent.add(key)
    }
    signal.throwIfAborted()
    throw lost()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
    if (this.#running !== undefined) await this.#store.commit([remove(leaseKey(this.#id))]).catch(() => {})
  }

  /** Turns once at first, and whenever something may have changed there. */
  async *#looks(key: string, signal: AbortSignal): AsyncGenerator<void, void> {
    const ending = new AbortController()
    const hints = this.#store.watch([key], AbortSignal.any([signal, ending.signal, this.#stop.signal]))[Symbol.asyncIterator]()
    try {
      // Asked for before each look, so that what comes meanwhile is a hint for the next.
      let hint = hints.next()
      while (!signal.aborted && !this.#stop.signal.aborted) {
        yield
        if (await this.#soon(hint)) hint = hints.next()
      }
    } finally {
      ending.abort()
    }
  }

  /** False: there is none, and it is time to look anyway. */
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
      await this.#pause(renewMs)
      if (!signal.aborted) await this.#store.commit([put(leaseKey(this.#id), '{}', { ttl: leaseMs })]).catch(() => {})
    }
  }

  /** Reads the answers that other processes have taken for calls of this one. */
  async #listen(): Promise<void> {
    const log = answersLog(this.#id)
    let after: LogPosition = 0
    for await (const _ of this.#looks(log, this.#stop.signal)) {
      const entries = await this.#store.read(log, { after }).catch(() => [])
      for (const { position, value } of entries) {
        after = position
        this.#tell(JSON.parse(value) as Answered)
      }
    }
  }

  /** Ends early when this process closes. */
  #pause(ms: number): Promise<void> {
    const { signal } = this.#stop
    return new Promise(resolve => {
      const cancel = this.#clock.setTimeout(resolve, ms, true)
      const stop = (): void => {
        cancel()
        resolve()
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
    })
  }
}

/** What the caller says, or why it cannot say anything: the one who asks has to hear either. */
async function answerTo(exchange: Exchange, { key, ...request }: Asked): Promise<Omit<Answered, 'upstreamCall'>> {
  try {
    const { method, params } = questionIn(request)
    const result = await passOn(exchange, method, params, { key, signal: exchange.signal })
    return { key, said: { result } }
  } catch (error) {
    if (error instanceof McpError && error.kind === 'suspended') throw error
    return { key, said: written({ error: passedOn(error) }) }
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
