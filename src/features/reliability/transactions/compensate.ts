/** Runs the compensation of a step: an internal call with the rights of the original caller. Also reads the transaction of a call. */
import { compensationKey, type Step, type Undone } from '../../../core/journal/unit.ts'
import type { Problem } from '../../../core/problem.ts'
import type { Engine } from '../../../engine/engine.ts'
import { carried, type Exchange } from '../../../engine/exchange.ts'
import { callInternally } from '../../../engine/internal-calls.ts'
import type { Caller, Carrier, Principal } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { because, callTool, type FailedResult } from '../../mcp/tools/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { idPattern, idRule, transactionsExtension } from './messages.ts'

/** What a compensation needs. */
export interface CompensateParts {
  readonly engine: () => Engine
  /** Every failure as a problem. */
  readonly problemOf: (thrown: unknown) => Problem
  /** How long ended transactions are remembered; as long their compensations are idempotent. */
  readonly retentionMs: number
}

/** Runs the compensation of a step. */
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

/** Which transaction and step a call names. */
export interface TransactionOfCall {
  readonly transaction: string
  readonly step: string | undefined
  /** The order of a step that continues. */
  readonly order: number | undefined
}

/** Reads the transaction of a call. Throws if it is malformed or contradictory. */
export function transactionOf(exchange: Exchange): TransactionOfCall {
  const { meta } = exchange
  const [order, ...rest] = exchange.get(carried)?.[transactionsExtension]?.split(' ') ?? []
  const said = meta !== undefined && Object.hasOwn(meta, transactionsExtension) ? meta[transactionsExtension] : undefined
  if (said === undefined) return { transaction: rest.join(' '), step: undefined, order: Number(order) }
  if (!isRecord(said)) throw invalid(`params._meta["${transactionsExtension}"] must be an object with transaction_id`)
  const { transaction_id: transaction, step_id: step } = said
  if (typeof transaction !== 'string' || !idPattern.test(transaction)) throw invalid(`transaction_id must be ${idRule}`)
  if (step !== undefined && !(typeof step === 'string' && idPattern.test(step))) throw invalid(`step_id must be ${idRule}`)
  if (order !== undefined && rest.join(' ') !== transaction)
    throw invalid('transaction_id is another one than where the call began')
  return { transaction, step, order: order === undefined ? undefined : Number(order) }
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', message)
}
