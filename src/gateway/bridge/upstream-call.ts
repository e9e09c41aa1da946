/**
 * One call on its way through: who made it, what its upstream asks meanwhile, and what came of it. The upstream is called once,
 * however often the caller's side is entered for it: where questions travel in results the call is parked while its caller is away
 * with them, and the caller's next request joins it again.
 */

import { exchangeOf } from '../../engine/context.ts'
import { carried, carry, type Exchange } from '../../engine/exchange.ts'
import { declared } from '../../engine/extensions.ts'
import type { Method } from '../../engine/method.ts'
import { type InputRequest, isInputRequired } from '../../features/mcp/input-required/messages.ts'
import { type Task, tasksExtension } from '../../features/mcp/tasks/messages.ts'
import type { Between } from '../../features/mcp/tools/call.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { type Awaitable, type Id, isRecord, isThenable, type Params } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/api.ts'
import { isServerAnswer, passedOn } from './failures.ts'
import { kindOf, passOn, questionIn } from './questions.ts'

/** What the caller's side carries of a call, from one request to the next. */
export const upstreamCallKey = 'gateway-flight'
const roundKey = 'gateway-round'

/** What an upstream asked and nobody has answered yet. */
interface Question {
  readonly key: string
  readonly method: Method
  readonly params: Params
  readonly signal: AbortSignal
  resolve(answer: unknown): void
  reject(error: unknown): void
}

/** Who keeps calls while their callers are away. */
export interface CallParking {
  /** Names a call among all. */
  name(): string
  /** Settles when its caller may go: wherever it comes back, it will be found. */
  park(upstreamCall: UpstreamCall): Awaitable<void>
  joined(upstreamCall: UpstreamCall): void
  /** A question has come up while nobody was there, or the end. */
  changed(upstreamCall: UpstreamCall): void
  ended(upstreamCall: UpstreamCall): void
}

/** How an upstream call ended. */
export type EndedCall = { readonly result: unknown } | { readonly error: unknown }

const mostRounds = 16
const mostQuestions = 32
/** Most calls are never asked anything. */
const none: Map<string, Question> = new Map()
const never = new AbortController().signal

/** A client's call on its way to an upstream, with the questions that are open in it. */
export class UpstreamCall implements Between {
  readonly upstream: string
  ctx: Context
  /** Of the caller's request that waits for it now; undefined while its caller is away. */
  exchange: Exchange | undefined
  /** What made it. */
  readonly first: Exchange
  /** Its request at the upstream. */
  id: Id | undefined = undefined
  /** The task that it has become there. */
  task: string | undefined = undefined
  ended: EndedCall | undefined = undefined
  /** Its name, once it was parked. */
  name: string | undefined = undefined
  open: Map<string, Question> = none
  readonly #parking: CallParking
  readonly #waits: (held: boolean, upstreamCall: UpstreamCall) => void
  #joined: PromiseWithResolvers<unknown> | undefined = undefined
  #asked = 0

  /** `waits`: told that it waits for its caller, and that it no longer does. */
  constructor(upstream: string, ctx: Context, parking: CallParking, waits: (held: boolean, upstreamCall: UpstreamCall) => void) {
    const exchange = exchangeOf(ctx)
    this.upstream = upstream
    this.ctx = ctx
    this.exchange = exchange
    this.first = exchange
    this.#parking = parking
    this.#waits = waits
  }

  /** Whose it is: questions of no certain origin go to nobody but the only one there is. */
  get owner(): object {
    return this.first.conversation
  }

