/**
 * Requests that we sent and whose answers we await. A pending call is found by the exact id, type included: "7" does not
 * answer 7. Every call has a deadline, and progress may move it only up to a total.
 */
import { ConnectionError, type FrameFault, type Lane } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { type Id, isRecord, type Params } from '../jsonrpc/message.ts'
import type { Capabilities } from '../revisions/index.ts'
import { type PendingCall, PendingCalls } from './pending-calls.ts'

/** Work on whose behalf requests are made. */
export interface StoppableWork {
  /** Whether it was stopped. */
  readonly cancelled: boolean
  /** Aborted when it is stopped. */
  readonly signal: AbortSignal
  /** Calls `fn` once it is stopped; undefined removes the callback. */
  onStop(fn: (() => void) | undefined): void
}

/** Options of a request to the other side. */
export interface CallOptions {
  /** Cancels the request. */
  readonly signal?: AbortSignal
  /** The work that the request is made for: when it stops, the request is cancelled. Cheaper than a signal per request. */
  readonly behalf?: StoppableWork
  /** How long to wait for the answer or a sign of progress, in milliseconds. Default: `askTimeout` for questions of a server, else `limits.callTimeoutMs`. */
  readonly timeoutMs?: number
  /** How long to wait for the answer in total, in milliseconds, regardless of progress. Default: `limits.callTotalMs`, or `timeoutMs` if that is longer. */
  readonly totalMs?: number
  /** Called with each progress notification. */
  readonly onProgress?: (progress: Progress) => void
  /** Further members of `_meta`. A frozen object is serialised only once. */
  readonly meta?: Params
  /** Further capabilities to declare with this request, in revisions that declare them per request. */
  readonly declares?: Capabilities
  /** Further headers, on carriers that have them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Whether a cancellation is kept from the other side, which may not know the method yet. Default false. */
  readonly quiet?: boolean
  /** Called when the other side releases the connection while it continues to work. */
  readonly onReleased?: (retryMs: number | undefined) => void
  /** Called with the id of the request when it is sent. */
  readonly onSent?: (id: Id) => void
  /** Called with a result that arrives after the request was given up, on carriers that deliver one. */
  readonly onLate?: (result: unknown) => void
}

/** The same, with the lane that it goes out on. */
export interface SendOptions extends CallOptions {
  /** The lane to ask on; default: the conversation's connection or push lane. */
  readonly lane?: Lane
}

/** The progress of a request. */
export interface Progress {
  /** The progress so far. It increases with each notification. */
  readonly progress: number
  /** The value of `progress` at the end, if known. */
  readonly total?: number
  /** What is being done, for people. */
  readonly message?: string
}

/** Calls that were given up and whose results somebody still wants to hear of; beyond that the oldest are forgotten. */
const mostLate = 256

const raise = "this client's limit; raise limits.frameBytes if that is expected"

/** The requests of one conversation that we sent and that are not answered yet. */
export class Calls {
  readonly #pending = new PendingCalls<PendingCall>()
  #heard: Map<Id, (progress: Progress) => void> | undefined = undefined
  #late: Map<Id, (result: unknown) => void> | undefined = undefined
  #next: number

  /** Ids begin after `base`, so that those of several processes that ask in one session differ. */
  constructor(base = 0) {
    this.#next = base + 1
  }

  /** Whether anybody waits. */
  get open(): boolean {
    return this.#pending.all().length > 0
  }

  nextId(): number {
    return this.#next++
  }

  has(id: Id): boolean {
    return this.#pending.get(id) !== undefined
  }

