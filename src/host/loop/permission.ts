/** Permission helpers of the loop: asks the policy and the user, and converts refusals into problems, errors and audit entries. */
import { durationText } from '../../core/clock.ts'
import { Problem, problem } from '../../core/problem.ts'
import { type Why, why } from '../../core/suggestion.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Note } from '../../policy/audit/host-audit.ts'
import type { Asked } from '../../policy/rules/rule.ts'
import type { LoopParts } from './ports.ts'

/** The result of asking. */
interface Permission {
  /** Why it is refused; undefined where it is allowed. */
  readonly why: Why | undefined
  /** The rule, grant or approval that allows it. */
  readonly rule?: string
  /** Somebody was asked, so things may have changed meanwhile. */
  readonly asked: boolean
  /** Who answered, where the answer says so. */
  readonly by?: string
}

/** Asks the policy about a request, and the user where the policy says `ask`. */
export async function askPermission(policy: LoopParts['policy'], asked: Asked): Promise<Permission> {
  const verdict = await policy.decide(asked)
  if (verdict.do === 'deny' || verdict.do === 'hold') return { why: verdict.why, asked: false }
  if (verdict.do !== 'ask') return { why: undefined, rule: verdict.rule, asked: false }
  const { yes, why: said, rule: approval, by } = await policy.approve(asked, verdict)
  const { rule } = verdict
  const no =
    said ??
    why('NOT_APPROVED', rule, 'The user did not approve this', `Approve it when asked, or allow it in the policy (${rule})`)
  const person = { asked: true, ...(by !== undefined && { by }) }
  return yes ? { why: undefined, rule: approval ?? rule, ...person } : { why: no, ...person }
}

/** A refusal as a problem. */
export function deniedProblem(said: Why): Problem {
  return whyProblem(said, 'PERMISSION_DENIED')
}

/** Reasons by problem. A WeakMap, because a server could put a `why` into its own problem. */
const reasons = new WeakMap<Problem, Why>()

/** A reason as a problem, from which it can be recovered. */
export function whyProblem(said: Why, code = said.code): Problem {
  const made = problem(code, said.message, { suggestion: said.fix, details: { why: said } })
  reasons.set(made, said)
  return made
}

/** The reason that the host gave; undefined where it gave none. */
function reasonOf(error: unknown): Why | undefined {
  return error instanceof Problem ? reasons.get(error) : undefined
}

/** The reason of a problem; made from its message where the host gave none. */
export function whyOf(error: Problem, rule: string): Why {
  const told = reasonOf(error)
  if (told !== undefined) return told
  const wait = error.retryAfter === undefined ? '' : `. Wait ${durationText(error.retryAfter)}`
  return why(error.code, rule, error.message, `${error.suggestion ?? 'Check the audit log'}${wait}`)
}

/** Whether an error is an abort. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}

/** Whether a value has the shape of a `Why`. */
export function isWhy(value: unknown): value is Why {
  return typeof value === 'object' && value !== null && 'code' in value && 'rule' in value && 'fix' in value && 'message' in value
}

/** Writes the outcome. `rule`: what allowed it. */
type Tell = (outcome: Note['outcome'], said?: Why, rule?: string) => void

/** Returns a function that writes the outcome of one request to the audit log, with the time since now. */
export function outcomeNoter(
  { audit, clock }: Pick<LoopParts, 'audit' | 'clock'>,
  about: Pick<Note, 'server' | 'featureSet' | 'conversation' | 'kind'>,
): Tell {
  const began = clock.now()
  return (outcome, said, rule) => void audit.note({ ...about, outcome, ms: clock.now() - began, why: said, rule })
}

/** The error for a server whose request is refused or failed; also audits it. */
export function hostRefusalError(tell: Tell, cause: unknown, kind = 'invalid-request'): McpError {
  if (isWhy(cause)) {
    tell('refused', cause)
    return new McpError(kind, cause.message, { data: cause })
  }
  const known = classify(cause)
  const said = whyOf(known, 'model')
  const byRule = reasonOf(cause) !== undefined
  const late = known.code === 'OPERATION_TIMEOUT' ? 'timeout' : 'failure'
  tell(byRule ? 'refused' : late, said)
  const wait = known.retryAfter === undefined ? {} : { retryAfterMs: known.retryAfter }
  return new McpError(byRule ? kind : 'internal', said.message, { data: { ...said, ...wait }, cause })
}
