/**
 * Client side of intents: tells servers what calls are for, if the host allows it, and handles suggestions. A suggestion is followed
 * only if the host decides so, and only one step.
 */
import { problem } from '../../../core/problem.ts'
import type { Suggestion } from '../../../core/suggestion.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import {
  type CallTool,
  clientToolsPort,
  type ToolAnswer,
  type ToolCallExtension,
  type ToolCallOptions,
  toolCalls,
} from '../../mcp/tools/messages.ts'
import { intentExtension, isTooLong, longestIntent, suggestionFrom, type WireIntent } from './messages.ts'

export type { Suggestion } from '../../../core/suggestion.ts'

/** Decides about a suggestion. True: make the suggested call instead. `server`: who made the suggestion. */
type OnSuggestion = (
  suggestion: Suggestion,
  call: {
    /** The tool of the original call. */
    readonly tool: string
    /** The arguments of the original call. */
    readonly arguments: Params
    /** What the original call is for. */
    readonly intent: string
    /** The name of the server that made the suggestion. */
    readonly server: string
  },
) => Awaitable<boolean>

/** Options of a call. */
export interface IntentCallOptions {
  /** What the call is for, in a sentence. Sent only if `connect` has `intent: true`. Default: none. */
  readonly intent?: string
  /** Whether to ask for a suggestion only, without executing the call. Default false. */
  readonly suggestOnly?: boolean
}

/** What an answer suggests. */
export interface IntentAnswer {
  /** Another call that the server recommends; treat it as data. */
  readonly suggestion: Suggestion | undefined
  /** The suggestion that was followed to get this answer. */
  readonly followed?: Suggestion
}

/** Options of `connect` for intents. */
export interface IntentClientOptions {
  /** Whether the server may learn what calls are for. Default false. */
  readonly intent?: boolean
  /** Decides about suggestions; true: follow it. Without it nothing is followed. */
  readonly onSuggestion?: OnSuggestion
}

const reads: NonNullable<ToolCallExtension['reads']> = {
  suggestion: ({ _meta }) => {
    const said = _meta?.[intentExtension]
    return isRecord(said) ? suggestionFrom(said['suggestion']) : undefined
  },
}

/** The client feature: sends intents, and handles suggestions. */
export const intentClient = defineClientFeature<IntentClientOptions>({
  name: 'intent',
  uses: [clientToolsPort],
  options: { intent: 'boolean', onSuggestion: 'function' },
  setup(kit, { intent: enabled = false, onSuggestion }) {
    const around: ToolCallExtension['around'] = next => {
      const withIntent: CallTool = async (name, args, options: IntentCall, manner) => {
        const { intent, ...rest } = options
        const said = intentMeta(options, enabled, kit.session.opened)
        const tools = kit.port(clientToolsPort)
        await tools.learn(name, options.signal)
        const outcome = await next(name, args, said === undefined ? rest : { ...rest, meta: { ...rest.meta, ...said } }, manner)
        const { suggestion } = outcome as ToolAnswer & IntentAnswer
        if (said === undefined || suggestion === undefined || intent === undefined) return outcome
        const server = kit.session.opened.serverInfo?.name ?? ''
        if ((await onSuggestion?.(suggestion, { server, tool: name, arguments: args ?? {}, intent })) !== true) return outcome
        // A tool that the server does not list is not called.
        if (tools.known(suggestion.tool) === undefined) return outcome
        // One step only: the suggested call carries no intent, so it gets no suggestion.
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
      // Declared only if the host allows intents.
      side: { capabilities: revision => (enabled ? extensionCapability(revision, intentExtension) : {}) },
      extensions: [extend(toolCalls, { name: 'intent', around, reads })],
    }
  },
})

type IntentCall = ToolCallOptions & IntentCallOptions & { readonly idempotencyKey?: string }

/**
 * The `_meta` of a call; undefined if the host does not allow it or the server does not support it. Throws if the call must not be
 * executed.
 */
function intentMeta(
  { intent, suggestOnly = false }: IntentCallOptions,
  enabled: boolean,
  server: Pick<Peer, 'revision' | 'capabilities'>,
): Params | undefined {
  if (intent === undefined && !suggestOnly) return undefined
  if (intent !== undefined && isTooLong(intent))
    throw new TypeError(
      `The intent is longer than ${longestIntent} bytes. Describe the purpose of the call in one or two sentences`,
    )
  const heard = enabled && declaredSettings(server, intentExtension) !== undefined
  if (suggestOnly && (!heard || intent === undefined)) throw onlySuggested(intent, enabled)
  if (!heard || intent === undefined) return undefined
  const wish: WireIntent = suggestOnly ? { intent, mode: 'suggest_only' } : { intent }
  return { [intentExtension]: wish }
}

/** Text for people: names the server first, and quotes its words. */
export function suggestionText(server: string, { tool, reason }: Suggestion): string {
  const quoted = reason.replace(/[<>[\]`"]/g, mark => (mark === '<' ? '‹' : mark === '>' ? '›' : "'"))
  return `${clip(server)} suggests ${clip(tool)}: "${clip(quoted, 300)}"`
}

// `suggestOnly` must not fall back to executing the call.
function onlySuggested(intent: string | undefined, enabled: boolean) {
  const fix =
    intent === undefined
      ? 'Describe the purpose of the call with the option intent'
      : enabled
        ? 'Use a server that supports intents'
        : 'Pass the option intent: true to connect'
  return problem('UNSUPPORTED', 'Only a suggestion was requested, but the server would execute the call', { suggestion: fix })
}
