/**
 * One request (or notification) while it is handled: who asked, on which wire, the way back. Made for every message,
 * so its parts are lazy. Features and the author's context hang on it.
 */
import type { Caller, Lane, SendHints } from '../jsonrpc/connection.ts'
import { type Awaitable, type Id, notificationFrame, type Params } from '../jsonrpc/message.ts'
import { metaOf, type Peer } from '../revisions/index.ts'
import type { AskOptions, QuestionChannel } from './asking.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import type { Method } from './method.ts'
import type { Route } from './plan.ts'
import { outbound } from './send.ts'

/** Who asks, and with what: all that is known where there is no call, or none any more. */
export type Asker = Pick<Exchange, 'caller' | 'conversation' | 'meta'>

/** Takes what detached work has to say; false when it was dropped. */
export type BackgroundSender = <P>(method: Method<P, undefined>, params: P) => boolean

/** Names a value that a feature remembers of one request: see `Exchange.get` and `set`. */
export interface Field<T> {
  readonly slot: number
  /** Carries the type; never set. */
  readonly type?: T
}

let slots = 0

/** Declares a field. A request pays for fields only when one of them is written. */
export function field<T>(): Field<T> {
  return { slot: slots++ }
}

/** Headers of a successful answer, on carriers that have them. */
export const answerHeaders = field<Readonly<Record<string, string>>>()
/** Headers about limits: sent with any answer, also with a refusal. */
export const limitHeaders = field<Readonly<Record<string, string>>>()
/** What layers want to find again when the call is made anew with answers. Travels sealed on wires where questions travel in results. */
export const retryState = field<Readonly<Record<string, string>>>()
/** Completes the result before anybody gets it. Set by what a handler touches; runs once. */
export const completeResult = field<(result: unknown) => Awaitable<unknown>>()
/** Set where the work goes on for a caller that may come back: called when the caller has gone, instead of cancelling. */
export const onCallerGone = field<() => void>()
/**
 * Set where the runtime itself calls, to undo what was done for its caller. The user agreed when that was done, and nobody is asked
 * again. `scopes`: what a grant allowed then, whatever was revoked since.
 */
export const compensation = field<{ readonly scopes: readonly string[] | undefined }>()

/** Adds to what is carried. */
export function addRetryState(exchange: Exchange, key: string, value: string): void {
  exchange.set(retryState, { ...exchange.get(retryState), [key]: value })
}

/** One request while it is handled. */
export class Exchange {
  readonly engine: Engine
  readonly conversation: Conversation
  readonly caller: Caller
  readonly reply: Lane
  readonly route: Route
  /** What is known of whoever asks; a layer at `enter` may know more than the handshake or the envelope said. */
  peer: Peer
  /** Undefined for a notification. */
  readonly id: Id | undefined
  /** Canonical and checked. */
  params: Params
  /** The request of ours on whose stream it came, where each has one: what a server asks in the middle of a call. */
  readonly within: Id | undefined
  /** What a handler's resolve step found and its later steps need. */
  target: unknown = undefined
  /** The input after validation. */
  input: unknown = undefined
  /** How the handler's questions are asked; made at the first one unless a layer has set it. */
  asking: QuestionChannel | undefined = undefined
  /** Its handler was entered, as far as layers can see: from here on it may have had effects. */
  begun = false
  /** What its handler returned, where layers look at it: if they fail after that, its work is done all the same. */
  given: unknown = undefined
  cancelled = false
  answered = false
  /** What its handler returns has yet to be made a result of. */
  raw = false
  /** It is listed among those that run in its conversation. */
  running = false
  /** Something was sent before the answer. */
  streams = false
  #older: Exchange | undefined = undefined
  #younger: Exchange | undefined = undefined
  #background: BackgroundSender | undefined = undefined
  #onStop: (() => void) | undefined = undefined
  #fields: unknown[] | undefined = undefined
  #abort: AbortController | undefined = undefined
  #reason: string | undefined = undefined
  #correlation: string | undefined = undefined

  constructor(
    engine: Engine,
    conversation: Conversation,
    caller: Caller,
    reply: Lane,
    route: Route,
    peer: Peer,
    id: Id | undefined,
    params: Params,
    within?: Id,
  ) {
    this.engine = engine
    this.conversation = conversation
    this.caller = caller
    this.reply = reply
    this.route = route
    this.peer = peer
    this.id = id
    this.params = params
    this.within = within
  }

  /** What a feature remembers of this request under a field. */
  get<T>(field: Field<T>): T | undefined {
    return this.#fields?.[field.slot] as T | undefined
  }

  /** Remembers it. */
  set<T>(field: Field<T>, value: T | undefined): void {
    this.#fields ??= []
    this.#fields[field.slot] = value
  }

  /** The `_meta` of its params. */
  get meta(): Params | undefined {
    return metaOf(this.params)
  }

  /** Joins all that is written about this request: its record, the log, its problem, the audit. Made when first asked for. */
  get correlation(): string {
    this.#correlation ??= crypto.randomUUID()
    return this.#correlation
  }

