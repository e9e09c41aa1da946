/** The client's side of completion: asking what an argument could become. */
import { type Cancel, type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import { unlessAborted } from '../../../core/deadlines.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { cachePort } from '../caching/messages.ts'
import { type Completion, type CompletionResult, complete } from './messages.ts'

/** Completion of arguments of prompts and resource templates. */
export interface CompletionClientApi {
  /**
   * Proposes values for an argument of a prompt, or for a variable of a resource template. While the user types, only the last
   * request is sent, and all calls get its answer (option `completionDelay`). Answers are cached briefly (`completionCache`).
   * @example const { values } = await mcp.complete({ prompt: 'triage' }, { name: 'id', value: 'T-' })
   */
  complete(
    ref:
      | {
          /** The name of the prompt whose argument is completed. */
          readonly prompt: string
        }
      | {
          /** The URI template whose variable is completed. */
          readonly template: string
        },
    argument: {
      /** The name of the argument or variable. */
      readonly name: string
      /** What the user has typed so far. */
      readonly value: string
    },
    options?: RequestOptions & {
      /** The arguments that are already filled in. Default: none. */
      readonly arguments?: Readonly<Record<string, string>>
    },
  ): Promise<Completion>
}

/** Options of `connect` for completion. */
export interface CompletionOptions {
  /** How long completions are cached. Default 5 s; 0 caches none. */
  readonly completionCache?: Duration
  /** How long typing must pause before a request is sent. Default 100 ms; 0 sends each request. */
  readonly completionDelay?: Duration
}

/** Asks for completions. */
export const completionClient = defineClientFeature<CompletionOptions>({
  name: 'completion',
  uses: [cachePort],
  options: { completionCache: 'any', completionDelay: 'any' },
  setup(kit, { completionCache = '5s', completionDelay = '100ms' }) {
    const pending = new Completions({
      send: (question, sending) => kit.session.request(complete, question, sending),
      clock: kit.clock,
      delayMs: toMilliseconds(completionDelay, 'completionDelay'),
      keepMs: toMilliseconds(completionCache, 'completionCache'),
      caller: () => kit.port(cachePort).callers,
    })
    const client: CompletionClientApi = {
      complete: async (ref, argument, options = {}) =>
        pending.ask(questionOf(ref, argument, options.arguments), kit.send(options)),
    }
    return { client }
  },
})

/** The question for an argument of a prompt or a template; `given`: what the others are. */
function questionOf(
  ref: { readonly prompt: string } | { readonly template: string },
  { name, value }: { readonly name: string; readonly value: string },
  given: Readonly<Record<string, string>> | undefined,
): CompletionQuestion {
  return {
    ref: 'prompt' in ref ? { type: 'ref/prompt', name: ref.prompt } : { type: 'ref/resource', uri: ref.template },
    argument: { name, value },
    ...(given === undefined ? {} : { context: { arguments: given } }),
  }
}

// Completions while somebody types. Rapid questions about the same argument become one: only the last is sent, once typing
// has paused, and all who asked get its answer. Answers are kept for a moment, for whoever types back and forth.

/** What is asked, as the wire has it. */
interface CompletionQuestion {
  readonly ref: { readonly type: 'ref/prompt'; readonly name: string } | { readonly type: 'ref/resource'; readonly uri: string }
  readonly argument: { readonly name: string; readonly value: string }
  readonly context?: { readonly arguments: Readonly<Record<string, string>> }
}

interface CompletionsOptions {
  readonly send: (question: CompletionQuestion, options: SendOptions) => Promise<CompletionResult>
  readonly clock: Clock
  /** Another number means other credentials: what was answered before may not be this caller's. */
  readonly caller: () => number
  /** How long typing must pause. 0: every question is sent at once. */
  readonly delayMs: number
  /** How long an answer is kept. 0: not at all. */
  readonly keepMs: number
}

/** Even who never pauses is answered after so many delays. */
const longestDelay = 10
const maxCached = 256

/** One request to come, and all who wait for it. */
interface Ask {
  readonly latest: number
  readonly stop: AbortController
  readonly answer: PromiseWithResolvers<Completion>
  waiting: number
  question: CompletionQuestion
  options: SendOptions
  cancel: Cancel
}

/** The questions that are being typed or under way, and the answers of a moment ago. */
class Completions {
  readonly #options: CompletionsOptions
  /** Not sent yet, by what is being typed. */
  readonly #typed = new Map<string, Ask>()
  /** Sent, by the whole question. */
  readonly #stored = new Map<string, { readonly ask: Ask; expires: number }>()

  constructor(options: CompletionsOptions) {
    this.#options = options
  }

  ask(question: CompletionQuestion, options: SendOptions): Promise<Completion> {
    if (options.signal?.aborted) return Promise.reject(options.signal.reason)
    const field = JSON.stringify([question.ref, question.argument.name])
    const typed = this.#typed.get(field)
    const stored = this.#find(question)
    if (stored !== undefined) {
      if (typed !== undefined) this.#supersede(field, typed, stored)
      return this.#join(stored, options.signal)
    }
    const ask = typed === undefined || typed.stop.signal.aborted ? this.#begin(question, options) : typed
    ask.question = question
    ask.options = options
    const joined = this.#join(ask, options.signal)
    if (this.#options.delayMs > 0) this.#sendLater(field, ask)
    else this.#send(ask)
    return joined
  }

  #begin(question: CompletionQuestion, options: SendOptions): Ask {
    const { clock, delayMs } = this.#options
    const answer = Promise.withResolvers<Completion>()
    // Whoever waits hears of a failure; that nobody does is none.
    answer.promise.catch(() => {})
    const latest = clock.now() + longestDelay * delayMs
    return { latest, stop: new AbortController(), answer, waiting: 0, question, options, cancel: () => {} }
  }

  #sendLater(field: string, ask: Ask): void {
    const { clock, delayMs } = this.#options
    this.#typed.set(field, ask)
    ask.cancel()
    ask.cancel = clock.setTimeout(
      () => {
        this.#typed.delete(field)
        this.#send(ask)
      },
      Math.max(0, Math.min(delayMs, ask.latest - clock.now())),
    )
  }

  #send(ask: Ask): void {
    if (ask.stop.signal.aborted) return
    const key = this.#key(ask.question)
    if (this.#stored.size >= maxCached) this.#stored.delete(this.#stored.keys().next().value as string)
    // While it is under way it serves whoever asks the same.
    this.#stored.set(key, { ask, expires: Number.POSITIVE_INFINITY })
    this.#options.send(ask.question, { ...ask.options, signal: ask.stop.signal }).then(
      result => {
        this.#keep(key, ask)
        if (isCompletion(result)) ask.answer.resolve(result.completion)
        else ask.answer.reject(new McpError('invalid-result', 'The server answered completion/complete without values'))
      },
      error => {
        this.#forget(key, ask)
        ask.answer.reject(error)
      },
    )
  }

  #keep(key: string, ask: Ask): void {
    const { clock, keepMs } = this.#options
    const stored = this.#stored.get(key)
    if (stored?.ask === ask) stored.expires = clock.now() + keepMs
  }

  #forget(key: string, ask: Ask): void {
    if (this.#stored.get(key)?.ask === ask) this.#stored.delete(key)
  }

  #key(question: CompletionQuestion): string {
    return `${this.#options.caller()} ${JSON.stringify(question)}`
  }

  #find(question: CompletionQuestion): Ask | undefined {
    const key = this.#key(question)
    const stored = this.#stored.get(key)
    if (stored === undefined) return undefined
    if (stored.expires > this.#options.clock.now() && !stored.ask.stop.signal.aborted) return stored.ask
    this.#stored.delete(key)
    return undefined
  }

  /** The last question is one that needs no sending: its answer is everybody's. */
  #supersede(field: string, typed: Ask, by: Ask): void {
    this.#typed.delete(field)
    typed.cancel()
    // Counts as one who never gives up: too little is left of the request to make more of it.
    by.waiting++
    by.answer.promise.then(typed.answer.resolve, typed.answer.reject)
  }

  /** Waits with the others; when the last one has given up, so have we. */
  async #join(ask: Ask, signal: AbortSignal | undefined): Promise<Completion> {
    ask.waiting++
    try {
      return await unlessAborted(ask.answer.promise, signal)
    } finally {
      if (--ask.waiting === 0 && signal?.aborted) ask.stop.abort(signal.reason)
    }
  }
}

function isCompletion(result: unknown): result is CompletionResult {
  return isRecord(result) && isRecord(result['completion']) && Array.isArray(result['completion']['values'])
}
