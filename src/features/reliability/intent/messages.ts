/** Intent on the wire: what a call is for, in its `_meta`; what would serve that better, in its result's. */

import { bounded, plainSuggestion, type Suggestion } from '../../../core/suggestion.ts'
import { NS } from '../../../engine/method.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

/** The name of the extension. */
export const intentExtension = `${NS}/intent`

/** `suggest_only`: the call is not made, whatever is suggested. */
type IntentMode = 'advise' | 'suggest_only'

/** In the `_meta` of a call. */
export interface WireIntent {
  readonly intent: string
  readonly mode?: IntentMode
}

/** Also what an event suggests is written so. */
export type WireSuggestion = {
  readonly recommended_tool: string
  readonly reason: string
  readonly parameters?: Params
}

/** In that of its result. */
export interface WireSuggested {
  readonly suggestion?: WireSuggestion
}

/** Bytes of UTF-8. */
export const longestIntent = 2048

/** What a call says it is for; undefined where it says nothing that can be read. */
export function intentIn(meta: Params | undefined): string | undefined {
  const said = meta?.[intentExtension]
  return isRecord(said) && typeof said['intent'] === 'string' ? said['intent'] : undefined
}

export function isTooLong(intent: string): boolean {
  return intent.length > longestIntent || new TextEncoder().encode(intent).length > longestIntent
}

export function wireSuggestion(suggestion: Suggestion): WireSuggestion {
  const { tool, reason, arguments: parameters } = bounded(suggestion)
  return { recommended_tool: tool, reason, ...(parameters === undefined ? {} : { parameters }) }
}

/** What a peer suggests, as data. Undefined where it names no tool: then it suggests nothing. */
export function suggestionFrom(value: unknown): Suggestion | undefined {
  if (!isRecord(value) || typeof value['recommended_tool'] !== 'string' || value['recommended_tool'] === '') return undefined
  const { recommended_tool: tool, reason, parameters } = value
  return plainSuggestion(tool, typeof reason === 'string' ? reason : '', isRecord(parameters) ? parameters : undefined)
}
