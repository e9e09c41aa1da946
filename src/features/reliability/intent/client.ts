/**
 * Saying what calls are for, to servers of which the host wants that; and what they suggest. A suggestion is a server's opinion:
 * only the host can have it followed, and no further than one step.
 */
import { problem } from '../../../core/problem.ts'
import type { Suggestion } from '../../../core/suggestion.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { intentExtension, isTooLong, longestIntent, suggestionFrom, type WireIntent } from './messages.ts'

export type { Suggestion } from '../../../core/suggestion.ts'

/** The call that was made, or was not, when something else was suggested. */
export interface SuggestedFor {
  readonly tool: string
  readonly arguments: Params
  readonly intent: string
  /** The name of the server whose words they are. */
  readonly server: string
}

/** Told of a suggestion. True: the suggested call is made, and its outcome is that of the call. */
export type OnSuggestion = (suggestion: Suggestion, call: SuggestedFor) => Awaitable<boolean>

export interface IntentWish {
  readonly intent?: string
  readonly suggestOnly?: boolean
}

/** Declared only where the host wants it said. */
export function intentClient(enabled: boolean): Side {
  return { capabilities: revision => (enabled ? declaration(revision, intentExtension) : {}) }
}

/**
 * What a call is sent with; undefined where nothing is said: the host does not want it, or the server would not know what it is.
 * Throws where the call must not be made instead.
 */
export function intentMeta(
  { intent, suggestOnly = false }: IntentWish,
  enabled: boolean,
  server: Pick<Peer, 'revision' | 'capabilities'>,
): Params | undefined {
  if (intent === undefined && !suggestOnly) return undefined
  if (intent !== undefined && isTooLong(intent))
    throw new TypeError(`The intent is longer than ${longestIntent} bytes: say in a sentence or two what the call is for`)
  const heard = enabled && declared(server, intentExtension) !== undefined
  if (suggestOnly && (!heard || intent === undefined)) throw onlySuggested(intent, enabled)
  if (!heard || intent === undefined) return undefined
  const wish: WireIntent = suggestOnly ? { intent, mode: 'suggest_only' } : { intent }
  return { [intentExtension]: wish }
}

/** Undefined where there is none. */
export function suggestionIn(meta: Params | undefined): Suggestion | undefined {
  const said = meta?.[intentExtension]
  return typeof said === 'object' && said !== null && 'suggestion' in said ? suggestionFrom(said.suggestion) : undefined
}

/** For people: whose words they are comes first, and they stand in quotation marks. */
export function suggestionText(server: string, { tool, reason }: Suggestion): string {
  const quoted = reason.replace(/[<>[\]`"]/g, mark => (mark === '<' ? '‹' : mark === '>' ? '›' : "'"))
  return `${clip(server)} suggests ${clip(tool)}: "${clip(quoted, 300)}"`
}

function onlySuggested(intent: string | undefined, enabled: boolean) {
  const fix =
    intent === undefined
      ? 'Say with the option intent what the call is for'
      : enabled
        ? 'Ask a server that knows intents'
        : 'Give connect the option intent: true'
  return problem('UNSUPPORTED', 'Only a suggestion was wished for, and the server would make the call', { suggestion: fix })
}
