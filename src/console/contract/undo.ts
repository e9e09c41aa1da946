/** Undoing a turn: first the plan, then the report. */
import type { Why } from './servers.ts'

/** What is undone, and how. */
export interface UndoStep {
  /** The turn that it belongs to. */
  readonly seq: number
  /** The number of the call in the turn; absent where it is about a whole state. */
  readonly call?: number
  readonly server?: string
  readonly tool?: string
  /** The feature set whose state is rolled back. */
  readonly featureSet?: string
  /** In a plan: `planned` is undone when the plan is carried out. In a report: `undone` was. `nothing`: there is nothing to undo. */
  readonly outcome: 'planned' | 'undone' | 'nothing' | 'stays'
  /** By the server's transaction (already rolled back), by a compensating call, or by going back to an earlier state. */
  readonly by?: 'transaction' | 'compensation' | 'rollback'
  /** The checkpoint that the state goes back to; `null`: before the first one. */
  readonly to?: string | null
  /** The compensating call. The arguments are left out for sessions that may not see payloads. */
  readonly compensation?: { readonly tool: string; readonly arguments?: unknown }
  /** The rule that will ask before the compensating call. */
  readonly asks?: string
  /** What the user or a rule declined, so that nothing was done. */
  readonly declined?: string
  /** Why it stays. */
  readonly why?: Why
}

/** `GET …/turns/:seq/undo`: what an undo would do now. The turn and all later ones are taken out of the conversation. */
export interface UndoPlan {
  readonly conversation: string
  /** The turns that are taken out, latest first. */
  readonly turns: readonly number[]
  /** In the order in which they are carried out: the last effect first. */
  readonly steps: readonly UndoStep[]
  /** Nothing is known to stay. A server may still refuse. */
  readonly complete: boolean
  /** Name it in the POST: it covers all that is shown here. */
  readonly digest: string
  /** The turn was undone before: only what stayed is tried again. */
  readonly again?: true
  /** Turns that run and will be stopped. */
  readonly running: readonly number[]
}

/** `POST …/turns/:seq/undo`. 409 `DIGEST_MISMATCH` where the plan is another one by now. */
export interface UndoOrder {
  /** The digest of the plan that was shown. */
  readonly digest: string
}

/** What an undo did. */
export interface UndoReport {
  readonly complete: boolean
  readonly turns: readonly number[]
  readonly steps: readonly UndoStep[]
}
