/** What undoing came to: step by step, and honest about what stays. */
import type { Why } from '../../core/why.ts'

export interface UndoStep {
  /** The turn it belongs to. */
  readonly seq: number
  /** The call, or undefined where it is about a whole state. */
  readonly call?: number
  readonly server?: string
  readonly tool?: string
  readonly featureSet?: string
  /** `nothing`: there was nothing to undo. `stays`: it could not be undone, and `why` says why. */
  readonly outcome: 'undone' | 'nothing' | 'stays'
  /** By what: the server's own transaction, a call that takes it back, or its state set back. */
  readonly by?: 'transaction' | 'compensation' | 'rollback'
  /** Why there was nothing to undo: what the user, or a rule, said no to. */
  readonly declined?: string
  readonly why?: Why
}

export interface UndoReport {
  /** Whether all effects that the host knows of are gone. */
  readonly complete: boolean
  /** The turns that are no longer part of the conversation, the latest first. */
  readonly turns: readonly number[]
  /** In the order in which they were done: the last effect first. */
  readonly steps: readonly UndoStep[]
}

export function undoReport(turns: readonly number[], steps: readonly UndoStep[]): UndoReport {
  return { complete: steps.every(({ outcome }) => outcome !== 'stays'), turns, steps }
}
