/** What an undo did, step by step. */
import type { Why } from '../../core/suggestion.ts'

/** One step of an undo and its outcome. */
export interface UndoStep {
  /** The turn that it belongs to. */
  readonly seq: number
  /** The call; undefined where it concerns a whole state. */
  readonly call?: number
  /** The server at which it was undone. */
  readonly server?: string
  /** The tool that was called. */
  readonly tool?: string
  /** The feature set whose state was rolled back. */
  readonly featureSet?: string
  /** `nothing`: there was nothing to undo. `stays`: it could not be undone; see `why`. */
  readonly outcome: 'undone' | 'nothing' | 'stays'
  /** How: the server's transaction, a compensation, or a state rollback. */
  readonly by?: 'transaction' | 'compensation' | 'rollback'
  /** Why there was nothing to undo: what the user or a rule declined. */
  readonly declined?: string
  /** Why it could not be undone. */
  readonly why?: Why
}

/** The result of an undo. */
export interface UndoReport {
  /** Whether all known effects are gone. */
  readonly complete: boolean
  /** The turns that were removed from the conversation, latest first. */
  readonly turns: readonly number[]
  /** In the order of execution: the last effect first. */
  readonly steps: readonly UndoStep[]
}
