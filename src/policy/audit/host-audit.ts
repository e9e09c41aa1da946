/**
 * The host's audit: notes on the hash-chained log of core/audit, written in the commit of what they tell or gathered into few
 * commits. Beside the log each note lies once more under the event and the inference that it belongs to, so that "why?" is
 * answered without reading the whole log; the log is the proof, the trails are its index.
 */
import { Audit, type AuditVerdict, type AuditVerifyOptions } from '../../core/audit/audit.ts'
import { type AuditFacts, type AuditLine, readLine, writeLine } from '../../core/audit/line.ts'
import type { AuditSearchOptions, AuditSearchResult } from '../../core/audit/search.ts'
import type { Clock } from '../../core/clock.ts'
import { lastPosition } from '../../core/feed/feed.ts'
import type { Why } from '../../core/suggestion.ts'
import { type LogEntry, type LogPosition, type Op, put, type Store } from '../../stores/store.ts'

/** Where notes are written, and how long they are kept. */
interface AuditBookOptions {
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

/** Everything that is known about an event or inference, with the reasons of each decision. */
export interface Explanation {
  /** The id of the event or inference. */
  readonly id: string
  /** The entries of the audit log, oldest first. */
  readonly notes: readonly Noted[]
  /** The ids that belong together: events, inferences, and their causes. */
  readonly joined: readonly string[]
}

/** Notes that are written together, at most. */
const gathered = 200
/** Ids that one explanation follows, at most. */
const followed = 50
const keepMs = 90 * 86_400_000

/** Writes notes to the audit log and answers questions about them. */
export class HostAuditLog {
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
    const text = writeLine(noteFactsOf(note), at)
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
  async query(question: AuditQuestion = {}): Promise<Queried> {
    const { store } = this.#options
    const limit = Math.min(question.limit ?? 100, 1_000)
    if (question.inferenceId !== undefined) {
      const notes = [...(await this.#trail(question.inferenceId)).values()].filter(noted => matches(noted, question))
      return { notes: notes.slice(0, limit) }
    }
    const notes: Noted[] = []
    let after = question.after ?? (question.since === undefined ? 0 : await positionAt(store, question.since - slackMs))
    for (;;) {
      const page = await store.read(log, { after, limit: 1_000 })
      for (const entry of page) {
        after = entry.position
        const noted = notedOf(readLine(entry))
        if (noted === undefined || !matches(noted, question)) {
          if (question.until !== undefined && timeOf(entry) > question.until + slackMs) return { notes }
          continue
        }
        notes.push(noted)
        if (notes.length === limit) return { notes, next: after }
      }
      if (page.length === 0) return { notes }
    }
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

  /** Entries that match, newest first, one page at a time. */
  async search(options?: AuditSearchOptions): Promise<AuditSearchResult> {
    await this.#writing
    return this.#audit.search(options)
  }

  /** Computes the whole chain anew. */
  async verify(options?: AuditVerifyOptions): Promise<AuditVerdict> {
    await this.#writing
    return this.#audit.verify(options)
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

// Questions to the log of notes. Lines lie in the order of their writing, so a time is found by halving.

/** Selects entries of the audit log. All given conditions must hold. */
export interface AuditQuestion {
  /** Entries about this server. */
  readonly server?: string
  /** Entries about this feature set. */
  readonly featureSet?: string
  /** Entries about this inference. */
  readonly inferenceId?: string
  /** Entries about this conversation. */
  readonly conversation?: string
  /** Entries of this kind: `push`, `tool`, `hook.before`, `rollback`, … */
  readonly kind?: string
  /** Entries with this outcome. */
  readonly outcome?: NoteOutcome
  /** Entries from this time on, in milliseconds since the epoch. */
  readonly since?: number
  /** Entries before this time, in milliseconds since the epoch. */
  readonly until?: number
  /** Entries after this position: the `next` of the page before. Default: from the oldest entry. */
  readonly after?: LogPosition
  /** The most entries. Default 100, at most 1,000. */
  readonly limit?: number
}

/** One page of entries. */
export interface Queried {
  /** The entries of the page, oldest first. */
  readonly notes: readonly Noted[]
  /** Pass it as `after` for the next page. Absent on the last page. */
  readonly next?: LogPosition
}

const log = 'audit'
/** Lines of one process are in order, those of several only nearly: so much earlier the search begins. */
const slackMs = 2_000

function matches(noted: Noted, { since, until, ...asked }: AuditQuestion): boolean {
  if ((since !== undefined && noted.at < since) || (until !== undefined && noted.at >= until)) return false
  return members.every(name => asked[name] === undefined || asked[name] === noted[name])
}

const members = ['server', 'featureSet', 'inferenceId', 'conversation', 'kind', 'outcome'] as const

/** The last position before a time; 0 where there is none. */
async function positionAt(store: Store, time: number): Promise<LogPosition> {
  const first = (await store.read(log, { limit: 1 }))[0]
  if (first === undefined || timeOf(first) >= time) return 0
  let [low, high] = [first.position, await lastPosition(store, log, first.position)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const [entry] = await store.read(log, { after: middle - 1, limit: 1 })
    if (entry !== undefined && timeOf(entry) < time) low = middle
    else high = middle - 1
  }
  return low
}

function timeOf(entry: LogEntry): number {
  return readLine(entry).at
}

// A note: one thing that the host did for, or refused to, a server. How it becomes a line of the audit log, and comes back.

/** How something ended. `refused`, `held` and `dropped` are decisions of the host, with a reason. */
export type NoteOutcome = 'success' | 'failure' | 'timeout' | 'refused' | 'held' | 'dropped'

/** Something that a host did for a server, or refused. */
export interface Note {
  /** The server that it concerns. */
  readonly server: string
  /** The feature set that it concerns. */
  readonly featureSet?: string | undefined
  /** The inference that it belongs to. */
  readonly inferenceId?: string | undefined
  /** The event that it belongs to. */
  readonly eventId?: string | undefined
  /** The conversation that it belongs to. */
  readonly conversation?: string | undefined
  /** The inference or event that caused it. */
  readonly cause?: string | undefined
  /** The kind: `push`, `tool`, `hook.before`, `rollback`, … */
  readonly kind: string
  /** How it ended. */
  readonly outcome: NoteOutcome
  /** Why it was refused, failed or waits. */
  readonly why?: Why | undefined
  /** The rule, grant or approval that allowed it. The rule of a refusal is in `why`. */
  readonly rule?: string | undefined
  /** A few more words: the name of a tool, an address, a count. Never arguments or results. */
  readonly detail?: string | undefined
  /** How long it took, in milliseconds. */
  readonly ms?: number | undefined
  /** Who did or decided it, where a person did. */
  readonly by?: string | undefined
}

/** An entry of the audit log. */
export interface Noted extends Note {
  /** When it was written, in milliseconds since the epoch. */
  readonly at: number
}

function noteFactsOf(note: Note): AuditFacts {
  const { server, featureSet, inferenceId, eventId, conversation, cause, kind, outcome, why, rule, detail, ms, by } = note
  return {
    event: 'noted',
    correlation: inferenceId,
    owner: server,
    target: kind,
    outcome,
    more: { featureSet, eventId, conversation, cause, detail, ms, rule, by, tool: kind === 'tool' ? detail : undefined, ...why },
  }
}

/** Undefined for lines that are no notes: others may write to the same log. */
function notedOf(line: Omit<AuditLine, 'position'>): Noted | undefined {
  if (line.event !== 'noted') return undefined
  const { code, rule, message, fix, ms, ...more } = line.more ?? {}
  const told = Object.fromEntries(Object.entries(more).filter(([name]) => texts.has(name)))
  return {
    at: line.at,
    server: line.owner,
    kind: line.target,
    outcome: outcomes.has(line.outcome ?? '') ? (line.outcome as NoteOutcome) : 'failure',
    ...(line.correlation !== undefined && { inferenceId: line.correlation }),
    ...told,
    ...(typeof ms === 'number' && { ms }),
    ...(code === undefined && rule !== undefined && { rule: `${rule}` }),
    ...(code !== undefined && { why: { code: `${code}`, rule: `${rule}`, message: `${message}`, fix: `${fix}` } }),
  }
}

const texts = new Set(['featureSet', 'eventId', 'conversation', 'cause', 'detail', 'by'])
const outcomes: ReadonlySet<string> = new Set(['success', 'failure', 'timeout', 'refused', 'held', 'dropped'])