  /** The lists in awaited answers whose entries stand each for itself. */
  entries(): ReadonlySet<string> {
    return new Set(this.#pending.all().flatMap(({ entries }) => (entries === undefined ? [] : [entries])))
  }

  /** Whether an answer under this id may come without some entries of that list. */
  spares(id: unknown, entries: string): boolean {
    return this.#pending.get(id as Id)?.entries === entries
  }

  add(pending: PendingCall): void {
    this.#pending.add(pending)
  }

  take(id: Id): PendingCall | undefined {
    const pending = this.#pending.get(id)
    if (pending === undefined) return undefined
    this.#pending.delete(id)
    pending.release()
    return pending
  }

  /** The call was given up: its result, should it come all the same, is told to somebody. */
  onLateResult(id: Id, told: (result: unknown) => void): void {
    this.#late ??= new Map()
    if (this.#late.size >= mostLate) this.#late.delete(this.#late.keys().next().value as Id)
    this.#late.set(id, told)
  }

  #settleLate({ id, error, result }: Readonly<Record<string, unknown>>): boolean {
    const told = this.#late?.get(id as Id)
    if (told === undefined) return false
    this.#late?.delete(id as Id)
    if (error === undefined && isRecord(result)) told(legible(result))
    return true
  }

  /** A message without a method. False when nobody waits for it: an answer to nothing is dropped and counted. */
  settle(message: Readonly<Record<string, unknown>>, status: number | undefined): boolean {
    const pending = this.take(message['id'] as Id)
    if (pending === undefined) return this.#settleLate(message)
    const { error, result } = message
    if (error !== undefined && result !== undefined && result !== null)
      pending.reject(new McpError('invalid-result', 'The response has both a result and an error'))
    else if (error !== undefined) pending.reject(received(error, status))
    else if (!('result' in message))
      pending.reject(new McpError('invalid-result', 'The response has neither a result nor an error'))
    else pending.resolve(legible(result))
    return true
  }

  fail(id: Id, error: Error): void {
    this.take(id)?.reject(error)
  }

  /** The other end is done with a request that lasts. */
  end(id: Id, error: Error): void {
    if (this.#pending.get(id)?.lasting === true) this.fail(id, error)
  }

  failAll(error: Error): void {
    for (const { id } of this.#pending.all()) this.fail(id, error)
  }

  /** What came was refused unread: nobody is to wait long for an answer that it was, or may have been. */
  unread({ kind, answers }: FrameFault, most: number): void {
    if (answers === undefined) return
    if (kind === 'too-large') {
      const error = new ConnectionError('too-large', `The response is longer than ${most} bytes, ${raise}`)
      if (answers === 'any') this.failAll(error)
      else this.fail(answers.id, error)
      return
    }
    const error = new ConnectionError('protocol', 'The response is not valid UTF-8')
    const allPending = answers === 'any' ? this.#pending.all() : [this.#pending.get(answers.id)]
    for (const pending of allPending) pending?.failSoon(error)
  }

  released(id: Id, retryMs: number | undefined): void {
    this.#pending.get(id)?.onReleased?.(retryMs)
  }

  hold(id: Id, held: boolean): void {
    this.#pending.get(id)?.hold(held)
  }

  /** Progress under a token that outlives its call's answer, until the returned function is called. */
  hear(token: Id, told: (progress: Progress) => void): () => void {
    this.#heard ??= new Map()
    this.#heard.set(token, told)
    return () => this.#heard?.delete(token)
  }

  /** Progress goes to the call whose id is its token. Falling values are not passed on. */
  progress(token: unknown, progress: Progress): void {
    const pending = this.#pending.get(token as Id)
    if (pending === undefined) return this.#heard?.get(token as Id)?.(progress)
    if (!(progress.progress > pending.lastProgress)) return
    pending.lastProgress = progress.progress
    pending.extend()
    pending.onProgress?.(progress)
  }
}

/** An error that a peer sent, with what it said of itself clipped. */
function received(error: unknown, status: number | undefined): McpError {
  const code = isRecord(error) ? error['code'] : undefined
  const message =
    isRecord(error) && typeof error['message'] === 'string'
      ? error['message']
      : 'The other side returned an error without a message'
  return new McpError('remote', clip(message, 1000), {
    ...(typeof code === 'number' ? { code } : {}),
    ...(status === undefined ? {} : { status }),
    ...(isRecord(error) && error['data'] !== undefined ? { data: error['data'] } : {}),
  })
}

/** Metadata that is no object says nothing, so nobody who looks for something in it need ask what it is. */
function legible(result: unknown): unknown {
  if (!isRecord(result) || result['_meta'] === undefined || isRecord(result['_meta'])) return result
  const { _meta, ...rest } = result
  return rest
}
