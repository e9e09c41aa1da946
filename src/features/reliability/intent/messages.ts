/** Intents on the wire: the purpose in the `_meta` of a call, and the suggestion in the `_meta` of the result. */

import { clipSuggestion, plainSuggestion, type Suggestion } from '../../../core/suggestion.ts'
import { NS } from '../../../engine/method.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

/** The extension name. */
export const intentExtension = `${NS}/intent`

/** `suggest_only`: the call is not executed. */
type IntentMode = 'advise' | 'suggest_only'

/** The intent in the `_meta` of a call. */
export interface WireIntent {
  readonly intent: string
  readonly mode?: IntentMode
}

/** A suggested call; events use the same form. */
export type WireSuggestion = {
  readonly recommended_tool: string
  readonly reason: string
  readonly parameters?: Params
}

/** The suggestion in the `_meta` of a result. */
export interface WireSuggested {
  readonly suggestion?: WireSuggestion
}

/** The limit in bytes of UTF-8. */
export const longestIntent = 2048

/** The intent of a call; undefined if it has none. */
export function intentIn(meta: Params | undefined): string | undefined {
  const said = meta?.[intentExtension]
  return isRecord(said) && typeof said['intent'] === 'string' ? said['intent'] : undefined
}

/** Whether an intent exceeds the limit. */
export function isTooLong(intent: string): boolean {
  return intent.length > longestIntent || new TextEncoder().encode(intent).length > longestIntent
}

/** Writes a suggestion. */
export function wireSuggestion(suggestion: Suggestion): WireSuggestion {
  const { tool, reason, arguments: parameters } = clipSuggestion(suggestion)
  return { recommended_tool: tool, reason, ...(parameters === undefined ? {} : { parameters }) }
}

/** Reads a suggestion as data; undefined if it names no tool. */
export function suggestionFrom(value: unknown): Suggestion | undefined {
  if (!isRecord(value) || typeof value['recommended_tool'] !== 'string' || value['recommended_tool'] === '') return undefined
  const { recommended_tool: tool, reason, parameters } = value
  return plainSuggestion(tool, typeof reason === 'string' ? reason : '', isRecord(parameters) ? parameters : undefined)
}
