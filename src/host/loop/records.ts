/** What is written of a conversation, one record after the other. A turn is what its records say, whichever process reads them. */
import type { Why } from '../../core/suggestion.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import type { ModelMessage, ModelToolUse, ModelUsage } from '../models/model.ts'
import type { AnswerChange } from './after-hooks.ts'
import type { HookReport } from './hooks.ts'
import type { StateUpdate } from './loop.ts'
import type { PromptSnapshot } from './prompt.ts'

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

type CallStatus = 'done' | 'failed' | 'refused' | 'unknown'

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

type TurnEnd = 'done' | 'failed' | 'cancelled'

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
      readonly content: readonly (LiveBlock | ModelToolUse)[]
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
      readonly changes: readonly AnswerChange[]
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

interface RecordedStep {
  readonly content: readonly (LiveBlock | ModelToolUse)[]
  readonly calls: readonly PlannedCall[]
}

export interface TurnRecord {
  readonly seq: number
  readonly index: number
  readonly inferenceId: string
  readonly key: string
  readonly from: TurnSource
  readonly text: string | null
  readonly messages: readonly ModelMessage[]
  readonly at: number
  readonly steps: RecordedStep[]
  readonly calls: PlannedCall[]
  /** By the number of the call. */
  readonly outcomes: Map<number, CallOutcome>
  readonly hooks: HookReport[]
  readonly undoSteps: UndoStep[]
  changes: readonly AnswerChange[]
  prompt: PromptSnapshot | undefined
  answer: string | undefined
  model: string | undefined
  finishReason: string | undefined
  usage: ModelUsage
  inferences: number
  /** Undefined: it runs, waits, or was interrupted. */
  end: TurnEnd | undefined
  why: Why | undefined
  undone: boolean
}

export function newTurn(record: LogRecord & { type: 'turn' }): TurnRecord {
  const { type: _, ...facts } = record
  return {
    ...facts,
    steps: [],
    calls: [],
    outcomes: new Map(),
    hooks: [],
    undoSteps: [],
    changes: [],
    prompt: undefined,
    answer: undefined,
    model: undefined,
    finishReason: undefined,
    usage: { inputTokens: 0, outputTokens: 0 },
    inferences: 0,
    end: undefined,
    why: undefined,
    undone: false,
  }
}

/** What a record says of its turn. */
export function applyRecord(turn: TurnRecord, record: LogRecord): void {
  switch (record.type) {
    case 'prompt':
      turn.prompt = record.prompt
      turn.hooks.push(...record.hooks)
      break
    case 'step':
      turn.steps.push({ content: record.content, calls: record.calls })
      turn.calls.push(...record.calls)
      addUsage(turn, record.usage)
      break
    case 'result':
      turn.outcomes.set(record.outcome.n, record.outcome)
      break
    case 'answer':
      addUsage(turn, record.usage)
      Object.assign(turn, { end: 'done', answer: record.text, model: record.model, finishReason: record.finishReason })
      turn.changes = record.changes
      turn.hooks.push(...record.hooks)
      break
    case 'ended':
      turn.end = record.status
      turn.why = record.why
      break
    case 'undo':
      turn.undoSteps.push(record.step)
      break
    default:
      break
  }
}

function addUsage(turn: TurnRecord, { inputTokens, outputTokens }: ModelUsage): void {
  turn.inferences += 1
  turn.usage = { inputTokens: turn.usage.inputTokens + inputTokens, outputTokens: turn.usage.outputTokens + outputTokens }
}

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
