/** The public `Turn` object (its parts, answer, calls, cost, cancel and undo), and the buffer of its parts as they stream. */
import type { Why } from '../../core/suggestion.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import type { ModelUsage } from '../models/model.ts'
import type { CallOutcome, PlannedCall, TurnRecord } from './conversation-log.ts'
import type { InferenceReport } from './generate.ts'
import type { HookReport } from './hooks.ts'
import type { AnswerChange } from './inference-hooks.ts'
import type { PromptSnapshot } from './prompt.ts'
import type { UndoPlan } from './undo-plan.ts'
import type { UndoReport } from './undo-steps.ts'

/** The answer of a turn. */
export interface TurnAnswer {
  /** The text of the answer. */
  readonly text: string
  /** Why the model stopped, for example `end_turn`. */
  readonly finishReason: string
  /** The name of the model that answered. */
  readonly model: string
  /** The tokens that all steps of the turn used. */
  readonly usage: ModelUsage
  /** Changes by hooks, in order. */
  readonly changes: readonly AnswerChange[]
}

/** The state of a turn. `interrupted`: the host stopped during it; it can be resumed. */
export type TurnStatus = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled' | 'interrupted' | 'undone'

/** A call with its outcome, once there is one. */
export interface TurnCall extends PlannedCall {
  /** The outcome. Undefined while the call runs. */
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
  /** The price, in the currency of the model's `price`. Undefined if the model has none. */
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
  readonly plan: () => Promise<UndoPlan>
}

/**
 * One turn of a conversation. Iterate it for its parts as they arrive, or await `done` for the answer.
 * @example
 * const turn = await host.conversation('c1').send('How is the project?')
 * for await (const part of turn) if (part.type === 'text') process.stdout.write(part.delta)
 */
export class Turn implements AsyncIterable<TurnPart> {
  readonly #record: TurnRecord
  readonly #parts: TurnParts
  /** Resolves with the answer; rejects with a `Problem` if there is none. */
  readonly done: Promise<TurnAnswer>

  constructor(record: TurnRecord, parts: TurnParts) {
    this.#record = record
    this.#parts = parts
    this.done = parts.done
  }

  /** The number of the turn in its conversation. Numbers are never reused. */
  get seq(): number {
    return this.#record.seq
  }

  /** The name of its conversation. */
  get conversation(): string {
    return this.#parts.conversation
  }

  /** The id of the turn in the audit log and at servers. */
  get inferenceId(): string {
    return this.#record.inferenceId
  }

  /** What started the turn: the user, or an event. */
  get from(): BegunBy {
    return this.#record.from
  }

  /** When it was accepted, in milliseconds since the epoch. */
  get at(): number {
    return this.#record.at
  }

  /** When it ended, in milliseconds since the epoch. Undefined until then. */
  get endedAt(): number | undefined {
    return this.#record.endedAt
  }

  /** The text of the user. Null if an event started the turn. */
  get text(): string | null {
    return this.#record.text
  }

  /** The current state of the turn. */
  get status(): TurnStatus {
    return this.#parts.status()
  }

  /** The text of the answer. Undefined if there is none, or not yet. */
  get answer(): string | undefined {
    return this.#record.answer
  }

  /** Why there is no answer. Undefined while the turn runs, and if there is one. */
  get why(): Why | undefined {
    return this.#record.why
  }

  /** All tool calls, with their outcomes. */
  get calls(): readonly TurnCall[] {
    return this.#record.calls.map(call => ({ ...call, outcome: this.#record.outcomes.get(call.n) }))
  }

  /** The prompt that was sent, with the source and the tokens of each part. Undefined before. */
  get prompt(): PromptSnapshot | undefined {
    return this.#record.prompt
  }

  /** The answers of the model: when each was asked for, and how long it took. */
  get inferences(): readonly InferenceReport[] {
    return this.#record.asked
  }

  /** Why the model stopped, for example `end_turn`. Undefined where there is no answer. */
  get finishReason(): string | undefined {
    return this.#record.finishReason
  }

  /** How hooks changed the answer, in order. */
  get changes(): readonly AnswerChange[] {
    return this.#record.changes
  }

  /** The outcome of each hook. */
  get hooks(): readonly HookReport[] {
    return this.#record.hooks
  }

  /** The cost of the turn: tokens, inferences, units and money. */
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

  /** Stops the turn. Effects of its calls remain until you undo it. */
  cancel(reason?: string): void {
    this.#parts.cancel(reason)
  }

  /**
   * Undoes this turn and all later ones: they are removed from the conversation, states are rolled back, and calls are undone as
   * far as servers support it. The report lists what remains.
   */
  undo(): Promise<UndoReport> {
    return this.#parts.undo()
  }

  /** What `undo` would do now: what is undone and how, and what stays and why. Changes nothing, and asks nobody. */
  undoPlan(): Promise<UndoPlan> {
    return this.#parts.plan()
  }
}

/** One part of a turn, as it is streamed to its readers. */
export type TurnPart =
  | {
      /** The kind of the part. */
      readonly type: 'hook'
      /** The outcome of the hook. */
      readonly report: HookReport
    }
  | {
      /** The kind of the part. */
      readonly type: 'prompt'
      /** The prompt that is sent to the model. */
      readonly prompt: PromptSnapshot
    }
  | {
      /** The kind of the part. */
      readonly type: 'inference'
      /** The model is asked; the same again, with its time, once it has answered. */
      readonly inference: InferenceReport
    }
  /** A piece of the answer. Held back while a hook may still change the answer. */
  | {
      /** The kind of the part. */
      readonly type: 'text'
      /** The next characters of the answer. */
      readonly delta: string
    }
  | {
      /** The kind of the part. */
      readonly type: 'call'
      /** The call. */
      readonly call: PlannedCall
    }
  | {
      /** The kind of the part. */
      readonly type: 'progress'
      /** The number of the call within the turn, from 0. */
      readonly n: number
      /** The progress so far. */
      readonly progress: number
      /** What is being done, for people. */
      readonly message?: string
    }
  | {
      /** The kind of the part. */
      readonly type: 'result'
      /** The call. */
      readonly call: PlannedCall
      /** The outcome of the call. */
      readonly outcome: CallOutcome
    }
  | {
      /** The kind of the part. */
      readonly type: 'answer'
      /** The whole answer, after changes by hooks. */
      readonly text: string
      /** The changes that hooks made, in order. */
      readonly changes: readonly AnswerChange[]
    }
  | {
      /** The kind of the part. */
      readonly type: 'ended'
      /** How the turn ended. */
      readonly status: 'failed' | 'cancelled' | 'interrupted'
      /** Why it ended without an answer. */
      readonly why: Why
    }

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
    for (const inference of record.asked) buffer.push({ type: 'inference', inference })
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
