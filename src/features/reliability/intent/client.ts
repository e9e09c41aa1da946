/**
 * Saying what calls are for, to servers of which the host wants that; and what they suggest. A suggestion is a server's opinion:
 * only the host can have it followed, and no further than one step.
 */
import { problem } from '../../../core/problem.ts'
import type { Suggestion } from '../../../core/suggestion.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import {
  type CallManner,
  clientToolsPort,
  type ToolAnswer,
  type ToolCallExtension,
  type ToolCallOptions,
  toolCalls,
} from '../../mcp/tools/messages.ts'
import { intentExtension, isTooLong, longestIntent, suggestionFrom, type WireIntent } from './messages.ts'

export type { Suggestion } from '../../../core/suggestion.ts'

/** The call that was made, or was not, when something else was suggested. */
interface SuggestedFor {
  readonly tool: string
  readonly arguments: Params
  readonly intent: string
  /** The name of the server whose words they are. */
  readonly server: string
}

/** Told of a suggestion. True: the suggested call is made, and its outcome is that of the call. */
type OnSuggestion = (suggestion: Suggestion, call: SuggestedFor) => Awaitable<boolean>

/** What a call may say of its purpose. */
export interface IntentCallOptions {
  /** What it is for, in a sentence. Sent only to servers that may hear it (the option `intent` of connect). */
  readonly intent?: string
  /** The call is not made; the server only says what it would suggest for the `intent`. */
  readonly suggestOnly?: boolean
}

/** What an answer suggests. */
export interface IntentAnswer {
  /** Another call that the server thinks would serve better: its words, not more. */
  readonly suggestion: Suggestion | undefined
  /** The suggestion whose outcome this is, where the host had it followed. */
  readonly followed?: Suggestion
}

/** Whether servers hear what calls are for. */
export interface IntentClientOptions {
  /** Whether this server may hear what calls are for (the option `intent` of a call). Default false: it is not sent. */
  readonly intent?: boolean
  /** Told what the server suggests instead of a call; true: that is done. Without it nothing is followed. */
  readonly onSuggestion?: OnSuggestion
}

const reads: NonNullable<ToolCallExtension['reads']> = { suggestion: ({ _meta }) => suggestionIn(_meta) }

/** Says what calls are for, and hears suggestions. */
export const intentClient = defineClientFeature<IntentClientOptions>({
  name: 'intent',
  uses: [clientToolsPort],
  options: { intent: 'boolean', onSuggestion: 'function' },
  setup(kit, { intent: enabled = false, onSuggestion }) {
    const around: ToolCallExtension['around'] = next => {
      const withIntent = async (...[name, args, options, manner]: IntentParameters): Promise<ToolAnswer> => {
        const { intent, ...rest } = options
        const said = intentMeta(options, enabled, kit.session.opened)
        const tools = kit.port(clientToolsPort)
        await tools.learn(name, options.signal)
        const outcome = await next(name, args, said === undefined ? rest : { ...rest, meta: { ...rest.meta, ...said } }, manner)
        const { suggestion } = outcome as ToolAnswer & IntentAnswer
        if (said === undefined || suggestion === undefined || intent === undefined) return outcome
        const server = kit.session.opened.serverInfo?.name ?? ''
        if ((await onSuggestion?.(suggestion, { server, tool: name, arguments: args ?? {}, intent })) !== true) return outcome
        // What the server does not list is not called because it says so.
        if (tools.known(suggestion.tool) === undefined) return outcome
        // One step: without an intent nothing more is suggested.
        const { output: _, idempotencyKey: __, task: ___, suggestOnly: ____, ...again } = rest
        const followed = await next(suggestion.tool, suggestion.arguments ?? args, again, manner)
        return Object.assign(followed, { followed: suggestion })
      }
      return (name, args, options: IntentCall, manner) =>
        manner?.resumed !== true && (options.intent !== undefined || options.suggestOnly === true)
          ? withIntent(name, args, options, manner)
          : next(name, args, options, manner)
    }
    return {
      // Declared only where the host wants it said.
      side: { capabilities: revision => (enabled ? declaration(revision, intentExtension) : {}) },
      extensions: [extend(toolCalls, { name: 'intent', around, reads })],
    }
  },
})

type IntentCall = ToolCallOptions & IntentCallOptions & { readonly idempotencyKey?: string }
type IntentParameters = [name: string, args: Params | undefined, options: IntentCall, manner: CallManner | undefined]

/**
 * What a call is sent with; undefined where nothing is said: the host does not want it, or the server would not know what it is.
 * Throws where the call must not be made instead.
 */
function intentMeta(
  { intent, suggestOnly = false }: IntentCallOptions,
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
function suggestionIn(meta: Params | undefined): Suggestion | undefined {
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
