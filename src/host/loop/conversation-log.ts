/**
 * A conversation in the store: an append-only log of records, and the turns that they describe. Each append names its position, so that
 * of two processes with the same conversation one fails before it has written anything.
 */
import { hash } from 'node:crypto'
import { problem } from '../../core/problem.ts'
import type { Why } from '../../core/suggestion.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import { append, entriesUnder, type Op, put, type Store, storeLimits } from '../../stores/store.ts'
import type { ModelMessage, ModelToolUse, ModelUsage } from '../models/model.ts'
import type { InferenceReport } from './generate.ts'
import type { HookReport } from './hooks.ts'
import type { AnswerChange } from './inference-hooks.ts'
import type { StateUpdate } from './loop.ts'
import type { PromptSnapshot } from './prompt.ts'
import type { UndoStep } from './undo-steps.ts'

/** A conversation in lists. */
export interface ConversationFacts {
  /** The name of the conversation. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly began: number
  /** The number of turns. */
  readonly turns: number
  /** When the latest turn was accepted. Absent where an earlier version wrote it. */
  readonly last?: number
}

const listPrefix = 'conversations/'

/** The log of one conversation, read once and then kept in memory. */
export class ConversationLog {
  readonly id: string
  readonly #store: Store
  readonly #log: string
  /** By sequence number, which is never reused. */
  readonly turns: TurnRecord[] = []
  readonly #inferences = new Map<string, TurnRecord>()
  /** Turns that were not undone. */
  #chain: TurnRecord[] = []
  /** The next position in the log. */
  #next = 1
  #writing: Promise<unknown> = Promise.resolve()

  private constructor(store: Store, id: string) {
    this.id = id
    this.#store = store
    this.#log = `conversation/${conversationKey(id)}`
  }

  /** Reads the whole log. */
  static async open(store: Store, id: string): Promise<ConversationLog> {
    if (id === '' || id.length > 200) throw new TypeError('The name of a conversation must have 1 to 200 characters')
    const log = new ConversationLog(store, id)
    for (;;) {
      const page = await store.read(log.#log, { after: log.#next - 1 })
      for (const { position, value } of page) {
        log.#learn(JSON.parse(value) as LogRecord)
        log.#next = position + 1
      }
      if (page.length < storeLimits.page) return log
    }
  }

  /** The turns that count: those that were not undone. */
  get chain(): readonly TurnRecord[] {
    return this.#chain
  }

  /** The latest turns before a turn, at most `most`. */
  before(turn: TurnRecord, most: number): readonly TurnRecord[] {
    // Searched from the end, where running turns are.
    const at = this.#chain.lastIndexOf(turn)
    const end = at < 0 ? this.#chain.length : at
    return this.#chain.slice(Math.max(0, end - most), end)
  }

  /** The turn of an inference. */
  of(inferenceId: string): TurnRecord | undefined {
    return this.#inferences.get(inferenceId)
  }

  /** Writes records and further operations in one commit. `make` runs when earlier appends are done, so it sees their effect. */
  append(make: () => readonly LogRecord[], more: readonly Op[] = []): Promise<readonly LogRecord[]> {
    const written = this.#writing.then(async () => {
      const records = make()
      await this.#commit(records, more)
      for (const record of records) this.#learn(record)
      return records
    })
    this.#writing = written.catch(() => undefined)
    return written
  }

  async #commit(records: readonly LogRecord[], more: readonly Op[]): Promise<void> {
    const ops = records.map((record, at) => append(this.#log, JSON.stringify(record), this.#next + at))
    const done = await this.#store.commit([...ops, ...this.#listing(records), ...more])
    if (done.ok) {
      this.#next += records.length
      return
    }
    throw problem(
      'CONVERSATION_CONFLICT',
      `The conversation ${clip(this.id)} was changed by another process. Nothing was written`,
      {
        suggestion: 'Use the store with one host at a time, or open the conversation again',
        details: { reason: done.reason },
      },
    )
  }

  /** Updates the list of conversations in the same commit. */
  #listing(records: readonly LogRecord[]): readonly Op[] {
    const turn = records.find(record => record.type === 'turn')
    if (turn === undefined) return []
    const facts: ConversationFacts = { id: this.id, began: this.turns[0]?.at ?? turn.at, turns: turn.seq + 1, last: turn.at }
    return [put(`${listPrefix}${conversationKey(this.id)}`, JSON.stringify(facts))]
  }

  /** Applies a record to memory. */
  #learn(record: LogRecord): void {
    if (record.type === 'turn') {
      const turn = newTurn(record)
      this.turns[record.seq] = turn
      this.#chain.push(turn)
      this.#inferences.set(turn.inferenceId, turn)
    } else if (record.type === 'undone') {
      for (const seq of record.seqs) this.#turn(seq).undone = true
      this.#chain = this.#chain.filter(turn => !turn.undone)
    } else applyRecord(this.#turn(record.seq), record)
  }

  #turn(seq: number): TurnRecord {
    const turn = this.turns[seq]
    if (turn === undefined) throw new Error(`The log of ${clip(this.id)} refers to turn ${seq}, which does not exist`)
    return turn
  }
}

