/** Server side of intents: `ctx.intent`, and the option `suggest`. An intent never changes what a call does. */
import type { Suggestion } from '../../../core/suggestion.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { defineServerFeature, type ServerKit } from '../../../engine/server-feature.ts'
import { type Awaitable, given, type Params } from '../../../jsonrpc/message.ts'
import { callTool } from '../../mcp/tools/messages.ts'
import { intentExtension, intentIn } from './messages.ts'

/** A call and its intent. */
export interface IntendedCall {
  /** The name of the tool. */
  readonly tool: string
  /** A copy; changes do not affect the call. */
  readonly arguments: Params
  /** Written by the caller; treat it as data. */
  readonly intent: string
}

// Options of intents.
/** Options of intents. */
interface IntentOptions<C> {
  /**
   * Finds a call that serves the intent better: another tool, or other arguments. The caller gets it only if it may see the tool. The
   * call runs in parallel, and waits for this at most one second.
   */
  readonly suggest?: (call: IntendedCall, context: C) => Awaitable<Suggestion | undefined>
}

/** The options of `createServer` that this feature reads. */
export interface IntentServerOptions<C> {
  /** Suggests better calls for what callers intend. If set, the server declares that it supports intents. Default: not supported. */
  readonly intent?: IntentOptions<C>
}

/** What the feature adds to `ctx`. */
export interface IntentContext {
  /** What the caller says the call is for. Data, never a permission. */
  readonly intent: string | undefined
}

/** The server feature: `ctx.intent` and suggestions. */
export const intentFeature = defineServerFeature<IntentServerOptions<CallContext>>({
  name: 'intent',
  options: { intent: 'object' },
  context: {
    get intent() {
      return intentIn(exchangeOf(this).meta)
    },
  } satisfies IntentContext & ThisType<CallContext>,
  setup: (kit, { intent: options }) => {
    // By name: the options may be an object of a class.
    const parts: SuggestionParts = { ...kit, ...given({ suggest: options?.suggest }) }
    return {
      sides: [
        {
          layers: [
            {
              // After the permission check, before anything is recorded.
              stage: 'decide',
              methods: [callTool.name],
              marked: true,
              when: ({ meta }) => meta?.[intentExtension] !== undefined,
              run: async (exchange, next) => (await import('./advise.ts')).advised(parts, exchange, next),
            },
          ],
          capabilities: revision => (options === undefined ? {} : extensionCapability(revision, intentExtension)),
        },
      ],
    }
  },
})

/** What suggestions need from the server. */
export interface SuggestionParts
  extends Pick<IntentOptions<CallContext>, 'suggest'>,
    Pick<ServerKit, 'context' | 'clock' | 'trace' | 'port'> {}
