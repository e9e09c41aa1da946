/** The host's answer to `scope/elevate` (MCP Live 0.2 §7.5): decided, asked about where it has to be, and given back with its payload. */
import { type Why, whyText } from '../../core/why.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import type { Policy } from './policy.ts'

export type Elevated =
  | { readonly approved: true; readonly payload?: Record<string, unknown> }
  | { readonly approved: false; readonly reason: string; readonly data?: Why }

export interface ElevationRequest {
  readonly featureSet: string
  readonly scope: Scope
}

export async function elevate(
  policy: Pick<Policy, 'decide' | 'approve'>,
  server: string,
  { featureSet, scope }: ElevationRequest,
): Promise<Elevated> {
  const asked = { kind: 'scope', server, featureSet, scope } as const
  const verdict = await policy.decide(asked)
  if (verdict.do === 'deny' || verdict.do === 'hold') return refused(verdict.why)
  if (verdict.do === 'ask') {
    const { yes, why } = await policy.approve(asked, verdict)
    if (!yes) return why === undefined ? { approved: false, reason: 'It was refused' } : refused(why)
  }
  return { approved: true, ...(scope.payload !== undefined && { payload: scope.payload }) }
}

function refused(data: Why): Elevated {
  return { approved: false, reason: whyText(data), data }
}