/** All conversations of a store, by name. */
export async function listConversations(store: Store): Promise<readonly ConversationFacts[]> {
  const found: ConversationFacts[] = []
  for await (const { value } of entriesUnder(store, listPrefix)) found.push(JSON.parse(value) as ConversationFacts)
  return found
}

/** The longest readable key; leaves room for the rest of it. */
const most = 600

/** A conversation's name as a key: readable if short, otherwise a digest that no short name can equal. */
export function conversationKey(id: string): string {
  const encoded = encodeURIComponent(id.toWellFormed())
  if (encoded.length > most || !id.isWellFormed()) return `~${hash('sha256', JSON.stringify(id), 'base64url')}`
  return encoded.startsWith('~') ? `%7E${encoded.slice(1)}` : encoded
}

// Records. A turn is fully described by its records, whichever process reads them.

/** The call that takes another call back, as the server named it. */
export interface Compensation {
  /** The tool that undoes the call. */
  readonly tool: string
  /** The arguments of that tool. */
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** A planned call; stored before it is made, so that a crash does not hide it. */
export interface PlannedCall {
  /** The model's id for it. */
  readonly id: string
  /** Its number within the turn, from 0. */
  readonly n: number
  /** The tool's name as the model sees it. */
  readonly name: string
  /** Undefined: a tool of the host, or an unknown one. */
  readonly server?: string
  /** The name of the tool at its server. */
  readonly tool: string
  /** The feature set of the tool, if it has one. */
  readonly featureSet?: string
  /** The arguments of the call. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** The idempotency key. */
  readonly key: string
  /** The tool declares that it changes nothing. */
  readonly readOnly: boolean
}

/** A question to the user whether a call may be made. */
export interface CallQuestion {
  /** When it was asked, in milliseconds since the epoch. */
  readonly began: number
  /** How long the answer took, in milliseconds. */
  readonly ms: number
  /** Whether it was approved. */
  readonly yes: boolean
  /** Who answered, where the answer says so. */
  readonly by?: string
}

/** The outcome of a call. */
export interface CallOutcome {
  /** The number of the call within the turn, from 0. */
  readonly n: number
  /** How it ended. `refused`: it was not made. `unknown`: it was made, and no answer came. */
  readonly status: 'done' | 'failed' | 'refused' | 'unknown'
  /** The result, as the model sees it. */
  readonly content: readonly LiveBlock[]
  /** Why it failed or was refused. */
  readonly why?: Why
  /** The rule, grant or approval that allowed it. */
  readonly rule?: string
  /** When it began, in milliseconds since the epoch. Absent for calls of earlier versions. */
  readonly began?: number
  /** How long it took, in milliseconds. */
  readonly ms: number
  /** The question to the user before it. */
  readonly asked?: CallQuestion
  /** The cost in the server's units. */
  readonly units?: number
  /** How to take it back, where the server said so. */
  readonly compensation?: Compensation
  /** The question that the user declined, so that nothing was done. */
  readonly declined?: string
  /** The server has rolled it back. */
  readonly rolledBack?: boolean
  /** The state of its feature set: the checkpoints before and after. */
  readonly state?: {
    /** The checkpoint before the call. Absent if there was none. */
    readonly before?: string
    /** The checkpoint after the call. */
    readonly after: string
    /** The feature set, where it differs from that of the call. */
    readonly featureSet?: string
  }
  /** States that the server reported without being asked during the call. */
  readonly updates?: readonly StateUpdate[]
  /** The id of the full result, where it was shortened. */
  readonly reference?: string
}

/** One record of the log, by type. */
export type LogRecord =
  | {
      readonly type: 'turn'
      /** Its number in the log; never reused. */
      readonly seq: number
      /** Its number among the turns that count. */
      readonly index: number
      readonly inferenceId: string
      /** The prefix of its calls' idempotency keys. */
      readonly key: string
      /** Who started it. */
      readonly from: BegunBy
      /** The user's text; null where an event started the turn. */
      readonly text: string | null
      /** The last message is the one to answer. */
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
      /** Absent where an earlier version wrote it. */
      readonly inference?: InferenceReport
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
      /** Absent where an earlier version wrote it. */
      readonly inference?: InferenceReport
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

/** A turn, built from its records. */
export interface TurnRecord extends Omit<LogRecord & { type: 'turn' }, 'type'> {
  readonly steps: Pick<LogRecord & { type: 'step' }, 'content' | 'calls'>[]
  readonly calls: PlannedCall[]
  /** By number of the call. */
  readonly outcomes: Map<number, CallOutcome>
  readonly hooks: HookReport[]
  /** The answers of the model, as far as their times are known. */
  readonly asked: InferenceReport[]
  readonly undoSteps: UndoStep[]
  changes: readonly AnswerChange[]
  prompt: PromptSnapshot | undefined
  answer: string | undefined
  model: string | undefined
  finishReason: string | undefined
  usage: ModelUsage
  /** How often the model was asked. */
  inferences: number
  /** Undefined: running, waiting or interrupted. */
  end: 'done' | 'failed' | 'cancelled' | undefined
  /** When it ended. */
  endedAt: number | undefined
  why: Why | undefined
  undone: boolean
}

function newTurn(record: LogRecord & { type: 'turn' }): TurnRecord {
  const { type: _, ...facts } = record
  return {
    ...facts,
    steps: [],
    calls: [],
    outcomes: new Map(),
    hooks: [],
    asked: [],
    undoSteps: [],
    changes: [],
    prompt: undefined,
    answer: undefined,
    model: undefined,
    finishReason: undefined,
    usage: { inputTokens: 0, outputTokens: 0 },
    inferences: 0,
    end: undefined,
    endedAt: undefined,
    why: undefined,
    undone: false,
  }
}

/** Applies a record to its turn. */
function applyRecord(turn: TurnRecord, record: LogRecord): void {
  switch (record.type) {
    case 'prompt':
      turn.prompt = record.prompt
      turn.hooks.push(...record.hooks)
      break
    case 'step':
      turn.steps.push({ content: record.content, calls: record.calls })
      turn.calls.push(...record.calls)
      if (record.inference !== undefined) turn.asked.push(record.inference)
      addUsage(turn, record.usage)
      break
    case 'result':
      turn.outcomes.set(record.outcome.n, record.outcome)
      break
    case 'answer':
      addUsage(turn, record.usage)
      Object.assign(turn, { end: 'done', answer: record.text, model: record.model, finishReason: record.finishReason })
      turn.changes = record.changes
      turn.endedAt = record.at
      if (record.inference !== undefined) turn.asked.push(record.inference)
      turn.hooks.push(...record.hooks)
      break
    case 'ended':
      turn.end = record.status
      turn.why = record.why
      turn.endedAt = record.at
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
