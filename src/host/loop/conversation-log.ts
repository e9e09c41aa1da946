/**
 * A conversation on a store: one log to which records are only ever added. Each append names the position it must get, so that of two
 * processes that believe to hold the same conversation one finds out before it has said anything.
 */

import { hash } from 'node:crypto'
import { problem } from '../../core/problem.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { append, type Op, put, type Store, storeLimits } from '../../stores/store.ts'
import { applyRecord, type LogRecord, newTurn, type TurnRecord } from './records.ts'

/** What is listed of a conversation. */
export interface ConversationFacts {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly began: number
  readonly turns: number
}

const listPrefix = 'conversations/'

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
