/** The host's answer to `scope/elevate` (MCP Live 0.2 §7.5): decided, asked about where it has to be, and given back with its payload. */
import { type Why, whyText } from '../../core/why.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import type { Policy } from '../policy.ts'

type Elevated =
  | { readonly approved: true; readonly payload?: Record<string, unknown> }
  | { readonly approved: false; readonly reason: string; readonly data?: Why }

interface ElevationRequest {
  readonly featureSet: string
  readonly scope: Scope
}

export async function elevate(
  policy: Pick<Policy, 'decide' | 'approve'>,
  server: string,
  { featureSet, scope }: ElevationRequest,
  /** Told of the rule or the approval that allows it. */
  ruled: (rule: string) => void = () => {},
): Promise<Elevated> {
  const asked = { kind: 'scope', server, featureSet, scope } as const
  const verdict = await policy.decide(asked)
  if (verdict.do === 'deny' || verdict.do === 'hold') return refused(verdict.why)
  const payload = scope.payload === undefined ? {} : { payload: scope.payload }
  const answer = verdict.do === 'ask' ? await policy.approve(asked, verdict) : { yes: true }
  if (!answer.yes) return answer.why === undefined ? { approved: false, reason: 'It was refused' } : refused(answer.why)
  ruled(answer.rule ?? verdict.rule)
  return { approved: true, ...payload }
}

function refused(data: Why): Elevated {
  return { approved: false, reason: whyText(data), data }
}
