/** Hours of the day in a time zone: whether a moment lies in them, and when they are over. */
import { clip } from '../../jsonrpc/limits.ts'

/** Local time from `from` to before `to`, over midnight where `to` is the earlier one. */
export interface Hours {
  /** `22:00`. */
  readonly from: string
  /** `07:00`; that minute does not belong to it. */
  readonly to: string
  /** A name such as `Europe/Berlin`. */
  readonly zone: string
  /** On which days they begin. Default all. */
  readonly days?: readonly Day[]
}

const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
type Day = (typeof days)[number]

export interface OpenHours {
  contains(now: number): boolean
  /** The first minute after `now` that lies outside. */
  endsAfter(now: number): number
}

const minuteMs = 60_000
const dayMinutes = 1_440

/** Throws where the times or the zone are none. */
export function openHours({ from, to, zone, days: on = days }: Hours): OpenHours {
  const [start, end] = [minuteOf(from), minuteOf(to)]
  const local = localTime(zone)
  for (const day of on) if (!days.includes(day)) throw new TypeError(`${clip(String(day))} is no day: give ${days.join(', ')}`)
  const contains = (now: number): boolean => {
    const { day, minute } = local(now)
    if (start < end) return minute >= start && minute < end && on.includes(day)
    // Over midnight: the part after it belongs to the day before.
    if (minute >= start) return on.includes(day)
    return minute < end && on.includes(days[(days.indexOf(day) + 6) % 7] as Day)
  }
  const endsAfter = (now: number): number => {
    const { minute } = local(now)
    const whole = Math.floor(now / minuteMs) * minuteMs
    const ahead = (end - minute + dayMinutes) % dayMinutes || dayMinutes
    let at = contains(now) ? whole + ahead * minuteMs : whole + minuteMs
    // Clocks that are put forward or back move the end: first to where it is surely over, then back to its first minute.
    while (contains(at)) at += 15 * minuteMs
    while (at - minuteMs > now && !contains(at - minuteMs)) at -= minuteMs
    return at
  }
  return { contains, endsAfter }
}

function minuteOf(text: string): number {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hours === undefined || minutes === undefined) throw new TypeError(`${clip(String(text))} is no time of day: write 22:00`)
  return Number(hours) * 60 + Number(minutes)
}

function localTime(zone: string): (now: number) => { readonly day: Day; readonly minute: number } {
  const format = formatOf(zone)
  return now => {
    const parts = new Map(format.formatToParts(now).map(({ type, value }) => [type, value]))
    const day = (parts.get('weekday') ?? '').toLowerCase()
    return {
      day: days.find(each => day.startsWith(each)) ?? 'sun',
      minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')),
    }
  }
}

function formatOf(zone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    })
  } catch (cause) {
    throw new TypeError(`${clip(String(zone))} is no time zone: write Europe/Berlin or UTC`, { cause })
  }
}
