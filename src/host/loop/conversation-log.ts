/**
 * A conversation on a store: one log to which records are only ever added. Each append names the position it must get, so that of two
 * processes that believe to hold the same conversation one finds out before it has said anything.
 */
import { hash } from 'node:crypto'
import { problem } from '../../core/problem.ts'
import type { Why } from '../../core/suggestion.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import { append, type Op, put, type Store, storeLimits } from '../../stores/store.ts'
import type { ModelMessage, ModelToolUse, ModelUsage } from '../models/model.ts'
import type { AnswerChange } from './before-hooks.ts'
import type { HookReport } from './hooks.ts'
import type { StateUpdate } from './loop.ts'
import type { PromptSnapshot } from './prompt.ts'

/** What is listed of a conversation. */
export interface ConversationFacts {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly began: number
  readonly turns: number
}

const listPrefix = 'conversations/'

/** The log of one conversation, read once and then kept in memory. */
export class ConversationLog {
  readonly id: string
  readonly #store: Store
  readonly #log: string
  /** By their number, which is never given twice. */
  readonly turns: TurnRecord[] = []
  readonly #inferences = new Map<string, TurnRecord>()
  #chain: TurnRecord[] = []
  #next = 1
  #writing: Promise<unknown> = Promise.resolve()

  private constructor(store: Store, id: string) {
    this.id = id
    this.#store = store
    this.#log = `conversation/${conversationKey(id)}`
  }

  /** Reads all that was written. */
  static async open(store: Store, id: string): Promise<ConversationLog> {
    if (id === '' || id.length > 200) throw new TypeError('A conversation has a name of 1 to 200 characters')
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

  /** At most so many of those before a turn, the latest ones. */
  before(turn: TurnRecord, most: number): readonly TurnRecord[] {
    // Turns are looked for at the end, where those lie that run.
    const at = this.#chain.lastIndexOf(turn)
    const end = at < 0 ? this.#chain.length : at
    return this.#chain.slice(Math.max(0, end - most), end)
  }

  /** The turn of an inference. */
  of(inferenceId: string): TurnRecord | undefined {
    return this.#inferences.get(inferenceId)
  }

  /** Writes records and whatever is to be written with them; all or nothing. What it makes of them is asked when its turn has come. */
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
    throw problem('CONVERSATION_CONFLICT', `The conversation ${clip(this.id)} goes on elsewhere: nothing was written`, {
      suggestion: 'Let one host at a time hold a store, or open the conversation anew',
      details: { reason: done.reason },
    })
  }

  /** The list of conversations is kept with the turns that it counts. */
  #listing(records: readonly LogRecord[]): readonly Op[] {
    const turn = records.find(record => record.type === 'turn')
    if (turn === undefined) return []
    const facts: ConversationFacts = { id: this.id, began: this.turns[0]?.at ?? turn.at, turns: turn.seq + 1 }
    return [put(`${listPrefix}${conversationKey(this.id)}`, JSON.stringify(facts))]
  }

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
    if (turn === undefined) throw new Error(`The log of ${clip(this.id)} speaks of turn ${seq}, which it does not have`)
    return turn
  }
}

/** All conversations of a store, by name. */
export async function listConversations(store: Store): Promise<readonly ConversationFacts[]> {
  const found: ConversationFacts[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.scan(listPrefix, after === undefined ? {} : { after })
    for (const { value } of page) found.push(JSON.parse(value) as ConversationFacts)
    after = page.at(-1)?.key
    if (page.length < storeLimits.page) return found
  }
}

/** Leaves room for what stands beside it. */
const most = 600

/** Short names stay readable; of long ones and those that are no text there is a digest, which no short name can look like. */
export function conversationKey(id: string): string {
  const encoded = encodeURIComponent(id.toWellFormed())
  if (encoded.length > most || !id.isWellFormed()) return `~${hash('sha256', JSON.stringify(id), 'base64url')}`
  return encoded.startsWith('~') ? `%7E${encoded.slice(1)}` : encoded
}

// What is written of a conversation, one record after the other. A turn is what its records say, whichever process reads them.

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

/** One record of the log, by type. */
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

/** A turn, as its records tell it. */
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

function newTurn(record: LogRecord & { type: 'turn' }): TurnRecord {
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
function applyRecord(turn: TurnRecord, record: LogRecord): void {
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

/** One step of an undo: what was to be undone, and what came of it. */
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

/** What an undo came to. */
export interface UndoReport {
  /** Whether all effects that the host knows of are gone. */
  readonly complete: boolean
  /** The turns that are no longer part of the conversation, the latest first. */
  readonly turns: readonly number[]
  /** In the order in which they were done: the last effect first. */
  readonly steps: readonly UndoStep[]
}

/** Sums up the steps of an undo. It is complete where nothing stays. */
export function undoReport(turns: readonly number[], steps: readonly UndoStep[]): UndoReport {
  return { complete: steps.every(({ outcome }) => outcome !== 'stays'), turns, steps }
}
