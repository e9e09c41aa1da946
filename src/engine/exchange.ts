/**
 * One request (or notification) while it is handled: who asked, on which wire, the way back. Made for every message,
 * so its parts are lazy. Features and the author's context hang on it.
 */
import type { Caller, Lane, SendHints } from '../jsonrpc/connection.ts'
import { type Awaitable, type Id, notificationFrame, type Params } from '../jsonrpc/message.ts'
import { metaOf, type Peer } from '../revisions/index.ts'
import type { Asking, AskOptions } from './asking.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import type { Method } from './method.ts'
import type { Route } from './plan.ts'
import { outbound } from './send.ts'

/** Who asks, and with what: all that is known where there is no call, or none any more. */
export type Asker = Pick<Exchange, 'caller' | 'conversation' | 'meta'>

/** Takes what detached work has to say; false when it was dropped. */
export type Outlet = <P>(method: Method<P, undefined>, params: P) => boolean

/** A call that may be taken back as a whole, with others. */
export interface UnitStep {
  /** Names the unit among all. */
  readonly unit: string
  /** Names the step among all. */
  readonly place: string
  /**
   * Keeps what has to be known to take back a write beside the call's own effect. Comes before the write; throws where that is too late.
   * What several writers say of one step stands side by side, each under names of its own.
   */
  wrote(what: object): Promise<void>
}

/** A grant that its holder presented with a request. */
export interface Admission {
  readonly owner: string
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** All that it allows now. */
  scopes(): Promise<readonly string[]>
}

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
  within: Id | undefined = undefined
  /** What a handler's resolve step found and its later steps need. */
  target: unknown = undefined
  /** The input after validation. */
  input: unknown = undefined
  /** Headers for the answer, where it has any. */
  headers: Record<string, string> | undefined = undefined
  /** Headers about limits: for whatever the answer is, also a refusal. */
  advice: Record<string, string> | undefined = undefined
  /** The longest its handler may take, where its caller said so. */
  withinMs: number | undefined = undefined
  /** How the handler's questions are asked; made at the first one unless a layer has set it. */
  asking: Asking | undefined = undefined
  /** What layers want to find again when the call is made anew with answers; travels sealed, where questions travel in results. */
  carried: Record<string, string> | undefined = undefined
  /** Its handler was entered, as far as layers can see: from here on it may have had effects. */
  begun = false
  /** What is to be done with the result before anybody gets it. Set by what a handler touches; once, then it is gone. */
  closing: ((result: unknown) => Awaitable<unknown>) | undefined = undefined
  /** What its handler gave, where layers look at it: if they fail after that, its work is done all the same. */
  given: unknown = undefined
  /** The step of a unit of work that it is. */
  step: UnitStep | undefined = undefined
  /** The grant that let it in, where the caller presented one: what is opened by it ends with that. */
  admission: Admission | undefined = undefined
  /** What its handler still does after its call was answered: for it, or with the task that it has become. */
  workAfterAnswer: PromiseLike<unknown> | undefined = undefined
  /** Set where the runtime itself calls, to take back what was done for its caller: agreed to when that was done, so nobody is asked anew. */
  isCompensation = false
  /** Scopes that were allowed when that was done, where a grant gave them: they decide, whatever was taken away since. */
  capturedScopes: readonly string[] | undefined = undefined
  /** Set where the work goes on for a caller that may come back: told that it has gone, in the place of being cancelled. */
  onCallerGone: (() => void) | undefined = undefined
  cancelled = false
  /** Told once that it is stopped: for the one who passes it on, cheaper than a signal. */
  onStop: (() => void) | undefined = undefined
  answered = false
  /** What its handler gives has yet to be made a result of. */
  raw = false
  running = false
  /** In whose share it is counted, where many run at once. */
  crowd: string | undefined = undefined
  /** Its neighbours among those that run in its conversation. */
  before: Exchange | undefined = undefined
  after: Exchange | undefined = undefined
  /** Something has been said before the answer. */
  streams = false
  /** Set for work that goes on after its answer: what it says goes here instead of the way back. */
  outlet: Outlet | undefined = undefined
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
  ) {
    this.engine = engine
    this.conversation = conversation
    this.caller = caller
    this.reply = reply
    this.route = route
    this.peer = peer
    this.id = id
    this.params = params
  }

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
    if (this.onCallerGone === undefined) return this.cancel(reason, cancels)
    if (this.cancelled || this.answered) return
    this.forsake()
    this.onCallerGone()
  }

  /** Its answer is another one's to give. */
  forsake(): void {
    this.answered = true
    this.engine.vacate(this)
  }

  /** Aborts the work without a word to anybody, also after the answer. */
  stop(reason: string | undefined): void {
    if (this.cancelled) return
    this.cancelled = true
    this.#reason = reason
    this.#abort?.abort(cancelError(reason))
    this.onStop?.()
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
    if (this.outlet !== undefined) return this.outlet(method, params)
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
