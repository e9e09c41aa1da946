/** Runs the compensation of a step: an internal call with the rights of the original caller. */
import { compensationKey, type Step, type UndoOutcome } from '../../../core/journal/unit.ts'
import type { Problem } from '../../../core/problem.ts'
import { callInternally } from '../../../engine/internal-calls.ts'
import type { Caller, Carrier, Principal } from '../../../jsonrpc/connection.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { callTool, type FailedResult, failureProblem } from '../../mcp/tools/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { problemPort } from '../problem/messages.ts'
import type { TransactionsParts } from './server.ts'

/** Runs the compensation of a step. */
export async function compensate(
  { engine, port, retentionMs }: TransactionsParts,
  owner: string,
  transaction: string,
  { id, inverse, authority }: Step,
): Promise<UndoOutcome> {
  if (inverse?.parameters === undefined)
    return {
      status: 'failed',
      code: 'OUTCOME_UNKNOWN',
      message: 'The outcome of this step is unknown, and its compensation needs the result',
    }
  const once = {
    idempotency_key: await compensationKey(transaction, id),
    idempotency_ttl_seconds: Math.max(1, Math.floor(retentionMs / 1000)),
  }
  const params = { name: inverse.target, arguments: inverse.parameters, _meta: { [idempotencyExtension]: once } }
  try {
    const { exchange, result } = await callInternally(engine(), callTool, params, { ...restoredRights(authority), owner })
    if (exchange.asking?.pending === true || isInputRequired(result))
      return {
        status: 'failed',
        code: 'UNSUPPORTED',
        message: `The compensation ${inverse.target} asks a question, but no user can answer it during a rollback`,
      }
    const { isError, [failureProblem]: why } = result as FailedResult
    return isError === true ? failed(why ?? port(problemPort).of(new Error('The tool failed'))) : { status: 'undone' }
  } catch (error) {
    return failed(port(problemPort).of(error))
  }
}

function failed({ code, message, category }: Problem): UndoOutcome {
  return { status: 'failed', code, message, category }
}

interface Authority {
  readonly carrier: Carrier
  readonly principal?: Omit<Principal, 'expiresAt'>
  /** What a grant gave, where one was presented. */
  readonly scopes?: readonly string[]
}

/** The rights of a caller, without the expiry of its token. */
export function capturedRights({ carrier, principal }: Caller, scopes: readonly string[] | undefined): Authority {
  const given = scopes === undefined ? {} : { scopes }
  if (principal === undefined) return { carrier, ...given }
  const { expiresAt: _, ...rest } = principal
  // Not more than was allowed at that time.
  const narrowed = scopes === undefined || rest.scopes === undefined ? rest : { ...rest, scopes }
  return { carrier, principal: narrowed, ...given }
}

/** The caller with its original rights. */
function restoredRights(authority: unknown): { readonly caller: Caller; readonly scopes: readonly string[] | undefined } {
  // The store contains only what this package has written.
  const { carrier, principal, scopes } = (isRecord(authority) ? authority : { carrier: 'http' }) as unknown as Authority
  return { caller: { carrier, connection: {}, ...(principal === undefined ? {} : { principal }) }, scopes }
}
