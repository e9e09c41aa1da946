/**
 * Parked calls where several processes serve the same clients. The process that made a call keeps it; what it asks and what comes of
 * it stand in the store, and the answers travel to it through a log of its own. It is there as long as it says so: what one that has
 * gone had under way is not made again.
 */

import type { Clock } from '../../core/clock.ts'
import { exchangeOf } from '../../engine/context.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Context } from '../../server/context.ts'
import type { LogPosition, Store } from '../../stores/store.ts'
import { append, put, remove } from '../../stores/store.ts'
import { passedOn } from './failures.ts'
import { lost, readWrittenOutcome, type WrittenOutcome, written } from './parked-calls.ts'
import { passOn, questionIn } from './questions.ts'
import { type UpstreamCall, upstreamCallKey } from './upstream-call.ts'

/** An answer on its way to the one who asked. */
interface Answered {
  readonly upstreamCall: string
  readonly key: string
  readonly said: WrittenOutcome
}

interface Asked {
  readonly key: string
  readonly method: string
  readonly params: unknown
}

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
      exchange.carried = { ...exchange.carried, [upstreamCallKey]: name }
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

  async #renew(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.#pause(renewMs)
      if (!signal.aborted) await this.#store.commit([put(leaseKey(this.#id), '{}', { ttl: leaseMs })]).catch(() => {})
    }
  }

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
