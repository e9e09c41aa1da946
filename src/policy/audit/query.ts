/** Questions to the log of notes. Lines lie in the order of their writing, so a time is found by halving. */
import { readLine } from '../../core/audit/line.ts'
import { lastPosition } from '../../core/feed/occurrence.ts'
import type { LogEntry, LogPosition, Store } from '../../stores/store.ts'
import { type Noted, type NoteOutcome, notedOf } from './note.ts'

export interface AuditQuestion {
  readonly server?: string
  readonly featureSet?: string
  readonly inferenceId?: string
  readonly conversation?: string
  readonly kind?: string
  readonly outcome?: NoteOutcome
  /** Milliseconds since the epoch; the moment itself belongs to it. */
  readonly since?: number
  /** Milliseconds since the epoch; the moment itself does not belong to it. */
  readonly until?: number
  /** Where the answer before this one ended. */
  readonly after?: LogPosition
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

export interface Queried {
  readonly notes: readonly Noted[]
  /** Ask again with this as `after`; absent where nothing is left. */
  readonly next?: LogPosition
}

const log = 'audit'
/** Lines of one process are in order, those of several only nearly: so much earlier the search begins. */
const slackMs = 2_000

export async function query(
  store: Store,
  question: AuditQuestion,
  trailOf: (inferenceId: string) => Promise<ReadonlyMap<string, Noted>>,
): Promise<Queried> {
  const limit = Math.min(question.limit ?? 100, 1_000)
  if (question.inferenceId !== undefined) {
    const notes = [...(await trailOf(question.inferenceId)).values()].filter(noted => matches(noted, question))
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
