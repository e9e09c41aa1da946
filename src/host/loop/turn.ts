/** A turn of a conversation, as its owner holds it: what it shows, what it did, what it cost, and the way back. */
import type { Why } from '../../core/why.ts'
import type { ModelUsage } from '../models/model.ts'
import type { Change } from './after-hooks.ts'
import type { HookReport } from './hook-run.ts'
import type { TurnPart } from './parts.ts'
import type { PromptSnapshot } from './prompt.ts'
import type { CallOutcome, PlannedCall, TurnSource } from './records.ts'
import type { TurnRecord } from './turn-record.ts'
import type { UndoReport } from './undo-report.ts'

export interface Answer {
  readonly text: string
  readonly finishReason: string
  /** The one that really answered. */
  readonly model: string
  readonly usage: ModelUsage
  /** What hooks made of it, in their order. */
  readonly changes: readonly Change[]
}

export type TurnStatus = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled' | 'interrupted' | 'undone'

/** A call, with its outcome once it has one. */
export interface TurnCall extends PlannedCall {
  readonly outcome: CallOutcome | undefined
}

export interface TurnCost extends ModelUsage {
  /** How often the model was asked. */
  readonly inferences: number
  /** Estimated tokens that each server put into the prompt. */
  readonly injected: ReadonlyMap<string, number>
  /** What tools cost, in their servers' units. */
  readonly units: number
  /** In the currency of the model's price; undefined where it has none. */
  readonly money: number | undefined
}

export interface TurnParts {
  readonly conversation: string
  readonly parts: AsyncIterable<TurnPart>
  readonly done: Promise<Answer>
  readonly status: () => TurnStatus
  readonly money: (usage: ModelUsage) => number | undefined
  readonly cancel: (reason?: string) => void
  readonly undo: () => Promise<UndoReport>
}

export class Turn implements AsyncIterable<TurnPart> {
  readonly #record: TurnRecord
  readonly #parts: TurnParts
  /** The answer; rejects with a Problem when there is none. */
  readonly done: Promise<Answer>

  constructor(record: TurnRecord, parts: TurnParts) {
    this.#record = record
    this.#parts = parts
    this.done = parts.done
  }

  /** Its number in the conversation, which is never given twice. */
  get seq(): number {
    return this.#record.seq
  }

  get conversation(): string {
    return this.#parts.conversation
  }

  get inferenceId(): string {
    return this.#record.inferenceId
  }

  get from(): TurnSource {
    return this.#record.from
  }

  /** What the user said; null where a server's event began it. */
  get text(): string | null {
    return this.#record.text
  }

  get status(): TurnStatus {
    return this.#parts.status()
  }

  /** What was answered; undefined where nothing was yet, or never. */
  get answer(): string | undefined {
    return this.#record.answer
  }

  /** Why there is no answer. */
  get why(): Why | undefined {
    return this.#record.why
  }

  get calls(): readonly TurnCall[] {
    return this.#record.calls.map(call => ({ ...call, outcome: this.#record.outcomes.get(call.n) }))
  }

  /** The prompt as it went out: who put in what, and its cost. Undefined before it did. */
  get prompt(): PromptSnapshot | undefined {
    return this.#record.prompt
  }

  /** What came of each hook. */
  get hooks(): readonly HookReport[] {
    return this.#record.hooks
  }

  get cost(): TurnCost {
    const { usage, inferences, prompt, outcomes } = this.#record
    const injected = new Map<string, number>()
    for (const { from, namespace, tokens } of prompt?.sections ?? [])
      if (namespace !== undefined) injected.set(from, (injected.get(from) ?? 0) + tokens)
    const units = [...outcomes.values()].reduce((sum, outcome) => sum + (outcome.units ?? 0), 0)
    return { ...usage, inferences, injected, units, money: this.#parts.money(usage) }
  }

  [Symbol.asyncIterator](): AsyncIterator<TurnPart> {
    return this.#parts.parts[Symbol.asyncIterator]()
  }

  /** Stops it; what its calls have done stays, until it is undone. */
  cancel(reason?: string): void {
    this.#parts.cancel(reason)
  }

  /**
   * Takes it back, and all turns after it: the conversation goes on from before it, states are set back and calls undone, as far as
   * servers can. The report says what stays.
   */
  undo(): Promise<UndoReport> {
    return this.#parts.undo()
  }
}
