/** The events of a calendar in one SQLite file, and up to when their reminders were told. */
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { type CalendarEvent, occurrences } from './occurrences.ts'

export interface Due {
  readonly event: CalendarEvent
  /** When it begins, and when to remind of it. */
  readonly begins: number
  readonly at: number
}

export interface Book {
  /** Replaces the one of the same uid. What is before `now` is not told any more. */
  put(event: CalendarEvent, now: number): void
  remove(uid: string): CalendarEvent | undefined
  all(): readonly CalendarEvent[]
  /** The next reminder of each event that has one. */
  next(): readonly Due[]
  /** The reminder of each event that is due; of several of one event, as after a long sleep, the last. */
  due(now: number): readonly Due[]
  told(due: Due): void
  close(): void
}

/** What one calendar holds at most. */
export const mostEvents = 2_000

export function openBook(file: string): Book {
  // Another process may be writing on the same file.
  const db = new DatabaseSync(file, { timeout: 5000 })
  db.exec(`pragma journal_mode = wal;
    create table if not exists events (uid text primary key, event text not null, told integer not null) strict`)
  const insert = db.prepare(
    'insert into events values (?, ?, ?) on conflict (uid) do update set event = excluded.event, told = max(told, excluded.told)',
  )
  const remove = db.prepare('delete from events where uid = ? returning *')
  const all = db.prepare('select * from events order by uid')
  const told = db.prepare('update events set told = ? where uid = ?')
  const each = () => all.all().map(row => ({ event: eventOf(row), told: Number(row['told']) }))
  return {
    put: (event, now) => void insert.run(event.uid, JSON.stringify(event), now),
    remove: uid => {
      const row = remove.get(uid)
      return row && eventOf(row)
    },
    all: () => each().map(({ event }) => event),
    next: () => each().flatMap(({ event, told }) => [...remindersOf(event, told, 1)]),
    due: now => each().flatMap(({ event, told }) => [...remindersOf(event, told, Number.POSITIVE_INFINITY, now)].slice(-1)),
    told: ({ event, at }) => void told.run(at, event.uid),
    close: () => db.close(),
  }
}

function* remindersOf(event: CalendarEvent, after: number, count: number, until = Number.POSITIVE_INFINITY): Generator<Due> {
  if (event.remind === undefined) return
  const lead = event.remind * 60_000
  for (const begins of occurrences(event, after + lead + 1)) {
    if (begins - lead > until || count-- <= 0) return
    yield { event, begins, at: begins - lead }
  }
}

const eventOf = (row: Record<string, SQLOutputValue>): CalendarEvent => JSON.parse(String(row['event'])) as CalendarEvent
