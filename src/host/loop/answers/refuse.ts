/** Refusals that servers get: why, as `data`, and noted in the audit. */
import type { Why } from '../../../core/why.ts'
import { classify } from '../../../features/reliability/problem/classify.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { LoopParts } from '../loop-parts.ts'
import { isWhy, reasonOf, whyOf } from '../permit.ts'
import type { LoopNote } from '../ports.ts'

/** `rule`: what allowed it. */
export type Tell = (outcome: LoopNote['outcome'], said?: Why, rule?: string) => void

export function noted(
  { audit, clock }: Pick<LoopParts, 'audit' | 'clock'>,
  {
    began,
    ...about
  }: Pick<LoopNote, 'server' | 'featureSet' | 'inferenceId' | 'conversation' | 'kind'> & { readonly began: number },
): Tell {
  return (outcome, said, rule) =>
    void audit.note({
      ...about,
      outcome,
      ms: clock.now() - began,
      ...(said && { why: said }),
      ...(rule !== undefined && { rule }),
    })
}

/** What is thrown at a server whose wish is not granted, or failed. */
export function refuse(tell: Tell, cause: unknown, kind = 'invalid-request'): McpError {
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
