/** Client side of transactions: `client.transactionStatus`, the `_meta` of steps, and reports. */
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Peer } from '../../../revisions/index.ts'
import {
  getTransaction,
  transactionsExtension,
  type WireFailure,
  type WireStep,
  type WireStepStatus,
  type WireTransaction,
  type WireTransactionStatus,
} from './messages.ts'

/** What the feature adds to the client. */
export interface TransactionsClientApi {
  /** How a transaction of ours stands, whichever process began it. */
  transactionStatus(id: string, options?: RequestOptions): Promise<TransactionReport>
}

/** The client feature: declares the extension. */
export const transactionsClient = defineClientFeature({
  name: 'transactions',
  options: {},
  setup(kit) {
    const client: TransactionsClientApi = {
      transactionStatus: async (id, options) =>
        transactionReport(await kit.session.request(getTransaction, { transaction_id: id }, kit.send(options))),
    }
    return { client, side: { capabilities: revision => declaration(revision, transactionsExtension) } }
  },
})

/** Whether the server has transactions. */
export function knowsTransactions(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, transactionsExtension) !== undefined
}

/** The `_meta` of a call that takes part. */
export function stepMeta(transaction: string, step: string | undefined): NonNullable<SendOptions['meta']> {
  const said: WireStep = { transaction_id: transaction, ...(step === undefined ? {} : { step_id: step }) }
  return { [transactionsExtension]: said }
}

interface StepReport {
  readonly id: string
  readonly tool: string
  /** `indeterminate`: begun, and nobody knows how it ended. `no_compensation`: done, and nothing can take it back. */
  readonly status: WireStepStatus
  readonly error: WireFailure | undefined
}

/** How a transaction stands or ended, step by step. */
export interface TransactionReport {
  readonly id: string
  /** `partially_rolled_back`: some steps could not be taken back; they say why. */
  readonly status: WireTransactionStatus
  readonly reason: string | undefined
  /** In the order in which they began. */
  readonly steps: readonly StepReport[]
}

/** Converts a transaction from the wire. */
export function transactionReport({ transaction_id, status, reason, steps }: WireTransaction): TransactionReport {
  return {
    id: transaction_id,
    status,
    reason,
    steps: (steps ?? []).map(({ step_id, tool, status, error }) => ({ id: step_id, tool, status, error })),
  }
}
