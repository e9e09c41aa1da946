/** Asking the policy, and the user where it says so. */
import { durationText } from '../../core/duration.ts'
import { type Problem, problem } from '../../core/problem.ts'
import { type Why, why } from '../../core/why.ts'
import type { LoopAsked, LoopPolicy } from './ports.ts'

/** Undefined: it may be done. */
export async function refusal(policy: LoopPolicy, asked: LoopAsked): Promise<Why | undefined> {
  const verdict = await policy.decide(asked)
  if (verdict.do === 'deny' || verdict.do === 'hold') return verdict.why
  if (verdict.do !== 'ask') return undefined
  const { yes, why: said } = await policy.approve(asked, verdict)
  if (yes) return undefined
  return (
    said ??
    why('NOT_APPROVED', verdict.rule, 'The user did not agree', `Agree when asked, or allow it in the policy (${verdict.rule})`)
  )
}

/** Throws where it may not be done. */
export async function permit(policy: LoopPolicy, asked: LoopAsked): Promise<void> {
  const said = await refusal(policy, asked)
  if (said !== undefined) throw refused(said)
}

/** The same, as what is thrown. */
export function refused(said: Why): Problem {
  return problem('PERMISSION_DENIED', said.message, { suggestion: said.fix, details: { why: said } })
}

/** Why a failure came about, for those who did not write it as one. */
export function whyOf(error: Problem, rule: string): Why {
  const told = error.details?.['why']
  if (isWhy(told)) return told
  const wait = error.retryAfter === undefined ? '' : ` Wait ${durationText(error.retryAfter)}.`
  return why(error.code, rule, error.message, `${error.suggestion ?? 'Look into the audit'}${wait}`)
}

export function isWhy(value: unknown): value is Why {
  return typeof value === 'object' && value !== null && 'code' in value && 'rule' in value && 'fix' in value && 'message' in value
}
