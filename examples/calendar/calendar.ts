/**
 * A calendar that wakes its agent: events once, by days or by weeks, in any zone, with reminders that outlive restarts. Live hosts are
 * pushed each reminder when it is due; all others find it among the pending events.
 */
import { randomUUID } from 'node:crypto'
import { type Clock, createServer, type FeatureSet, realClock, type Server } from 'vivarium/server'
import { z } from 'zod'
import { type Book, type Due, mostEvents, openBook } from './book.ts'
import { readCalendar, writeCalendar } from './ics.ts'
import { occurrences, weekdays } from './occurrences.ts'
import { isZone, momentOf, wallAt } from './zones.ts'

export interface CalendarOptions {
  /** The SQLite file. What waits for a host lies beside it, in `<file>.events`. */
  readonly file: string
  /** In which times without a zone are meant. Default: that of the machine. */
  readonly zone?: string
  readonly clock?: Clock
}

export interface CalendarServer extends AsyncDisposable {
  readonly server: Server
}

interface Parts {
  readonly book: Book
  readonly zone: string
  readonly clock: Clock
  /** The events are others now. */
  readonly changed: () => void
}

const localZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

export function openCalendar({ file, zone = localZone(), clock = realClock }: CalendarOptions): CalendarServer {
  if (!isZone(zone)) throw new Error(`The time zone "${zone}" does not exist. Use one such as Europe/Berlin`)
  const book = openBook(file)
  const server = createServer({
    name: 'calendar',
    version: '1.0.0',
    instructions: `Times are in ${zone} unless they say otherwise.`,
    store: `sqlite:${file}.events`,
    clock,
  })
  const reminders = server.featureSet('calendar.reminders', {
    description: 'Wakes the agent when something is due',
    uses: ['pushEvents'],
  })
  const alarm = setAlarm(book, clock, reminders)
  const parts = { book, zone, clock, changed: alarm.set }
  offerEvents(server, parts)
  offerIcs(server, parts)
  alarm.set()
  return {
    server,
    [Symbol.asyncDispose]: async () => {
      alarm.stop()
      await server.close()
      book.close()
    },
  }
}

/** Machines sleep and clocks are set: whoever waits long looks again every hour. */
const longest = 3_600_000

function setAlarm(book: Book, clock: Clock, reminders: FeatureSet): { readonly set: () => void; readonly stop: () => void } {
  let cancel = () => {}
  let stopped = false
  const set = (ms = longest): void => {
    cancel()
    if (stopped) return
    const next = Math.min(...book.next().map(({ at }) => at))
    if (next === Number.POSITIVE_INFINITY) return
    // A push that failed is tried again after a minute, whatever is due.
    const until = ms === longest ? Math.min(Math.max(next - clock.now(), 0), ms) : ms
    cancel = clock.setTimeout(wake, until, true)
  }
  const wake = (): void => {
    const due = book.due(clock.now())
    if (due.length === 0) set()
    else
      void ring(due).then(
        () => set(),
        () => set(60_000),
      )
  }
  const ring = async (all: readonly Due[]): Promise<void> => {
    for (const due of all) {
      const { event, begins, at } = due
      // The same id each time: after a crash in between, the second push is the first one again.
      const eventId = `${event.uid}@${new Date(begins).toISOString()}`
      const tags = ['calendar', 'reminder']
      await reminders.push({ eventId, timestamp: new Date(at).toISOString(), content: wordsFor(due), tags })
      book.told(due)
    }
  }
  const stop = (): void => {
    stopped = true
    cancel()
  }
  return { set: () => set(), stop }
}

function wordsFor({ event: { title, place, zone, description }, begins, at }: Due): string {
  const minutes = Math.round((begins - at) / 60_000)
  const when = `${wallAt(begins, zone).slice(0, 16).replace('T', ' ')} ${zone}`
  const lead = minutes === 0 ? 'Now' : `${minutes} minutes before it begins`
  return [`Reminder, ${lead}: ${title}`, `Begins ${when}${place === undefined ? '' : `, ${place}`}`, description ?? '']
    .join('\n')
    .trim()
}

const time = z.iso
  .datetime({ local: true, offset: true })
  .describe('Such as 2026-01-23T10:30:00, in the zone of the event, or with an offset (Z, +01:00)')
const repeat = z.object({
  every: z.enum(['day', 'week']),
  interval: z.int().min(1).max(1000).optional(),
  count: z.int().min(1).max(10_000).optional(),
  until: z.iso.datetime().optional(),
  days: z.array(z.enum(weekdays)).min(1).optional().describe('Of weeks'),
})

