/** The transaction that a call takes part in: as its `_meta` says, or sealed in the state of a call that goes on. They must agree. */
import { carried, type Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { idPattern, idRule, transactionsExtension } from './messages.ts'

export interface TransactionOfCall {
  readonly transaction: string
  readonly step: string | undefined
  /** The order of a step that was put off, and goes on now. */
  readonly order: number | undefined
}

/** Throws where it cannot be read, or says two things. */
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
