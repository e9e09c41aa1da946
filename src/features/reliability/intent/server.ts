/** Hearing what calls are for. It never changes what a call does: at most it is answered with another one that may serve better. */
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import type { Suggestion } from '../../../core/suggestion.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import { callTool } from '../../mcp/tools/messages.ts'
import { intentExtension } from './messages.ts'

/** A call, and what it is for. */
export interface IntendedCall {
  readonly tool: string
  /** A copy: what is done to it is not done to the call. */
  readonly arguments: Params
  /** Somebody else's words. */
  readonly intent: string
}

export interface IntentOptions<C> {
  /**
   * Finds a call that would serve the intent better: another tool, or the same with other arguments; without any, with those of
   * the call. Told to the caller if the
   * tool is one it may see; the call goes its way meanwhile, and waits for this a second at most.
   */
  readonly suggest?: (call: IntendedCall, context: C) => Awaitable<Suggestion | undefined>
}

export interface IntentParts<C> {
  /** Undefined: clients are not told that it is heard. */
  readonly options: IntentOptions<C> | undefined
  readonly context: (exchange: Exchange) => C
  readonly clock: Clock
  readonly trace: Trace
  /** Whether there is a tool of that name. */
  readonly offers: (tool: string) => boolean
}

export function intentServer<C>(parts: IntentParts<C>): Side {
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