function wallIn(time: string, zone: string): string {
  return /(Z|[+-]\d\d:\d\d)$/.test(time) ? wallAt(Date.parse(time), zone) : time.slice(0, 19).padEnd(19, ':00')
}

function offerEvents(server: Server, { book, zone, clock, changed }: Parts): void {
  server.tool(
    'add_event',
    {
      description: 'Adds an event to the calendar, optionally with a reminder',
      input: z.object({
        title: z.string().trim().min(1).max(500),
        start: time,
        zone: z.string().refine(isZone, 'The time zone does not exist').default(zone),
        minutes: z.int().min(0).max(100_000).default(60),
        remind: z.int().min(0).max(100_000).optional().describe('Minutes before the event begins'),
        place: z.string().max(500).optional(),
        description: z.string().max(5000).optional(),
        repeat: repeat.optional(),
      }),
      output: z.object({ uid: z.string(), begins: z.string() }),
      undo: { tool: 'remove_event', arguments: ({ result }) => result && { uid: result.uid } },
    },
    ({ start, ...rest }, ctx) => {
      if (book.all().length >= mostEvents)
        throw ctx.problem('QUOTA_EXHAUSTED', `The calendar is full: it holds at most ${mostEvents} events`)
      const wall = wallIn(start, rest.zone)
      const uid = randomUUID()
      book.put(JSON.parse(JSON.stringify({ ...rest, uid, start: wall })), clock.now())
      changed()
      return { uid, begins: new Date(momentOf(wall, rest.zone)).toISOString() }
    },
  )
  server.tool(
    'list_events',
    {
      description: 'Lists the events of the next days',
      input: z.object({ from: time.optional(), days: z.int().min(1).max(366).default(7) }),
      output: z.object({
        events: z.array(z.object({ uid: z.string(), title: z.string(), begins: z.string(), local: z.string() })),
      }),
      annotations: { readOnlyHint: true },
    },
    ({ from, days }) => {
      const first = from === undefined ? clock.now() : momentOf(wallIn(from, zone), zone)
      const found = book.all().flatMap(event => {
        const until = first + days * 86_400_000
        return [...before(occurrences(event, first), until)].map(at => ({
          uid: event.uid,
          title: event.title,
          at,
          zone: event.zone,
        }))
      })
      found.sort((one, other) => one.at - other.at)
      return {
        events: found.slice(0, 500).map(({ at, zone: own, ...rest }) => {
          return { ...rest, begins: new Date(at).toISOString(), local: `${wallAt(at, own)} ${own}` }
        }),
      }
    },
  )
  server.tool(
    'remove_event',
    {
      description: 'Removes an event and all its repetitions from the calendar',
      input: z.object({ uid: z.string() }),
      output: z.object({ removed: z.string(), ics: z.string() }),
      annotations: { destructiveHint: true },
      undo: { tool: 'import_ics', arguments: ({ result }) => result && { text: result.ics } },
    },
    ({ uid }, ctx) => {
      const removed = book.remove(uid)
      if (removed === undefined)
        throw ctx.problem('RESOURCE_NOT_FOUND', 'The event does not exist', { suggestion: 'Look with list_events' })
      changed()
      return { removed: removed.title, ics: writeCalendar([removed], clock.now()) }
    },
  )
}

function* before(moments: Iterable<number>, until: number): Generator<number> {
  for (const moment of moments) {
    if (moment >= until) return
    yield moment
  }
}

function offerIcs(server: Server, { book, zone, clock, changed }: Parts): void {
  server.tool(
    'import_ics',
    {
      description: 'Imports the events of an iCalendar file; events with a known UID are replaced',
      input: z.object({ text: z.string().max(1_000_000) }),
      output: z.object({ imported: z.number(), skipped: z.array(z.object({ title: z.string(), reason: z.string() })) }),
    },
    ({ text }, ctx) => {
      const { events, skipped } = readCalendar(text, zone)
      if (book.all().length + events.length > mostEvents)
        throw ctx.problem('QUOTA_EXHAUSTED', `The calendar is full: it holds at most ${mostEvents} events`)
      for (const event of events) book.put(event, clock.now())
      changed()
      return { imported: events.length, skipped: [...skipped] }
    },
  )
  const whole = () => writeCalendar(book.all(), clock.now())
  server.tool('export_ics', { description: 'The whole calendar as iCalendar', annotations: { readOnlyHint: true } }, whole)
  server.resource('calendar://calendar.ics', { name: 'calendar.ics', mimeType: 'text/calendar' }, whole)
}