  /** Goes on with what was written about under another id. */
  set correlation(id: string) {
    this.#correlation = id
  }

  /** Undefined where nothing was written about it yet: then there is nothing to be found by it. */
  get correlated(): string | undefined {
    return this.#correlation
  }

  /** Aborted when the caller cancels, hangs up (where that means cancel), or the deadline passes. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.cancelled && !this.#abort.signal.aborted) this.#abort.abort(cancelError(this.#reason))
    return this.#abort.signal
  }

  /** Stops the work. Unless the wire says otherwise a cancelled request gets no answer. */
  cancel(reason: string | undefined, byCaller = true): void {
    if (this.cancelled || this.answered) return
    this.stop(reason)
    if (byCaller) this.engine.cancelled(this)
    else this.engine.vacate(this)
  }

  /** The caller has gone: nobody hears the answer. That cancels it, unless the work is kept for whoever comes back. */
  leave(reason: string, cancels: boolean): void {
    const gone = this.get(onCallerGone)
    if (gone === undefined) return this.cancel(reason, cancels)
    if (this.cancelled || this.answered) return
    this.abandon()
    gone()
  }

  /** Its answer is another one's to give. */
  abandon(): void {
    this.answered = true
    this.engine.vacate(this)
  }

  /** Aborts the work without a word to anybody, also after the answer. */
  stop(reason: string | undefined): void {
    if (this.cancelled) return
    this.cancelled = true
    this.#reason = reason
    this.#abort?.abort(cancelError(reason))
    this.#onStop?.()
  }

  /** Calls back once it is stopped. One listener at a time, for who passes the call on: cheaper than a signal. Undefined takes it away. */
  onStop(fn: (() => void) | undefined): void {
    this.#onStop = fn
  }

  /** The work goes on after its answer: what it says goes to the outlet instead of the way back. */
  detach(background: BackgroundSender): void {
    this.#background = background
  }

  /** Whether the work goes on after its answer. */
  get detached(): boolean {
    return this.#background !== undefined
  }

  /** Lists it as the youngest of those that run in its conversation. A list of our own: entering and leaving it is on the path of every call. */
  enlist(youngest: Exchange | undefined): void {
    this.running = true
    this.#older = youngest
    if (youngest !== undefined) youngest.#younger = this
  }

  /** Takes it out of that list. Returns the next older one. */
  delist(): Exchange | undefined {
    const older = this.#older
    const younger = this.#younger
    if (younger !== undefined) younger.#older = older
    if (older !== undefined) older.#younger = younger
    this.running = false
    this.#older = undefined
    this.#younger = undefined
    return older
  }

  /** The next older one that runs in its conversation. */
  get older(): Exchange | undefined {
    return this.#older
  }

  /**
   * Where to say what precedes the answer: on the way back, if its caller takes more than an answer there. Else on the session's own
   * stream, whose messages should be unrelated to a running request, but need not be (2025-11-25 basic/transports, "Listening for
   * Messages from the Server"). Undefined: nowhere.
   */
  get aside(): Lane | undefined {
    if (this.reply.answerOnly !== true) return this.reply
    const { push } = this.conversation
    return push?.closed === false ? push : undefined
  }

  /** Says something on the way back before the answer. Dropped when the wire has no such method, the answer is out, or nobody takes it. */
  notify<P>(method: Method<P, undefined>, params: P, hints?: SendHints): boolean {
    if (this.#background !== undefined) return this.#background(method, params)
    const lane = this.aside
    if (this.answered || this.cancelled || lane === undefined || lane.closed) return false
    const { revision } = this.peer
    if (!method.in.includes(revision.id)) return false
    const { name, paramsDown } = outbound(method, revision)
    const wire = paramsDown === undefined ? (params as Params) : paramsDown(params as Params)
    this.engine.streaming(this)
    lane.send(notificationFrame(name, wire), hints)
    return true
  }

  /** Asks the caller: by a request on the way back, or inside the result, whichever the wire has. */
  ask<P, R>(method: Method<P, R>, params: P, options: AskOptions): Promise<R> {
    this.asking ??= this.engine.asking(this)
    return this.asking.ask(method, params, options)
  }

  /** Does something at most once per call, however often the handler is entered for it. */
  once<T>(key: string, fn: () => Awaitable<T>): Promise<T> {
    this.asking ??= this.engine.asking(this)
    return this.asking.once(key, fn)
  }
}

/** Lets the caller's socket go while the work goes on; it comes back for the answer where the wire has that. */
export function release(exchange: Exchange, retryMs: number): boolean {
  if (
    exchange.answered ||
    !exchange.peer.revision.http.prime ||
    exchange.reply.release === undefined ||
    exchange.reply.answerOnly === true ||
    exchange.conversation.session === undefined
  )
    return false
  exchange.engine.streaming(exchange)
  exchange.reply.release(retryMs)
  return true
}

function cancelError(reason: string | undefined): DOMException {
  return new DOMException(reason ?? 'The caller cancelled this request', 'AbortError')
}
