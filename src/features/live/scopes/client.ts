/** Host side of scopes (MCP Live 0.2 §7): answers `scope/elevate`. */

import type { Why } from '../../../core/suggestion.ts'
import { given } from '../../../jsonrpc/message.ts'
import type { Answerer, LiveGate } from '../answers/messages.ts'
import { elevateScope, type Scope } from './messages.ts'

/** Decides whether a set may act in a scope. */
export type OnElevate = (
  request: {
    /** The feature set that asks. */
    readonly featureSet: string
    /** What it wants to act on. */
    readonly scope: Scope
  },
  context: {
    /** Aborted when the server cancels the request. */
    readonly signal: AbortSignal
  },
) => Promise<
  | {
      /** Whether the set may act there. */
      readonly approved: true
      /** The scope that is granted, if it differs from the requested one. */
      readonly payload?: Record<string, unknown>
    }
  | {
      /** Whether the set may act there. */
      readonly approved: false
      /** Why it is refused. */
      readonly reason: string
      /** The rule that refused it, and what can be done. */
      readonly data?: Why
    }
>

/** Answers `scope/elevate`. */
export function scopeAnswerers(gate: LiveGate, onElevate: OnElevate): readonly Answerer[] {
  return [
    {
      method: elevateScope,
      waits: true,
      answer: async (params, { signal }) => {
        const { featureSet, scope } = params as unknown as { featureSet: string; scope: Scope }
        gate.admit(featureSet, 'scopes')
        const { label, payload } = scope
        const asked = { featureSet, scope: { label, ...given({ payload }) } }
        const verdict = await onElevate(asked, { signal })
        if (verdict.approved) return { approved: true, ...given({ payload: verdict.payload ?? payload }) }
        return { approved: false, reason: verdict.reason, ...given({ data: verdict.data }) }
      },
    },
  ]
}
