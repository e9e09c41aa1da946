/** Using transactions: what a client declares, what its calls carry, and reports as objects of its own. */
import type { SendOptions } from '../../../engine/calls.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Peer } from '../../../revisions/index.ts'
import {
  transactionsExtension,
  type WireFailure,
  type WireStep,
  type WireStepStatus,
  type WireTransaction,
  type WireTransactionStatus,
} from './messages.ts'

export { beginTransaction, commitTransaction, getTransaction, rollbackTransaction } from './messages.ts'

export function transactionsClient(): Side {
  return { capabilities: revision => declaration(revision, transactionsExtension) }
}

export function knowsTransactions(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, transactionsExtension) !== undefined
}

/** The `_meta` of a call that takes part. */
export function stepMeta(transaction: string, step: string | undefined): NonNullable<SendOptions['meta']> {
  const said: WireStep = { transaction_id: transaction, ...(step === undefined ? {} : { step_id: step }) }
  return { [transactionsExtension]: said }
}

export interface StepReport {
  readonly id: string
  readonly tool: string
  /** `indeterminate`: begun, and nobody knows how it ended. `no_compensation`: done, and nothing can take it back. */
  readonly status: WireStepStatus
  readonly error: WireFailure | undefined
}

export interface TransactionReport {
  readonly id: string
  /** `partially_rolled_back`: some steps could not be taken back; they say why. */
  readonly status: WireTransactionStatus
  readonly reason: string | undefined
  /** In the order in which they began. */
  readonly steps: readonly StepReport[]
}

export function transactionReport({ transaction_id, status, reason, steps }: WireTransaction): TransactionReport {
  return {
    id: transaction_id,
    status,
    reason,
    steps: (steps ?? []).map(({ step_id, tool, status, error }) => ({ id: step_id, tool, status, error })),
  }
}
