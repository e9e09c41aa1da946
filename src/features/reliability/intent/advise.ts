/** Suggestions for calls that state their intent. Loaded with the first one. */
import { problem } from '../../../core/problem.ts'
import { checkSuggestion, type Suggestion } from '../../../core/suggestion.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { requestInternally } from '../../../engine/internal-calls.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type CallToolResult, listTools, toolsPort } from '../../mcp/tools/messages.ts'
import { intentExtension, isTooLong, longestIntent, type WireIntent, wireSuggestion } from './messages.ts'
import type { SuggestionParts } from './server.ts'

/** How long a response waits for a suggestion, counted from the start of the call. */
const waitMs = 1000
/** Limit of tool-list pages that are searched for the suggested tool. */
const mostPages = 100

/** Runs a call, and adds a suggestion if there is one in time. */
export async function advised(parts: SuggestionParts, exchange: Exchange, next: Next): Promise<unknown> {
  const { intent, mode } = wishOf(exchange)
  if (mode === 'suggest_only') return suggestOnly(exchange, await suggestion(parts, exchange, intent))
  // Runs in parallel; the call itself is unaffected.
  const coming = declaredSettings(exchange.peer, intentExtension) === undefined ? undefined : suggestion(parts, exchange, intent)
  const result = await next()
  if (coming === undefined || exchange.asking?.pending === true) return result
  if (!isRecord(result) || !Array.isArray(result['content'])) return result
  const found = await coming
  if (found === undefined) return result
  const { _meta } = result as unknown as CallToolResult
  return { ...result, _meta: { ..._meta, [intentExtension]: { suggestion: wireSuggestion(found) } } }
}

// Answers `suggest_only`: the tool is not called.
function suggestOnly(exchange: Exchange, found: Suggestion | undefined): CallToolResult {
  const tool = clip(exchange.params['name'] as string)
  const advice = found === undefined ? 'There is no better suggestion' : `Suggested instead: ${found.tool}. ${found.reason}`
  const text = `${tool} was not called, because only a suggestion was requested. ${advice}`
  const meta = found === undefined ? {} : { suggestion: wireSuggestion(found) }
  return { content: [{ type: 'text', text }], _meta: { [intentExtension]: meta } }
}

/** The author's suggestion, if it arrives in time and names a tool that the caller may see. Its failure does not affect the call. */
async function suggestion(parts: SuggestionParts, exchange: Exchange, intent: string): Promise<Suggestion | undefined> {
  const { suggest, clock, trace, context } = parts
  if (suggest === undefined) return undefined
  const tool = exchange.params['name'] as string
  // Cloned, so that the author's function cannot change the call.
  const args = structuredClone(exchange.params['arguments'] ?? {}) as Params
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const stop = clock.setTimeout(() => resolve(undefined), waitMs)
  try {
    const made = Promise.resolve(suggest({ tool, arguments: args, intent }, context(exchange)))
    const checked = made.then(found => (found === undefined ? undefined : visible(parts, exchange, found)))
    // A late suggestion may still fail; that is only traced.
    checked.catch(error => trace('suggestion-failed', error))
    return await Promise.race([checked, late])
  } catch (error) {
    trace('suggestion-failed', error)
    return undefined
  } finally {
    stop()
  }
}

/** A suggestion must not reveal a tool that the caller's list does not show. */
async function visible({ port }: SuggestionParts, exchange: Exchange, found: Suggestion): Promise<Suggestion | undefined> {
  checkSuggestion(found, 'A suggestion')
  const { tool } = found
  if (port(toolsPort).catalog.get(tool) === undefined) throw new TypeError(`The suggested tool "${clip(tool)}" does not exist`)
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const { tools, nextCursor } = await requestInternally(exchange, listTools, cursor === undefined ? {} : { cursor })
    if (tools.some(({ name }) => name === tool)) return found
    if (nextCursor === undefined) return undefined
    cursor = nextCursor
  }
  return undefined
}

// Reads and checks the intent in `_meta`.
function wishOf({ meta }: Exchange): WireIntent {
  const said = meta?.[intentExtension]
  const where = `params._meta["${intentExtension}"]`
  if (!isRecord(said) || typeof said['intent'] !== 'string')
    throw new McpError('invalid-params', `${where} must be an object with a string member intent`)
  const { intent, mode = 'advise' } = said
  if (mode !== 'advise' && mode !== 'suggest_only')
    throw new McpError('invalid-params', `${where}.mode must be advise or suggest_only`)
  if (isTooLong(intent))
    throw problem('INVALID_INPUT', `The intent is longer than ${longestIntent} bytes`, {
      suggestion: 'Describe the purpose of the call in one or two sentences',
    })
  return { intent, mode }
}
