/**
 * Asking inside a result. The first time a question comes up the call ends with `input_required`; the retry enters the
 * handler again and replays earlier answers out of the sealed state, on any replica that shares the secret. An ask
 * registers itself and rejects one macrotask later, so that asks started together travel together and `finally` blocks run.
 */
import type { Clock } from '../../../core/clock.ts'
import { digest } from '../../../core/digest.ts'
import { HandleError, type Seal } from '../../../core/handle.ts'
import { type AskOptions, capabilityMissing, type QuestionChannel } from '../../../engine/asking.ts'
import { type Exchange, retryState } from '../../../engine/exchange.ts'
import { type Method, statelessRevisionIds } from '../../../engine/method.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { stepsDown } from '../../../revisions/index.ts'
import { askingMethods, type InputRequest, type InputRequiredResult } from './messages.ts'

interface ReplayOptions {
  /** Signs what travels through clients. */
  readonly seal: Seal
  /** For tests: the time. Default: the real one. */
  readonly clock: Clock
  /** How long a client may take for its answers. */
  readonly expiresMs: number
  /** How often one call may ask. */
  readonly rounds: number
}

/** Questions that travel inside results, and their answers inside retries. */
export const inputRequiredFeature = defineServerFeature<object>({
  name: 'input-required',
  setup: kit => {
    const options: ReplayOptions = { seal: kit.seal, clock: kit.clock, expiresMs: kit.askMs, rounds: 16 }
    return { sides: [{ layers: [unsealLayer(options)] }], engine: { asking: replayAsking(options) } }
  },
})

/** What travels in `requestState`. */
interface State {
  readonly round: number
  /** Answers by key, each with the digest of its question: another question at that key is asked anew. */
  readonly answers: Readonly<Record<string, readonly [question: string, answer: unknown]>>
  /** Digests of the questions that are out. */
  readonly asked: Readonly<Record<string, string>>
  /** How often an answer by that key was none. */
  readonly invalidAnswers: Readonly<Record<string, number>>
  /** What effects gave: one item, or none for what gave nothing. */
  readonly done: Readonly<Record<string, readonly unknown[]>>
  /** What layers want to find again. */
  readonly carried?: Record<string, string>
}

const fresh: State = { round: 0, answers: {}, asked: {}, invalidAnswers: {}, done: {} }
/** Answers that do not fit their question, after which it is not asked again. */
const mostInvalidAnswers = 3
const kind = 'request-state'

/** Opens the state that a retry brings, before anything else looks at the call. */
export function unsealLayer(options: ReplayOptions): Layer {
  return {
    stage: 'unseal',
    methods: askingMethods,
    in: statelessRevisionIds,
    params: ['requestState', 'inputResponses'],
    when: ({ params }) => params['requestState'] !== undefined || params['inputResponses'] !== undefined,
    run: async (exchange, next) => {
      const { requestState, inputResponses } = exchange.params
      if (inputResponses !== undefined && !isRecord(inputResponses))
        throw new McpError('invalid-params', 'params.inputResponses must be an object')
      const state = requestState === undefined ? fresh : await openState(exchange, requestState, options)
      exchange.set(retryState, state.carried)
      exchange.asking = new Replay(exchange, options, state, inputResponses ?? {})
      return next()
    },
  }
}

/** Makes how a call asks on stateless revisions: it ends with its questions and runs again with the answers. */
export function replayAsking(options: ReplayOptions): (exchange: Exchange) => QuestionChannel {
  return exchange => new Replay(exchange, options, fresh, {})
}

/** A state is good only for the same caller, method and parameters. */
async function purpose({
  caller,
  route,
  params,
}: Exchange): Promise<{ kind: string; principal: string | undefined; audience: string; bound: string }> {
  const { _meta, requestState, inputResponses, ...rest } = params
  return { kind, principal: caller.principal?.id, audience: route.method.name, bound: await digest(rest) }
}

async function openState(exchange: Exchange, token: unknown, options: ReplayOptions): Promise<State> {
  try {
    return (await options.seal.open(token, await purpose(exchange))) as State
  } catch (error) {
    if (error instanceof HandleError) {
      throw new McpError(
        'invalid-params',
        'params.requestState was not issued by this server for this request, or has expired; start again without it',
      )
    }
    throw error
  }
}

interface Pending {
  readonly request: InputRequest
  readonly question: string
}

class Replay implements QuestionChannel {
  readonly #exchange: Exchange
  readonly #options: ReplayOptions
  readonly #state: State
  readonly #responses: Params
  readonly #answers: Map<string, readonly [string, unknown]>
  readonly #done: Map<string, readonly unknown[]>
  readonly #invalidAnswers: Map<string, number>
  readonly #doing = new Map<string, Promise<unknown>>()
  readonly #pending = new Map<string, Pending>()
  readonly #ordinals = new Map<string, number>()
  /** Questions that are being made ready: those begun together travel together. */
  readonly #digests: Promise<string>[] = []
  #concluded = false

  constructor(exchange: Exchange, options: ReplayOptions, state: State, responses: Params) {
    this.#exchange = exchange
    this.#options = options
    this.#state = state
    this.#responses = responses
    this.#answers = new Map(Object.entries(state.answers))
    this.#done = new Map(Object.entries(state.done))
    this.#invalidAnswers = new Map(Object.entries(state.invalidAnswers))
  }

