/**
 * The host's audit: notes on the hash-chained log of core/audit, written in the commit of what they tell or gathered into few
 * commits. Beside the log each note lies once more under the event and the inference that it belongs to, so that "why?" is
 * answered without reading the whole log; the log is the proof, the trails are its index.
 */
import { Audit, type AuditVerdict } from '../../core/audit/audit.ts'
import { readLine } from '../../core/audit/line.ts'
import type { Clock } from '../../core/clock.ts'
import { type Op, put, type Store } from '../../stores/store.ts'
import { type Note, type Noted, notedOf, noteFactsOf, noteText } from './note.ts'
import { type AuditQuestion, type Queried, query } from './query.ts'

export interface AuditBookOptions {
  readonly store: Store
  readonly clock: Clock
  /** How long notes are kept, in milliseconds. Default 90 days. */
  readonly keepMs?: number | undefined
  /** How many at most, roughly. Default 1,000,000. */
  readonly keep?: number | undefined
  /** Told what keeps notes from being written or chained. */
  readonly failed?: ((error: unknown) => void) | undefined
  /** Told of each note, once it is made. */
  readonly heard?: ((noted: Noted) => void) | undefined
}

/** What is known of one event or inference: the notes in their order, and what each decision rested on. */
export interface Explanation {
  readonly id: string
  readonly notes: readonly Noted[]
  /** The ids that the notes join: events, inferences, and what they came of. */
  readonly joined: readonly string[]
}

/** Notes that are written together, at most. */
const gathered = 200
/** Ids that one explanation follows, at most. */
const followed = 50
const keepMs = 90 * 86_400_000

export class AuditBook {
  readonly #options: AuditBookOptions
  readonly #audit: Audit
  /** Keeps trails apart that begin in the same millisecond, of this process and of others. */
  readonly #self = crypto.randomUUID().slice(0, 8)
  #count = 0
  #waiting: Op[] = []
  #writing: Promise<void> | undefined = undefined

  constructor(options: AuditBookOptions) {
    const { store, clock, failed, keep } = options
    this.#options = options
    this.#audit = new Audit({
      store,
      clock,
      keepMs: options.keepMs ?? keepMs,
      ...(keep !== undefined && { keep }),
      ...(failed !== undefined && { failed }),
    })
  }

  /** The steps that write a note, for the commit of what it tells. */
  ops(note: Note): readonly Op[] {
    const at = this.#options.clock.now()
    this.#tell({ ...note, at })
    const ids = new Set([note.inferenceId, note.eventId, note.cause].filter(id => id !== undefined))
    const text = noteText(note, at)
    const order = `${at.toString(36).padStart(9, '0')}-${String(this.#count++).padStart(9, '0')}${this.#self}`
    const ttl = this.#options.keepMs ?? keepMs
    return [this.#audit.line(noteFactsOf(note)), ...[...ids].map(id => put(`${trail(id)}${order}`, text, { ttl }))]
  }

  /** Writes a note that comes with no commit of its own. Resolves when it lasts; nobody has to wait for that. */
  note(note: Note): Promise<void> {
    this.#waiting.push(...this.ops(note))
    this.#writing ??= this.#write()
    return this.#writing
  }

  /** Notes by server, feature set, inference, time, kind and outcome, oldest first. */
  query(question: AuditQuestion = {}): Promise<Queried> {
    return query(this.#options.store, question, id => this.#trail(id))
  }

  /** Everything that belongs to an event or an inference, and to what that came of or led to. */
  async explain(id: string, { server }: { readonly server?: string } = {}): Promise<Explanation> {
    const found = new Map<string, Noted>()
    const joined = new Set([id])
    for (const next of joined) {
      for (const [order, noted] of await this.#trail(next)) {
        if (server !== undefined && noted.server !== server) continue
        found.set(order, noted)
        for (const other of [noted.inferenceId, noted.eventId, noted.cause])
          if (other !== undefined && joined.size < followed) joined.add(other)
      }
    }
    const notes = [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, noted]) => noted)
    return { id, notes, joined: [...joined] }
  }

  /** Computes the whole chain anew. */
  async verify(): Promise<AuditVerdict> {
    await this.#writing
    return this.#audit.verify()
  }

  async close(): Promise<void> {
    await this.#writing
    await this.#audit.close()
  }

  /** By the order in which they were made. */
  async #trail(id: string): Promise<ReadonlyMap<string, Noted>> {
    const prefix = trail(id)
    const found = new Map<string, Noted>()
    for (const { key, value } of await this.#options.store.scan(prefix)) {
      const noted = notedOf(readLine({ position: 0, value }))
      if (noted !== undefined) found.set(key.slice(prefix.length), noted)
    }
    return found
  }

  /** Whoever listens must not keep a note from being written. */
  #tell(noted: Noted): void {
    try {
      this.#options.heard?.(noted)
    } catch (error) {
      this.#options.failed?.(error)
    }
  }

  /** Gathers what comes while the store is busy. */
  async #write(): Promise<void> {
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const ops = this.#waiting.splice(0, gathered)
      try {
        await this.#options.store.commit(ops)
      } catch (error) {
        this.#options.failed?.(error)
      }
    }
    this.#writing = undefined
  }
}

/** Foreign ids may be long and of any characters; those that are cut alike share a trail. */
function trail(id: string): string {
  return `trail/${encodeURIComponent(id.slice(0, 100).toWellFormed())}/`
}
