/** Intent on the wire: what a call is for, in its `_meta`; what would serve that better, in its result's. */
import { NS } from '../../../core/namespace.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

export const intentExtension = `${NS}/intent`

/** `suggest_only`: the call is not made, whatever is suggested. */
export type IntentMode = 'advise' | 'suggest_only'

/** In the `_meta` of a call. */
export interface WireIntent {
  readonly intent: string
  readonly mode?: IntentMode
}

export interface WireSuggestion {
  readonly recommended_tool: string
  readonly reason: string
  readonly parameters?: Params
}

/** In that of its result. */
export interface WireSuggested {
  readonly suggestion?: WireSuggestion
}

/** Another call that may serve better. Somebody's opinion: nothing follows from it by itself. */
export interface Suggestion {
  readonly tool: string
  /** Why, in a sentence. */
  readonly reason: string
  /** With what. Default: as it was called. */
  readonly arguments?: Params
}

/** Bytes of UTF-8. */
export const longestIntent = 2048
/** Characters of a reason. */
export const longestReason = 1000

/** What a call says it is for; undefined where it says nothing that can be read. */
export function intentIn(meta: Params | undefined): string | undefined {
  const said = meta?.[intentExtension]
  return isRecord(said) && typeof said['intent'] === 'string' ? said['intent'] : undefined
}

export function isTooLong(intent: string): boolean {
  return intent.length > longestIntent || new TextEncoder().encode(intent).length > longestIntent
}

export function wireSuggestion({ tool, reason, arguments: parameters }: Suggestion): WireSuggestion {
  return {
    recommended_tool: tool,
    reason: clip(reason, longestReason),
    ...(parameters === undefined ? {} : { parameters }),
  }
}

/** What a peer suggests, as data: bounded, and without what would hide or turn what stands beside it. Undefined where it is none. */
export function suggestionFrom(value: unknown): Suggestion | undefined {
  if (!isRecord(value) || typeof value['recommended_tool'] !== 'string' || value['recommended_tool'] === '') return undefined
  const { recommended_tool: tool, reason, parameters } = value
  return {
    tool: plain(tool, 128),
    reason: typeof reason === 'string' ? plain(reason, longestReason) : '',
    ...(isRecord(parameters) ? { arguments: parameters } : {}),
  }
}

/** Control and format characters, line breaks too. */
function plain(text: string, length: number): string {
  return clip(text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ').toWellFormed(), length)
}