  get pending(): boolean {
    return this.#pending.size > 0 && !this.#concluded
  }

  ask<P, R>(method: Method<P, R>, params: P, options: AskOptions): Promise<R> {
    if (!options.allowed) return Promise.reject(capabilityMissing(method.name, options.requires))
    const { route } = this.#exchange
    if (route.method.asks !== true)
      return Promise.reject(new McpError('internal', `${route.name} cannot ask the client at this revision`))
    if (this.#exchange.caller.ephemeral === true && !this.#options.seal.durable) {
      return Promise.reject(
        new McpError(
          'internal',
          'Questions need a shared secret because another instance may receive the answer. Give createServer the option secret',
        ),
      )
    }
    const ordinal = (this.#ordinals.get(options.kind) ?? 0) + 1
    this.#ordinals.set(options.kind, ordinal)
    const key = options.key ?? `${options.kind}-${ordinal}`
    const down = stepsDown(method.paramsDown, this.#exchange.peer.revision)
    const wire = down === undefined ? (params as Params) : down(params as Params)
    // The draft's schema allows no params without an envelope, which a question inside a result does not have.
    const request = Object.keys(wire).length === 0 ? { method: method.name } : { method: method.name, params: wire }
    return this.#answer(request, key, options) as Promise<R>
  }

  async #answer(request: InputRequest, key: string, options: AskOptions): Promise<unknown> {
    const digesting = digest(request)
    this.#digests.push(digesting)
    const question = await digesting
    const known = this.#answers.get(key)
    if (known?.[0] === question) return known[1]
    const response = Object.hasOwn(this.#responses, key) ? this.#responses[key] : undefined
    // Answers are taken for what was asked; a handler that names its keys may also be answered ahead.
    const asked = Object.hasOwn(this.#state.asked, key) ? this.#state.asked[key] : undefined
    if (response !== undefined && (asked === undefined || asked === question) && options.accepts(response)) {
      this.#answers.set(key, [question, response])
      return response
    }
    if (response !== undefined && asked === question) this.#invalidAnswer(key, request, options.fault?.(response))
    this.#pending.set(key, { request, question })
    await Promise.all(this.#digests)
    await new Promise<void>(resolve => this.#options.clock.setTimeout(resolve, 0))
    throw new McpError(
      'suspended',
      'The call is suspended: the question goes to the client, and the handler runs again with the answer',
    )
  }

  #invalidAnswer(key: string, request: InputRequest, fault: string | undefined): void {
    const count = (this.#invalidAnswers.get(key) ?? 0) + 1
    this.#invalidAnswers.set(key, count)
    if (count >= mostInvalidAnswers)
      throw new McpError(
        'invalid-answer',
        `The answer to ${request.method} "${clip(key)}" did not match its question ${count} times${fault === undefined ? '' : `: ${fault}`}`,
      )
  }

  once<T>(key: string, fn: () => Awaitable<T>): Promise<T> {
    const done = this.#done.get(key)
    if (done !== undefined) return Promise.resolve(done[0] as T)
    let running = this.#doing.get(key) as Promise<T> | undefined
    if (running === undefined) {
      running = this.#do(key, fn)
      this.#doing.set(key, running)
    }
    return running
  }

  async #do<T>(key: string, fn: () => Awaitable<T>): Promise<T> {
    const value = await fn()
    this.#done.set(key, value === undefined ? [] : [value])
    return value
  }

  /** What has begun to happen must be known to have happened, or it would happen again. */
  #settled(): Promise<void> {
    const { clock, expiresMs } = this.#options
    return new Promise<void>((resolve, reject) => {
      const late = (): void => reject(new McpError('internal', 'A function passed to ctx.once does not complete'))
      const cancel = clock.setTimeout(late, expiresMs, true)
      Promise.allSettled(this.#doing.values()).then(() => {
        cancel()
        resolve()
      })
    })
  }

  async conclude(): Promise<InputRequiredResult> {
    this.#concluded = true
    if (this.#doing.size > 0) await this.#settled()
    const questions = [...this.#pending]
    const round = this.#state.round + 1
    if (round > this.#options.rounds)
      throw new McpError('internal', `The call asked the client ${this.#options.rounds} times (the limit) and did not complete`)
    const stored = this.#exchange.get(retryState)
    const state: State = {
      round,
      answers: Object.fromEntries(this.#answers),
      asked: Object.fromEntries(questions.map(([key, { question }]) => [key, question])),
      invalidAnswers: Object.fromEntries(this.#invalidAnswers),
      done: Object.fromEntries(this.#done),
      ...(stored === undefined ? {} : { carried: stored }),
    }
    const content = {
      ...(await purpose(this.#exchange)),
      expiresAt: this.#options.clock.now() + this.#options.expiresMs,
      data: state,
    }
    return {
      resultType: 'input_required',
      inputRequests: Object.fromEntries(questions.map(([key, { request }]) => [key, request])),
      requestState: await this.#options.seal.seal(content),
    }
  }
}
