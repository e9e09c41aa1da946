/**
 * One call on its way through the gateway: the client's request, the questions that the upstream asks, and the outcome. The upstream is
 * called exactly once. Where questions travel in results (stateless revisions), the client leaves with a question and continues the
 * call with its next request.
 */

import { exchangeOf } from '../../engine/context.ts'
import { addRetryState, type Exchange, retryState } from '../../engine/exchange.ts'
import { declaredSettings } from '../../engine/extensions.ts'
import type { Method } from '../../engine/method.ts'
import { elicit } from '../../features/mcp/elicitation/messages.ts'
import { type InputRequest, isInputRequired } from '../../features/mcp/input-required/messages.ts'
import { createMessage } from '../../features/mcp/sampling/messages.ts'
import { type Task, tasksExtension } from '../../features/mcp/tasks/messages.ts'
import type { CallProxy } from '../../features/mcp/tools/call.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { type Id, isRecord, isThenable, type Params } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/api.ts'
import { isServerAnswer, translatedError } from './failures.ts'
import type { ParkedCalls } from './parked-calls.ts'
import { askClient, questionIn } from './questions.ts'
import type { UpstreamConnection } from './upstream-connection.ts'

/** The key under which the client's request state carries the call's name. */
export const upstreamCallKey = 'gateway-flight'
/** The key for the number of question rounds that an upstream has asked in results. */
const roundKey = 'gateway-round'

/** An unanswered question of an upstream. */
interface Question {
  readonly key: string
  readonly method: Method
  readonly params: Params
  readonly signal: AbortSignal
  resolve(answer: unknown): void
  reject(error: unknown): void
}

/** Rounds of questions in results, per call. */
const mostRounds = 16
/** Open questions per call. */
const mostQuestions = 32
/** Shared by all calls without questions, which are most. */
const none: Map<string, Question> = new Map()
const never = new AbortController().signal

/** A client's call on its way to an upstream, with the questions that are open in it. */
export class UpstreamCall implements CallProxy {
  readonly upstream: string
  /** The context of the latest client request. */
  ctx: Context
  /** The client request that currently waits; undefined while the client is away. */
  exchange: Exchange | undefined
  /** The client request that started the call. */
  readonly first: Exchange
  /** The id of the request at the upstream. */
  id: Id | undefined = undefined
  /** The id of the upstream's task, if the call became one. */
  task: string | undefined = undefined
  /** The outcome, once there is one. */
  ended: { readonly result: unknown } | { readonly error: unknown } | undefined = undefined
  /** The name, once the call was parked. */
  name: string | undefined = undefined
  /** Unanswered questions by key. */
  open: Map<string, Question> = none
  readonly #parking: ParkedCalls
  readonly #waits: (held: boolean, upstreamCall: UpstreamCall) => void
  /** Settles the client request that waits; only used where questions travel in results. */
  #joined: PromiseWithResolvers<unknown> | undefined = undefined
  /** Questions asked so far; numbers their keys. */
  #asked = 0

  /** `waits`: called when the call starts and stops waiting for its client, to pause the upstream timeout. */
  constructor(upstream: string, ctx: Context, parking: ParkedCalls, waits: (held: boolean, upstreamCall: UpstreamCall) => void) {
    const exchange = exchangeOf(ctx)
    this.upstream = upstream
    this.ctx = ctx
    this.exchange = exchange
    this.first = exchange
    this.#parking = parking
    this.#waits = waits
  }

  /** The client's conversation. A question without a known origin is only delivered if all open calls have the same owner. */
  get owner(): object {
    return this.first.conversation
  }

  /** Awaits the upstream's answer and tells `line` about the end. */
  async begin<R>(made: Promise<R>, line: UpstreamConnection): Promise<R> {
    if (this.first.peer.revision.asks === 'result') return this.#away(made, line)
    try {
      const result = await made
      line.over(this, true)
      return result
    } catch (error) {
      line.over(this, isServerAnswer(error))
      throw error
    }
  }

