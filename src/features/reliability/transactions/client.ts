/** Client side of transactions: `client.transactionStatus`, and reports. */
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { getTransaction, transactionsExtension, type WireStepReport, type WireTransaction } from './messages.ts'

/** What the feature adds to the client. */
export interface TransactionsClientApi {
  /** Returns the state of a transaction of this caller, whichever process began it. */
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

/** The state of one step of a transaction. */
interface StepReport {
  /** The name of the step: the option `step`, or its number. */
  readonly id: string
  /** The tool that was called. */
  readonly tool: string
  /** `indeterminate`: the step began, and its outcome is unknown. `no_compensation`: it was done and cannot be undone. */
  readonly status: WireStepReport['status']
  /** Why the step failed, or could not be undone. */
  readonly error: WireStepReport['error'] | undefined
}

/** The state of a transaction and of each of its steps. */
export interface TransactionReport {
  /** The id of the transaction. */
  readonly id: string
  /** `partially_rolled_back`: some steps could not be undone; their reports say why. */
  readonly status: WireTransaction['status']
  /** Why it was rolled back. Undefined if it was not. */
  readonly reason: string | undefined
  /** The steps, in the order in which they began. */
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
