/** The client's side of completion: asking what an argument could become. */
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { cachePort } from '../caching/messages.ts'
import { type Completion, complete } from './messages.ts'
import { type CompletionQuestion, Completions } from './pending.ts'

/** Completing arguments of prompts and resource templates. */
export interface CompletionClientApi {
  /**
   * What an argument could become. Of rapid questions about one argument only the last is sent, and all get its answer
   * (option `completionDelay`); the same question again is answered from memory for a moment (`completionCache`).
   */
  complete(
    ref: { readonly prompt: string } | { readonly template: string },
    argument: { readonly name: string; readonly value: string },
    options?: RequestOptions & { readonly arguments?: Readonly<Record<string, string>> },
  ): Promise<Completion>
}

/** How a client completes arguments. */
export interface CompletionOptions {
  /** How long completions for the same question are kept. Default 5 s; 0 keeps none. */
  readonly completionCache?: Duration
  /**
   * How long typing must pause before a completion is asked for. Of the questions about one argument that come in between only
   * the last is sent, and all get its answer. Default 100 ms; 0 sends each one.
   */
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
