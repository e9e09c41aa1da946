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
import { type Completers, type Completion, type CompletionResult, complete, completesUnannounced } from './messages.ts'

/** The most values that one answer may hold. */
const maxValues = 100

/** Suggestions for the arguments of prompts and the variables of templates. */
export const completionFeature = defineServerFeature<OfferingOptions>({
  name: 'completion',
  setup(kit, { offers = [] }) {
    const [prompts, resources] = [kit.port(promptsPort), kit.port(resourcesPort)]
    const offered = (): boolean => offers.includes('completions') || prompts.completes() || resources.completes()
    const completersOf = (ref: Reference): Completers<CallContext> => {
      const [kind, name] = referredTo(ref)
      const completers = kind === 'prompt' ? prompts.completers(name) : resources.completers(name)
      if (completers !== undefined) return completers
      const [what, list] = kind === 'prompt' ? ['prompt', 'prompts/list'] : ['resource template', 'resources/templates/list']
      throw new McpError('invalid-params', `There is no ${what} "${clip(name)}"; ${list} lists the available ones`)
    }
    const execute = (exchange: Exchange): Awaitable<CompletionResult> => {
      kit.port(ratesPort).completion(exchange)
      const { ref, argument, context } = exchange.params as unknown as CompletionParams
      const completers = completersOf(ref)
      if (!completers.has(argument.name)) {
        throw new McpError(
          'invalid-params',
          `params.argument.name: "${clip(argument.name)}" does not exist, or has no completion`,
        )
      }
      const completer = completers.get(argument.name)
      if (completer === undefined) return { completion: { values: [] } }
      const found = completer(argument.value, { arguments: context?.arguments ?? {}, ctx: kit.context(exchange) })
      return isThenable(found) ? found.then(bounded) : bounded(found)
    }
    const side: Side = {
      handlers: [[complete, { offered, execute }]],
      capabilities: revision =>
        offered() && revision.detailedCapabilities && !completesUnannounced(revision) ? { completions: {} } : {},
    }
    return { sides: [side] }
  },
})

interface CompletionParams {
  readonly ref: Reference
  readonly argument: { readonly name: string; readonly value: string }
  readonly context?: { readonly arguments?: Readonly<Record<string, string>> }
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
