/** The public `Turn` object (its parts, answer, calls, cost, cancel and undo), and the buffer of its parts as they stream. */
import type { Why } from '../../core/suggestion.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import type { ModelUsage } from '../models/model.ts'
import type { CallOutcome, PlannedCall, TurnRecord, UndoReport } from './conversation-log.ts'
import type { HookReport } from './hooks.ts'
import type { AnswerChange } from './inference-hooks.ts'
import type { PromptSnapshot } from './prompt.ts'

/** The answer of a turn. */
export interface TurnAnswer {
  readonly text: string
  readonly finishReason: string
  /** The model that actually answered. */
  readonly model: string
  readonly usage: ModelUsage
  /** Changes by hooks, in order. */
  readonly changes: readonly AnswerChange[]
}

/** The state of a turn. `interrupted`: the host stopped during it; it can be resumed. */
export type TurnStatus = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled' | 'interrupted' | 'undone'

/** A call with its outcome, once there is one. */
export interface TurnCall extends PlannedCall {
  readonly outcome: CallOutcome | undefined
}

/** The cost of a turn. */
export interface TurnCost extends ModelUsage {
  /** How often the model was asked. */
  readonly inferences: number
  /** Estimated tokens that each server injected. */
  readonly injected: ReadonlyMap<string, number>
  /** The cost of tools, in their servers' units. */
  readonly units: number
  /** In the currency of the model's price; undefined where it has none. */
  readonly money: number | undefined
}

/** What a `Turn` gets from its conversation. */
interface TurnParts {
  readonly conversation: string
  readonly parts: AsyncIterable<TurnPart>
  readonly done: Promise<TurnAnswer>
  readonly status: () => TurnStatus
  readonly money: (usage: ModelUsage) => number | undefined
  readonly cancel: (reason?: string) => void
  readonly undo: () => Promise<UndoReport>
}

/** A turn of a conversation. Iterate it for its parts, or await `done` for the answer. */
export class Turn implements AsyncIterable<TurnPart> {
  readonly #record: TurnRecord
  readonly #parts: TurnParts
  /** The answer; rejects with a Problem when there is none. */
  readonly done: Promise<TurnAnswer>

  constructor(record: TurnRecord, parts: TurnParts) {
    this.#record = record
    this.#parts = parts
    this.done = parts.done
  }

  /** Its number in the conversation; never reused. */
  get seq(): number {
    return this.#record.seq
  }

  get conversation(): string {
    return this.#parts.conversation
  }

  /** The id under which the audit log and servers know it. */
  get inferenceId(): string {
    return this.#record.inferenceId
  }

  /** Who started it. */
  get from(): BegunBy {
    return this.#record.from
  }

  /** The user's text; null where an event started the turn. */
  get text(): string | null {
    return this.#record.text
  }

  get status(): TurnStatus {
    return this.#parts.status()
  }

  /** The answer; undefined where there is none (yet). */
  get answer(): string | undefined {
    return this.#record.answer
  }

  /** Why there is no answer. */
  get why(): Why | undefined {
    return this.#record.why
  }

  /** All tool calls, with their outcomes. */
  get calls(): readonly TurnCall[] {
    return this.#record.calls.map(call => ({ ...call, outcome: this.#record.outcomes.get(call.n) }))
  }

  /** The prompt that was sent, with the contributor and cost of each part; undefined before. */
  get prompt(): PromptSnapshot | undefined {
    return this.#record.prompt
  }

  /** The outcome of each hook. */
  get hooks(): readonly HookReport[] {
    return this.#record.hooks
  }

  /** Tokens, inferences, units and money. */
  get cost(): TurnCost {
    const { usage, inferences, prompt, outcomes } = this.#record
    const injected = new Map<string, number>()
    for (const { from, namespace, tokens } of prompt?.sections ?? [])
      if (namespace !== undefined) injected.set(from, (injected.get(from) ?? 0) + tokens)
    const units = [...outcomes.values()].reduce((sum, outcome) => sum + (outcome.units ?? 0), 0)
    return { ...usage, inferences, injected, units, money: this.#parts.money(usage) }
  }

  /** Iterates all parts from the first one on. */
  [Symbol.asyncIterator](): AsyncIterator<TurnPart> {
    return this.#parts.parts[Symbol.asyncIterator]()
  }

  /** Stops the turn. Effects of its calls stay until it is undone. */
  cancel(reason?: string): void {
    this.#parts.cancel(reason)
  }

  /**
   * Undoes this turn and all later ones: the conversation continues before it, states are rolled back and calls undone as far as servers
   * support it. The report says what remains.
   */
  undo(): Promise<UndoReport> {
    return this.#parts.undo()
  }
}

/** One part of a turn, as it is streamed to its readers. */
export type TurnPart =
  | { readonly type: 'hook'; readonly report: HookReport }
  | { readonly type: 'prompt'; readonly prompt: PromptSnapshot }
  /** A piece of the answer. Held back while a hook may still change the answer. */
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'call'; readonly call: PlannedCall }
  | { readonly type: 'progress'; readonly n: number; readonly progress: number; readonly message?: string }
  | { readonly type: 'result'; readonly call: PlannedCall; readonly outcome: CallOutcome }
  | { readonly type: 'answer'; readonly text: string; readonly changes: readonly AnswerChange[] }
  | { readonly type: 'ended'; readonly status: 'failed' | 'cancelled' | 'interrupted'; readonly why: Why }

/** The parts of a turn. Each reader gets all of them from the first one on. */
export class PartBuffer implements AsyncIterable<TurnPart> {
  readonly #parts: TurnPart[] = []
  /** Wakes readers that wait for the next part. */
  #waiting: (() => void)[] = []
  #closed = false

  /** The parts of a stored turn, as far as they can be reconstructed. */
  static of(record: TurnRecord): PartBuffer {
    const buffer = new PartBuffer()
    for (const report of record.hooks) buffer.push({ type: 'hook', report })
    if (record.prompt !== undefined) buffer.push({ type: 'prompt', prompt: record.prompt })
    for (const call of record.calls) {
      buffer.push({ type: 'call', call })
      const outcome = record.outcomes.get(call.n)
      if (outcome !== undefined) buffer.push({ type: 'result', call, outcome })
    }
    if (record.answer !== undefined) {
      buffer.push({ type: 'text', delta: record.answer })
      buffer.push({ type: 'answer', text: record.answer, changes: record.changes })
    } else if (record.why !== undefined && record.end !== 'done' && record.end !== undefined)
      buffer.push({ type: 'ended', status: record.end, why: record.why })
    buffer.close()
    return buffer
  }

  push(part: TurnPart): void {
    this.#parts.push(part)
    this.#wake()
  }

  close(): void {
    this.#closed = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TurnPart, void, undefined> {
    for (let at = 0; ; ) {
      const part = this.#parts[at]
      if (part !== undefined) {
        at++
        yield part
      } else if (this.#closed) return
      else await new Promise<void>(wake => this.#waiting.push(wake))
    }
  }

  /** Wakes all waiting readers. */
  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }
}
