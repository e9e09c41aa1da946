/** Host side of scopes (MCP Live 0.2 §7): answers `scope/elevate`. */
import type { Why } from '../../../core/suggestion.ts'
import type { Answerer, LiveGate } from '../answers/messages.ts'
import { type Elevation, elevateScope, type Scope } from './messages.ts'

/** Decides whether a set may act in a scope. */
export type OnElevate = (
  request: { readonly featureSet: string; readonly scope: Scope },
  context: { readonly signal: AbortSignal },
) => Promise<
  | { readonly approved: true; readonly payload?: Record<string, unknown> }
  | { readonly approved: false; readonly reason: string; readonly data?: Why }
>

/** Answers `scope/elevate`. */
export function scopeAnswerers(gate: LiveGate, onElevate: OnElevate): readonly Answerer[] {
  return [
    {
      method: elevateScope,
      waits: true,
      answer: async (params, { signal }): Promise<Elevation & { readonly data?: Why }> => {
        const { featureSet, scope } = params as unknown as { featureSet: string; scope: Scope }
        gate.admit(featureSet, 'scopes')
        const { label, payload } = scope
        const asked = { featureSet, scope: payload === undefined ? { label } : { label, payload } }
        const verdict = await onElevate(asked, { signal })
        if (!verdict.approved) {
          const { reason, data } = verdict
          return data === undefined ? { approved: false, reason } : { approved: false, reason, data }
        }
        const given = verdict.payload ?? payload
        return given === undefined ? { approved: true } : { approved: true, payload: given }
      },
    },
  ]
}
