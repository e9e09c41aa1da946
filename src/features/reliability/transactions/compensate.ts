/** Runs the inverse of a step: a call like any other, made by the runtime for whoever made the step. */
import { compensationKey, type Step, type Undone } from '../../../core/journal/unit.ts'
import type { Problem } from '../../../core/problem.ts'
import type { Engine } from '../../../engine/engine.ts'
import { callInternally } from '../../../engine/internal-calls.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { because, callTool, type FailedResult } from '../../mcp/tools/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { restoredRights } from './captured-rights.ts'

export interface CompensateParts {
  readonly engine: () => Engine
  /** Every failure as a problem. */
  readonly problemOf: (thrown: unknown) => Problem
  /** How long a transaction that has ended is remembered: then its id, and with it the keys of its compensations, may be used anew. */
  readonly retentionMs: number
}

export async function compensate(parts: CompensateParts, owner: string, transaction: string, step: Step): Promise<Undone> {
  const { inverse } = step
  if (inverse?.parameters === undefined)
    return { status: 'failed', code: 'OUTCOME_UNKNOWN', message: 'Nobody knows how it ended, and it is undone by its result' }
  const once = {
    idempotency_key: await compensationKey(transaction, step.id),
    idempotency_ttl_seconds: Math.max(1, Math.floor(parts.retentionMs / 1000)),
  }
  const params = { name: inverse.target, arguments: inverse.parameters, _meta: { [idempotencyExtension]: once } }
  try {
    const { exchange, result } = await callInternally(parts.engine(), callTool, params, {
      ...restoredRights(step.authority),
      owner,
    })
    if (exchange.asking?.pending === true || isInputRequired(result))
      return { status: 'failed', code: 'UNSUPPORTED', message: `${inverse.target} asks something, and nobody is there to answer` }
    return outcomeOf(parts, result as FailedResult)
  } catch (error) {
    return failed(parts.problemOf(error))
  }
}

function outcomeOf({ problemOf }: CompensateParts, result: FailedResult): Undone {
  if (result.isError !== true) return { status: 'undone' }
  return failed(result[because] ?? problemOf(new Error('The tool failed')))
}

function failed({ code, message, category }: Problem): Undone {
  return { status: 'failed', code, message, category }
}
