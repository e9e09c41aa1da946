/** What is written of a conversation, one record after the other. A turn is what its records say, whichever process reads them. */
import type { Why } from '../../core/why.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { BegunBy } from '../../policy/rules/begun-by.ts'
import type { ModelMessage, ModelUsage, ToolUse } from '../models/model.ts'
import type { Change } from './after-hooks.ts'
import type { HookReport } from './hook-run.ts'
import type { PromptSnapshot } from './prompt.ts'
import type { StateUpdate } from './state-updates.ts'
import type { UndoStep } from './undo-report.ts'

/** Who began a turn. */
export type TurnSource = BegunBy

/** How a call can be taken back: by another call, as the server said when it was made. */
export interface Compensation {
  readonly tool: string
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** A call as it is planned: written before it is made, so that after a crash it is known that it may have been. */
export interface PlannedCall {
  /** The model's own name for it. */
  readonly id: string
  /** Which one of its turn, from 0. */
  readonly n: number
  /** As the model sees the tool. */
  readonly name: string
  /** Undefined: a tool of the host, or none. */
  readonly server?: string
  readonly tool: string
  readonly featureSet?: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** Under which it is done once, where the server knows keys. */
  readonly key: string
  readonly readOnly: boolean
}

export type CallStatus = 'done' | 'failed' | 'refused' | 'unknown'

/** What came of a call. */
export interface CallOutcome {
  readonly n: number
  readonly status: CallStatus
  readonly content: readonly LiveBlock[]
  readonly why?: Why
  /** The rule, grant or approval that allowed it. */
  readonly rule?: string
  readonly ms: number
  /** Units, as the server tells them. */
  readonly units?: number
  readonly compensation?: Compensation
  /** What the server asked before it did anything, and got a no. */
  readonly declined?: string
  /** The server has taken it back already. */
  readonly rolledBack?: boolean
  /** The state of its set: the checkpoint before it and the one it left. */
  readonly state?: {
    readonly before?: string
    readonly after: string
    /** Whose it is, where the call does not say so. */
    readonly featureSet?: string
  }
  /** States that the server reported by itself while it ran. */
  readonly updates?: readonly StateUpdate[]
  /** Where the whole result is kept, if it was too long. */
  readonly reference?: string
}

export type TurnEnd = 'done' | 'failed' | 'cancelled'

export type LogRecord =
  | {
      readonly type: 'turn'
      readonly seq: number
      readonly index: number
      readonly inferenceId: string
      /** Names its calls to servers. */
      readonly key: string
      readonly from: TurnSource
      /** What the user said; null when nobody did. */
      readonly text: string | null
      /** The last one is what is answered. */
      readonly messages: readonly ModelMessage[]
      readonly at: number
    }
  | { readonly type: 'prompt'; readonly seq: number; readonly prompt: PromptSnapshot; readonly hooks: readonly HookReport[] }
  | {
      readonly type: 'step'
      readonly seq: number
      readonly content: readonly (LiveBlock | ToolUse)[]
      readonly calls: readonly PlannedCall[]
      readonly usage: ModelUsage
    }
  | { readonly type: 'result'; readonly seq: number; readonly outcome: CallOutcome }
  | {
      readonly type: 'answer'
      readonly seq: number
      readonly text: string
      readonly finishReason: string
      readonly usage: ModelUsage
      readonly model: string
      readonly changes: readonly Change[]
      readonly hooks: readonly HookReport[]
      readonly at: number
    }
  | {
      readonly type: 'ended'
      readonly seq: number
      readonly status: 'failed' | 'cancelled'
      readonly why: Why
      readonly at: number
    }
  | { readonly type: 'undo'; readonly seq: number; readonly step: UndoStep }
  | { readonly type: 'undone'; readonly seqs: readonly number[]; readonly at: number }
