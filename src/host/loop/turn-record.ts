/** One turn, put together from its records. */
import type { Why } from '../../core/why.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelMessage, ModelUsage, ToolUse } from '../models/model.ts'
import type { Change } from './after-hooks.ts'
import type { HookReport } from './hook-run.ts'
import type { PromptSnapshot } from './prompt.ts'
import type { CallOutcome, LogRecord, PlannedCall, TurnEnd, TurnSource } from './records.ts'
import type { UndoStep } from './undo-report.ts'

export interface RecordedStep {
  readonly content: readonly (LiveBlock | ToolUse)[]
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
  changes: readonly Change[]
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