  /** The same where the client may leave and come back: the result goes to the request that waits at that time. */
  #away<R>(made: Promise<R>, line: UpstreamConnection): Promise<R> {
    const joined = Promise.withResolvers<unknown>()
    this.#joined = joined
    made.then(
      result => {
        line.over(this, true)
        this.#end({ result })
      },
      error => {
        line.over(this, isServerAnswer(error))
        this.#end({ error })
      },
    )
    return joined.promise as Promise<R>
  }

  /** The client continues the call with a new request. */
  join(ctx: Context): Promise<unknown> {
    const exchange = exchangeOf(ctx)
    this.#joined?.reject(new McpError('internal', 'A later request has taken over this call'))
    const joined = Promise.withResolvers<unknown>()
    this.#joined = joined
    this.ctx = ctx
    this.exchange = exchange
    this.#parking.joined(this)
    exchange.signal.addEventListener('abort', () => this.exchange === exchange && this.stop('The client cancelled the call'), {
      once: true,
    })
    if (this.ended !== undefined) this.#tell(this.ended)
    else for (const question of this.open.values()) this.#put(question, exchange)
    return joined.promise
  }

  /** Cancels the call, at the upstream too as far as its revision can. */
  stop(reason: string): void {
    this.first.stop(reason)
    for (const question of this.open.values()) question.reject(new McpError('timeout', reason))
  }

  /** The upstream asks a question. */
  ask(method: Method, params: Params, signal: AbortSignal): Promise<unknown> {
    if (this.open.size >= mostQuestions)
      return Promise.reject(new McpError('busy', `This call has ${mostQuestions} open questions (the limit)`))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const kind = method.name === elicit.name ? 'elicit' : method.name === createMessage.name ? 'sample' : 'roots'
    const key = `${kind}-${++this.#asked}`
    const settle =
      <T>(act: (value: T) => void) =>
      (value: T): void => {
        if (!this.open.delete(key)) return
        signal.removeEventListener('abort', given)
        if (this.open.size === 0) this.#waits(false, this)
        act(value)
      }
    const question: Question = { key, method, params, signal, resolve: settle(resolve), reject: settle(reject) }
    const given = (): void => question.reject(signal.reason)
    signal.addEventListener('abort', given, { once: true })
    if (this.open === none) this.open = new Map()
    this.open.set(key, question)
    this.#waits(true, this)
    if (this.exchange === undefined) this.#parking.changed(this)
    else this.#put(question, this.exchange)
    return promise
  }

  /** Whether the upstream may answer with a task: stateless clients declare it per request; for others the gateway waits for the end. */
  get takesTasks(): boolean {
    const { peer } = this.first
    return peer.revision.era === 'session' || declaredSettings(peer, tasksExtension) !== undefined
  }

  /** The upstream made a task; the client gets one too if it accepts tasks. */
  tasked({ taskId }: Task): Promise<boolean> {
    this.task = taskId
    return this.ctx.background()
  }

  /** Answers a question of a task. */
  async answer(request: InputRequest): Promise<unknown> {
    const { method, params } = questionIn(request)
    return this.ask(method, params, never)
  }

  /** The recorded first result of a call that the client continues; undefined for a new call. */
  begun(): Promise<unknown> | undefined {
    const { exchange } = this
    if (exchange?.get(retryState)?.[roundKey] === undefined) return undefined
    return exchange.once('gateway-round-0', () => {
      throw new McpError('invalid-params', 'params.requestState is from a different call. Start again without it')
    })
  }

  /**
   * Answers questions that arrive in results until the final result. The upstream keeps no state for this: the client's request state
   * carries the rounds, so any process can continue.
   */
  async drive(first: unknown, again: (more: Params) => Promise<unknown>): Promise<unknown> {
    let result = first
    const seen = new Set<string>()
    for (let round = 0; isInputRequired(result); round++) {
      if (round === mostRounds)
        throw new McpError(
          'too-many-rounds',
          `The server asked for input more than ${round} times (the limit) without returning a result`,
        )
      const { exchange } = this
      if (exchange === undefined) throw new McpError('internal', 'No request waits for this call')
      const { inputRequests = {}, requestState } = result
      const asked = result
      await exchange.once(`gateway-round-${round}`, () => asked)
      addRetryState(exchange, roundKey, `${round}`)
      const at = round
      // Keep the upstream's own names while they are unique; a name that comes again in a later round gets a suffix.
      const key = (name: string): string => (seen.has(name) ? `${name}-${at}` : name)
      const inputResponses = await answersOf(exchange, inputRequests, key)
      for (const name of Object.keys(inputRequests)) seen.add(name)
      const more = { inputResponses, ...(requestState !== undefined && { requestState }) }
      result = await exchange.once(`gateway-round-${round + 1}`, () => again(more))
    }
    if (isRecord(result) && ['complete', 'task', undefined].includes(result['resultType'] as string | undefined)) return result
    throw new McpError('invalid-result', `The server returned ${echo(result)}, which is not a valid result`)
  }

  /** Asks the client. Where questions travel in results, the client leaves with the question. */
  #put(question: Question, exchange: Exchange): void {
    if (this.#joined !== undefined) {
      this.name ??= this.#parking.name()
      addRetryState(exchange, upstreamCallKey, this.name)
    }
    const signal = AbortSignal.any([question.signal, exchange.signal])
    askClient(exchange, question.method, question.params, { key: question.key, signal }).then(question.resolve, error => {
      if (error instanceof McpError && error.kind === 'suspended') this.#leave(exchange, error)
      else question.reject(exchange.cancelled ? cancelled() : translatedError(error))
    })
  }

  /** The client leaves with its questions: parks the call, then answers the request. */
  #leave(exchange: Exchange, suspended: McpError): void {
    if (this.exchange !== exchange) return
    const joined = this.#joined
    this.exchange = undefined
    this.#joined = undefined
    const parked = this.#parking.park(this)
    if (!isThenable(parked)) return joined?.reject(suspended)
    parked.then(
      () => joined?.reject(suspended),
      error => joined?.reject(error),
    )
  }

  /** Records the outcome and rejects open questions. */
  #end(ended: NonNullable<UpstreamCall['ended']>): void {
    this.ended = ended
    for (const question of this.open.values()) question.reject(new McpError('internal', 'The call has ended'))
    if (this.exchange === undefined) this.#parking.changed(this)
    else this.#tell(ended)
  }

  /** Settles the waiting client request. */
  #tell(ended: NonNullable<UpstreamCall['ended']>): void {
    const joined = this.#joined
    this.#joined = undefined
    this.#parking.ended(this)
    if ('result' in ended) joined?.resolve(ended.result)
    else joined?.reject(ended.error)
  }
}

/** The error for an upstream's question when nobody is left to answer it. */
function cancelled(): McpError {
  return new McpError('cancelled', 'The call that this question is for was cancelled')
}

/** Asks the client all questions of one result at once. */
async function answersOf(
  exchange: Exchange,
  requests: Readonly<Record<string, unknown>>,
  keys: (name: string) => string,
): Promise<Params> {
  const entries = Object.entries(requests)
  if (entries.length > mostQuestions)
    throw new McpError(
      'invalid-result',
      `The server asks ${entries.length} questions at once, more than ${mostQuestions} (the limit)`,
    )
  const { signal } = exchange
  const asked = entries.map(async ([name, request]) => {
    const { method, params } = questionIn(request)
    return [name, await askClient(exchange, method, params, { key: keys(name), signal })] as const
  })
  return Object.fromEntries(await Promise.all(asked))
}
