/** An event of a calendar, and when it happens: once, every so many days, or on some days of every so many weeks. */
import { momentOf, plain, wallOf } from './zones.ts'

export const weekdays = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'] as const
export type Weekday = (typeof weekdays)[number]

export interface Repeat {
  readonly every: 'day' | 'week'
  /** Each second one, each third … Default 1. */
  readonly interval?: number
  /** How often in all. */
  readonly count?: number
  /** The last moment at which one may begin, ISO 8601 in UTC. */
  readonly until?: string
  /** Of weeks. Default: the day on which the first one is. */
  readonly days?: readonly Weekday[]
}

export interface CalendarEvent {
  readonly uid: string
  readonly title: string
  /** The wall time of the first one, such as 2026-01-23T10:30:00. */
  readonly start: string
  /** Such as Europe/Berlin. */
  readonly zone: string
  readonly minutes: number
  readonly place?: string
  readonly description?: string
  /** So many minutes before it begins. */
  readonly remind?: number
  readonly repeat?: Repeat
}

const day = 86_400_000
const week = 7 * day
/** Nobody plans beyond a lifetime of days. */
const mostDays = 40_000

/** The moments at which it begins, from one on, in order. */
export function* occurrences({ start, zone, repeat }: CalendarEvent, from: number): Generator<number, void, void> {
  const first = plain(start)
  if (repeat === undefined) {
    const moment = momentOf(start, zone)
    if (moment >= from) yield moment
    return
  }
  const until = repeat.until === undefined ? Number.POSITIVE_INFINITY : Date.parse(repeat.until)
  let left = repeat.count ?? Number.POSITIVE_INFINITY
  for (let n = 0; n < mostDays && left > 0; n++) {
    const value = first + n * day
    if (!falls(repeat, first, value)) continue
    left--
    // Zones are never more than a day apart: what is earlier than that need not be looked at closely.
    if (value < from - 2 * day) continue
    const moment = momentOf(wallOf(value), zone)
    if (moment > until) return
    if (moment >= from) yield moment
  }
}

function falls({ every, interval = 1, days }: Repeat, first: number, value: number): boolean {
  if (every === 'day') return Math.round((value - first) / day) % interval === 0
  // Weeks begin on Monday, as they do in RFC 5545 unless it says otherwise.
  const monday = (moment: number): number => Math.floor((moment + 3 * day) / week)
  const weekday = weekdays[new Date(value).getUTCDay()] as Weekday
  const wanted = days ?? [weekdays[new Date(first).getUTCDay()] as Weekday]
  return wanted.includes(weekday) && (monday(value) - monday(first)) % interval === 0
}
