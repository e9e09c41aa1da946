/** Transactions on the wire: begun, committed and rolled back by methods of their own; a call takes part by naming one in its `_meta`. */

import type { UndoneParts } from '../../../core/journal/rollback.ts'
import { field } from '../../../engine/exchange.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { boolean, integer, object, optional, string } from '../../../jsonrpc/shape.ts'

/** A call that may be undone as a whole, with others. */
export interface UnitStep {
  /** Names the unit among all. */
  readonly unit: string
  /** Names the step among all. */
  readonly place: string
  /**
   * Keeps what has to be known to undo a write beside the call's own effect. Comes before the write; throws where that is too late.
   * What several writers say of one step stands side by side, each under names of its own.
   */
  wrote(what: object): Promise<void>
}

/** The step of a unit of work that a call is. */
export const unitStep = field<UnitStep>()

/** Names a step among all of its owner: as calls that go on carry it, and as what belongs to it is kept. */
export function stepName(order: number, transaction: string): string {
  return `${order} ${transaction}`
}

/** What other features may use of transactions. */
interface TransactionsPort {
  /** How what a step wrote beside its effect is taken back, of what this feature wrote. */
  revertBy(revert: (wrote: unknown) => Promise<UndoneParts>): void
}

/** What other features may use of transactions. */
export const transactionsPort = port<TransactionsPort>('transactions')

/** The name of the extension. */
export const transactionsExtension = `${NS}/transactions`

/** In a call's `_meta`. */
export interface WireStep {
  readonly transaction_id: string
  readonly step_id?: string
}

/** In a tool's `_meta`: that it can be undone, and how. */
export interface WireUndo {
  readonly compensation: { readonly tool: string; readonly description?: string }
}

/** In the result's `_meta`: what would take the step back. */
export interface WireStepResult {
  readonly transaction_id: string
  readonly step_id: string
  readonly status: 'ok' | 'failed' | 'indeterminate'
  readonly compensation?: WireCompensation
}

/** A compensation on the wire. */
interface WireCompensation {
  /** The tool that undoes the step. */
  readonly tool: string
  /** The arguments of that call. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** What the compensation does. */
  readonly description?: string
}

/** The states of a transaction. */
type WireTransactionStatus = 'begun' | 'committed' | 'rolling_back' | 'rolled_back' | 'partially_rolled_back'

/** A failure on the wire. */
interface WireFailure {
  /** The code of the problem. */
  readonly code: string
  /** What failed, in a sentence. */
  readonly message: string
}

/** The states of a step. `no_compensation`: it was done and cannot be undone. */
type WireStepStatus = 'running' | 'ok' | 'failed' | 'indeterminate' | 'compensated' | 'compensation_failed' | 'no_compensation'

/** One step of a transaction as it is sent. */
export interface WireStepReport {
  /** The name of the step. */
  readonly step_id: string
  /** The tool that was called. */
  readonly tool: string
  /** The state of the step. */
  readonly status: WireStepStatus
  /** The call that undoes the step, if it can be undone. */
  readonly compensation?: WireCompensation
  /** Why the step failed, or could not be undone. */
  readonly error?: WireFailure
}

/** A transaction as it is sent. */
export interface WireTransaction {
  /** The id of the transaction. */
  readonly transaction_id: string
  /** How far the transaction is. */
  readonly status: WireTransactionStatus
  /** What the transaction does. */
  readonly description?: string
  /** When it began, ISO 8601. */
  readonly begun_at: string
  /** Seconds without activity after which it is rolled back. */
  readonly timeout_seconds: number
  /** Why it was rolled back. */
  readonly reason?: string
  /** Every step, in the order in which they began. */
  readonly steps: readonly WireStepReport[]
}

/** The answer to a commit. */
interface WireCommitted extends WireTransaction {
  readonly steps_completed: number
}

/** The result of a rollback. */
export interface WireRolledBack extends WireTransaction {
  /** The steps that were undone, or could not be, the last step first. */
  readonly steps_compensated: readonly {
    /** The name of the step. */
    readonly step_id: string
    /** Whether the step was undone. */
    readonly status: 'compensated' | 'compensation_failed'
    /** Why the step could not be undone. */
    readonly error?: WireFailure
  }[]
}

const common = { to: 'server', in: officialIds, extension: transactionsExtension, nameParam: 'transaction_id' } as const

/** Opens a transaction. */
export const beginTransaction = request<WireTransaction>()({
  ...common,
  name: 'transaction/begin',
  params: object({
    transaction_id: string,
    timeout_seconds: optional(integer),
    description: optional(string),
    // Steps that cannot be taken back may take part.
    no_compensation: optional(boolean),
  }),
})

/** Ends a transaction; what it did stays. */
export const commitTransaction = request<WireCommitted>()({
  ...common,
  name: 'transaction/commit',
  params: object({ transaction_id: string }),
})

/** Takes back all that a transaction did. */
export const rollbackTransaction = request<WireRolledBack>()({
  ...common,
  name: 'transaction/rollback',
  params: object({ transaction_id: string, reason: optional(string) }),
})

/** Asks what became of a transaction. */
export const getTransaction = request<WireTransaction>()({
  ...common,
  name: 'transaction/get',
  params: object({ transaction_id: string }),
})
