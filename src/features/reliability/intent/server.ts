/** Hearing what calls are for. It never changes what a call does: at most it is answered with another one that may serve better. */
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import type { Suggestion } from '../../../core/suggestion.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { intentExtension, intentIn } from './messages.ts'

/** A call, and what it is for. */
export interface IntendedCall {
  readonly tool: string
  /** A copy: what is done to it is not done to the call. */
  readonly arguments: Params
  /** Somebody else's words. */
  readonly intent: string
}

interface IntentOptions<C> {
  /**
   * Finds a call that would serve the intent better: another tool, or the same with other arguments; without any, with those of
   * the call. Told to the caller if the
   * tool is one it may see; the call goes its way meanwhile, and waits for this a second at most.
   */
  readonly suggest?: (call: IntendedCall, context: C) => Awaitable<Suggestion | undefined>
}

/** The options of `createServer` for it. */
export interface IntentServerOptions<C> {
  /** What callers say that calls are for, and what they are told of it. Given, clients are told that they may say it. */
  readonly intent?: IntentOptions<C>
}

/** What it adds to the context of a call. */
export interface IntentContext {
  /** What the caller says the call is for. Somebody else's words: they describe, and permit nothing. */
  readonly intent: string | undefined
}

/** What calls are for: `ctx.intent`, and suggestions. */
export const intentFeature = defineServerFeature<IntentServerOptions<CallContext>>({
  name: 'intent',
  options: { intent: 'object' },
  context: {
    get intent() {
      return intentIn(exchangeOf(this).meta)
    },
  } satisfies IntentContext & ThisType<CallContext>,
  setup: (kit, { intent: options }) => {
    const { context, clock, trace } = kit
    const offers = (tool: string): boolean => kit.port(toolsPort).catalog.get(tool) !== undefined
    return { sides: [intentServer({ options, context, clock, trace, offers })] }
  },
})

export interface IntentParts<C> {
  /** Undefined: clients are not told that it is heard. */
  readonly options: IntentOptions<C> | undefined
  readonly context: (exchange: Exchange) => C
  readonly clock: Clock
  readonly trace: Trace
  /** Whether there is a tool of that name. */
  readonly offers: (tool: string) => boolean
}

function intentServer<C>(parts: IntentParts<C>): Side {
  return {
    layers: [
      {
        // Whether it may be called at all is decided before; nothing is written down of it yet.
        stage: 'decide',
        methods: [callTool.name],
        marked: true,
        when: ({ meta }) => meta !== undefined && Object.hasOwn(meta, intentExtension),
        run: async (exchange, next) => (await import('./advise.ts')).advised(parts, exchange, next),
      },
    ],
    capabilities: revision => (parts.options === undefined ? {} : declaration(revision, intentExtension)),
  }
}