  /** The call is made; `line` is told of its end. Where questions travel in results its caller may go away with them and come back. */
  async begin<R>(made: Promise<R>, line: { over(upstreamCall: UpstreamCall, answered: boolean): void }): Promise<R> {
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

  #away<R>(made: Promise<R>, line: { over(upstreamCall: UpstreamCall, answered: boolean): void }): Promise<R> {
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

  /** The caller is back. */
  join(ctx: Context): Promise<unknown> {
    const exchange = exchangeOf(ctx)
    this.#joined?.reject(new McpError('internal', 'The same call is waited for by a later request'))
    const joined = Promise.withResolvers<unknown>()
    this.#joined = joined
    this.ctx = ctx
    this.exchange = exchange
    this.#parking.joined(this)
    exchange.signal.addEventListener('abort', () => this.exchange === exchange && this.stop('The caller cancelled it'), {
      once: true,
    })
    if (this.ended !== undefined) this.#tell(this.ended)
    else for (const question of this.open.values()) this.#put(question, exchange)
    return joined.promise
  }

  /** Gives it up: the upstream is told, as far as its wire can. */
  stop(reason: string): void {
    this.first.stop(reason)
    for (const question of this.open.values()) question.reject(new McpError('timeout', reason))
  }

  /** The upstream asks. */
  ask(method: Method, params: Params, signal: AbortSignal): Promise<unknown> {
    if (this.open.size >= mostQuestions)
      return Promise.reject(new McpError('busy', `${mostQuestions} questions of this call are open, which is the limit`))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const key = `${kindOf(method)}-${++this.#asked}`
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

  /** Where each request says whether its answer may be a task, it is the caller's word that counts; others wait here for its end. */
  get takesTasks(): boolean {
    const { peer } = this.first
    return peer.revision.era === 'session' || declared(peer, tasksExtension) !== undefined
  }

  /** The caller gets a task too, if it takes one. */
  tasked({ taskId }: Task): Promise<boolean> {
    this.task = taskId
    return this.ctx.background()
  }

  /** Answers what a task asks. */
  async answer(request: InputRequest): Promise<unknown> {
    const { method, params } = questionIn(request)
    return this.ask(method, params, never)
  }

  /** The first result of a call that its caller continues; undefined for a new call. */
  begun(): Promise<unknown> | undefined {
    const { exchange } = this
    if (exchange?.get(carried)?.[roundKey] === undefined) return undefined
    return exchange.once('gateway-round-0', () => {
      throw new McpError('invalid-params', 'params.requestState does not belong to this call; start again without it')
    })
  }

  /**
   * An upstream that asks inside results holds nothing meanwhile: what it said is carried by the caller, and any process can go on
   * with it.
   */
  async drive(first: unknown, again: (more: Params) => Promise<unknown>): Promise<unknown> {
    let result = first
    const seen = new Set<string>()
    for (let round = 0; isInputRequired(result); round++) {
      if (round === mostRounds)
        throw new McpError('too-many-rounds', `The server asked ${round + 1} times without coming to an end`)
      const { exchange } = this
      if (exchange === undefined) throw new McpError('internal', 'Nobody waits for this call')
      const { inputRequests = {}, requestState } = result
      const asked = result
      await exchange.once(`gateway-round-${round}`, () => asked)
      carry(exchange, roundKey, `${round}`)
      const at = round
      // The server's own names, as long as each names one question: the same name later is another one.
      const key = (name: string): string => (seen.has(name) ? `${name}-${at}` : name)
      const inputResponses = await answersOf(exchange, inputRequests, key)
      for (const name of Object.keys(inputRequests)) seen.add(name)
      const more = { inputResponses, ...(requestState !== undefined && { requestState }) }
      result = await exchange.once(`gateway-round-${round + 1}`, () => again(more))
    }
    if (isRecord(result) && ['complete', 'task', undefined].includes(result['resultType'] as string | undefined)) return result
    throw new McpError('invalid-result', `The server answered with ${echo(result)}, which is no result`)
  }

  /** Asks the caller. Where its wire asks in results, the caller leaves with the question. */
  #put(question: Question, exchange: Exchange): void {
    if (this.#joined !== undefined) {
      this.name ??= this.#parking.name()
      carry(exchange, upstreamCallKey, this.name)
    }
    const signal = AbortSignal.any([question.signal, exchange.signal])
    passOn(exchange, question.method, question.params, { key: question.key, signal }).then(question.resolve, error => {
      if (error instanceof McpError && error.kind === 'suspended') this.#leave(exchange, error)
      else question.reject(exchange.cancelled ? cancelled() : passedOn(error))
    })
  }

  /** The caller goes away with the questions. */
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

  /** Open questions have no use any more. */
  #end(ended: EndedCall): void {
    this.ended = ended
    for (const question of this.open.values()) question.reject(new McpError('internal', 'The call has ended'))
    if (this.exchange === undefined) this.#parking.changed(this)
    else this.#tell(ended)
  }

  #tell(ended: EndedCall): void {
    const joined = this.#joined
    this.#joined = undefined
    this.#parking.ended(this)
    if ('result' in ended) joined?.resolve(ended.result)
    else joined?.reject(ended.error)
  }
}

/** To the one who asks: nobody is there any more who could answer. */
function cancelled(): McpError {
  return new McpError('cancelled', 'The call for which this is asked was cancelled')
}

/** Asks the caller all questions of one result at once. */
async function answersOf(
  exchange: Exchange,
  requests: Readonly<Record<string, unknown>>,
  keys: (name: string) => string,
): Promise<Params> {
  const entries = Object.entries(requests)
  if (entries.length > mostQuestions)
    throw new McpError('invalid-result', `The server asks ${entries.length} questions at once; the limit is ${mostQuestions}`)
  const { signal } = exchange
  const asked = entries.map(async ([name, request]) => {
    const { method, params } = questionIn(request)
    return [name, await passOn(exchange, method, params, { key: keys(name), signal })] as const
  })
  return Object.fromEntries(await Promise.all(asked))
}
