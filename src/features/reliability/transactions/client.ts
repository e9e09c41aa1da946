/** Client side of transactions: `client.transactionStatus`, and reports. */
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { getTransaction, transactionsExtension, type WireStepReport, type WireTransaction } from './messages.ts'

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
    return { client, side: { capabilities: revision => extensionCapability(revision, transactionsExtension) } }
  },
})

interface StepReport {
  readonly id: string
  readonly tool: string
  /** `indeterminate`: begun, and nobody knows how it ended. `no_compensation`: done, and nothing can take it back. */
  readonly status: WireStepReport['status']
  readonly error: WireStepReport['error'] | undefined
}

/** How a transaction stands or ended, step by step. */
export interface TransactionReport {
  readonly id: string
  /** `partially_rolled_back`: some steps could not be taken back; they say why. */
  readonly status: WireTransaction['status']
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
