/** The server's side of completion: finds who completes the argument, and keeps to the wire's hundred values. */
import type { CallContext } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isThenable } from '../../../jsonrpc/message.ts'
import { type Reference, referredTo } from '../authorization/messages.ts'
import type { OfferingOptions } from '../lifecycle/messages.ts'
import { promptsPort } from '../prompts/messages.ts'
import { ratesPort } from '../rates/messages.ts'
import { resourcesPort } from '../resources/messages.ts'
import { type Completers, type Completion, type CompletionResult, complete, completesUnannounced, maxValues } from './messages.ts'

interface CompletionOptions<C> {
  /** The arguments of a prompt; undefined if there is no such prompt. */
  readonly prompt: (name: string) => Completers<C> | undefined
  /** The variables of a resource template; undefined if there is no such template. */
  readonly template: (uriTemplate: string) => Completers<C> | undefined
  /** Whether anything can be completed at all. */
  readonly offered: () => boolean
  /** Throws when the caller asks too often. */
  readonly admit: (exchange: Exchange) => void
  readonly context: (exchange: Exchange) => C
}

/** Suggestions for the arguments of prompts and the variables of templates. */
export const completionFeature = defineServerFeature<OfferingOptions>({
  name: 'completion',
  setup(kit, { offers = [] }) {
    const [prompts, resources] = [kit.port(promptsPort), kit.port(resourcesPort)]
    const side = completionServer<CallContext>({
      prompt: prompts.completers,
      template: resources.completers,
      offered: () => offers.includes('completions') || prompts.completes() || resources.completes(),
      admit: exchange => kit.port(ratesPort).completion(exchange),
      context: kit.context,
    })
    return { sides: [side] }
  },
})

function completionServer<C>(options: CompletionOptions<C>): Side {
  const { offered } = options
  return {
    handlers: [[complete, { offered, execute: (exchange: Exchange) => answer(exchange, options) }]],
    capabilities: revision =>
      offered() && revision.detailedCapabilities && !completesUnannounced(revision) ? { completions: {} } : {},
  }
}

interface Asked {
  readonly ref: Reference
  readonly argument: { readonly name: string; readonly value: string }
  readonly context?: { readonly arguments?: Readonly<Record<string, string>> }
}

function answer<C>(exchange: Exchange, options: CompletionOptions<C>): Awaitable<CompletionResult> {
  options.admit(exchange)
  const { ref, argument, context } = exchange.params as unknown as Asked
  const [kind, name] = referredTo(ref)
  const completers = kind === 'prompt' ? ofPrompt(name, options) : ofTemplate(name, options)
  if (!completers.has(argument.name)) {
    throw new McpError('invalid-params', `params.argument.name: there is no "${clip(argument.name)}" to complete there`)
  }
  const completer = completers.get(argument.name)
  if (completer === undefined) return { completion: { values: [] } }
  const found = completer(argument.value, { arguments: context?.arguments ?? {}, ctx: options.context(exchange) })
  return isThenable(found) ? found.then(bounded) : bounded(found)
}

function ofPrompt<C>(name: string, { prompt }: CompletionOptions<C>): Completers<C> {
  const completers = prompt(name)
  if (completers !== undefined) return completers
  throw new McpError('invalid-params', `There is no prompt "${clip(name)}"; prompts/list names those there are`)
}

function ofTemplate<C>(uri: string, { template }: CompletionOptions<C>): Completers<C> {
  const completers = template(uri)
  if (completers !== undefined) return completers
  throw new McpError(
    'invalid-params',
    `There is no resource template "${clip(uri)}"; resources/templates/list names those there are`,
  )
}

function bounded(found: readonly string[] | Completion): CompletionResult {
  if (isCompletion(found)) {
    if (found.values.length <= maxValues) return { completion: found }
    return { completion: { ...found, values: found.values.slice(0, maxValues), hasMore: true } }
  }
  const hasMore = found.length > maxValues
  return { completion: { values: hasMore ? found.slice(0, maxValues) : found, total: found.length, hasMore } }
}

function isCompletion(found: readonly string[] | Completion): found is Completion {
  return !Array.isArray(found)
}
