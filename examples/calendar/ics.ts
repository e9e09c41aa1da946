/**
 * A small part of iCalendar (RFC 5545): events with their time, place, alarm, and repetition by days and weeks. What would mean something
 * else without the part that is not known here is left out as a whole, and it is said why.
 */
import { type Line, readLines, readText, writeLines, writeText } from './ics-text.ts'
import { type CalendarEvent, type Repeat, type Weekday, weekdays } from './occurrences.ts'
import { isZone, momentOf, plain } from './zones.ts'

export interface Imported {
  readonly events: readonly CalendarEvent[]
  readonly skipped: readonly { readonly title: string; readonly reason: string }[]
}

class Unknown extends Error {}

export function readCalendar(text: string, zone: string): Imported {
  const events: CalendarEvent[] = []
  const skipped: { title: string; reason: string }[] = []
  for (const block of blocksOf(readLines(text))) {
    try {
      events.push(eventOf(block, zone))
    } catch (error) {
      if (!(error instanceof Unknown)) throw error
      skipped.push({ title: readText(saidIn(block.own, 'SUMMARY') ?? '').slice(0, 100), reason: error.message })
    }
  }
  return { events, skipped }
}

interface Block {
  readonly own: readonly Line[]
  readonly alarm: readonly Line[]
}

function blocksOf(lines: readonly Line[]): readonly Block[] {
  const blocks: { own: Line[]; alarm: Line[] }[] = []
  let inside: string[] = []
  for (const line of lines) {
    const what = line.value.toUpperCase()
    if (line.name === 'BEGIN') {
      inside.push(what)
      if (what === 'VEVENT') blocks.push({ own: [], alarm: [] })
    } else if (line.name === 'END') inside = inside.slice(0, Math.max(0, inside.lastIndexOf(what)))
    else if (inside.at(-1) === 'VEVENT') blocks.at(-1)?.own.push(line)
    else if (inside.at(-1) === 'VALARM' && inside.at(-2) === 'VEVENT') blocks.at(-1)?.alarm.push(line)
  }
  return blocks
}

const find = (lines: readonly Line[], name: string): Line | undefined => lines.find(line => line.name === name)
const saidIn = (lines: readonly Line[], name: string): string | undefined => find(lines, name)?.value

function eventOf({ own, alarm }: Block, standard: string): CalendarEvent {
  const foreign = ['RDATE', 'EXDATE', 'RECURRENCE-ID', 'EXRULE'].find(name => find(own, name) !== undefined)
  if (foreign !== undefined) throw new Unknown(`${foreign} is not supported`)
  const uid = saidIn(own, 'UID')
  const begin = find(own, 'DTSTART')
  if (uid === undefined || uid === '' || begin === undefined) throw new Unknown('UID or DTSTART is missing')
  const { wall: start, zone } = timeOf(begin, standard)
  const [place, description] = [saidIn(own, 'LOCATION'), saidIn(own, 'DESCRIPTION')]
  const rule = saidIn(own, 'RRULE')
  const remind = triggerOf(find(alarm, 'TRIGGER'))
  return {
    uid,
    title: readText(saidIn(own, 'SUMMARY') ?? ''),
    start,
    zone,
    minutes: lengthOf(own, begin, start, zone),
    ...(place !== undefined && { place: readText(place) }),
    ...(description !== undefined && { description: readText(description) }),
    ...(remind !== undefined && { remind }),
    ...(rule !== undefined && { repeat: repeatOf(rule, zone) }),
  }
}

function timeOf({ params, value }: Line, standard: string): { readonly wall: string; readonly zone: string } {
  const [, year, month, day, hour = '00', minute = '00', second = '00', utc] =
    /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$/.exec(value) ?? []
  const wall = `${year}-${month}-${day}T${hour}:${minute}:${second}`
  if (Number.isNaN(plain(wall))) throw new Unknown('A time is not valid')
  const zone = utc === 'Z' ? 'UTC' : (params.get('TZID') ?? standard)
  if (!isZone(zone)) throw new Unknown(`The time zone ${zone.slice(0, 60)} does not exist`)
  return { wall, zone }
}

function lengthOf(own: readonly Line[], begin: Line, start: string, zone: string): number {
  const end = find(own, 'DTEND')
  if (end !== undefined) {
    const { wall, zone: endZone } = timeOf(end, zone)
    return Math.max(0, Math.round((momentOf(wall, endZone) - momentOf(start, zone)) / 60_000))
  }
  const given = saidIn(own, 'DURATION')
  if (given !== undefined) return durationOf(given)
  return begin.value.includes('T') ? 0 : 1440
}

/** In minutes. */
function durationOf(value: string): number {
  const match = /^([+-]?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/.exec(value)
  if (match === null) throw new Unknown(`${value.slice(0, 40)} is not a duration`)
  const [weeks, days, hours, minutes, seconds] = match.slice(2).map(part => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  const all = weeks * 10_080 + days * 1440 + hours * 60 + minutes + Math.round(seconds / 60)
  return match[1] === '-' ? -all : all
}

/** Only what is before the beginning, or at it: other alarms are not reminders. */
function triggerOf(trigger: Line | undefined): number | undefined {
  if (trigger === undefined || trigger.params.has('VALUE') || trigger.params.get('RELATED') === 'END') return undefined
  const minutes = durationOf(trigger.value)
  return minutes > 0 ? undefined : Math.abs(minutes)
}

function repeatOf(rule: string, zone: string): Repeat {
  const parts = new Map(rule.split(';').map(part => part.toUpperCase().split('=') as [string, string]))
  const strange = [...parts.keys()].find(name => !['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'BYDAY', 'WKST'].includes(name))
  const every = parts.get('FREQ') === 'DAILY' ? 'day' : parts.get('FREQ') === 'WEEKLY' ? 'week' : undefined
  const days = parts.get('BYDAY')?.split(',')
  const wrong = days?.some(day => !weekdays.some(known => known === day)) === true || (days !== undefined && every === 'day')
  const week = parts.get('WKST') ?? 'MO'
  if (strange !== undefined || every === undefined || wrong || week !== 'MO')
    throw new Unknown(`The repetition rule ${rule.slice(0, 100)} is not supported`)
  const [interval, count] = ['INTERVAL', 'COUNT'].map(name => (parts.has(name) ? Number(parts.get(name)) : undefined))
  if ([interval, count].some(number => number !== undefined && !(Number.isInteger(number) && number > 0)))
    throw new Unknown('INTERVAL or COUNT is not a number')
  const until = parts.get('UNTIL')
  return {
    every,
    ...(interval !== undefined && interval > 1 && { interval }),
    ...(count !== undefined && { count }),
    ...(until !== undefined && { until: untilOf(until, zone) }),
    ...(days !== undefined && { days: days as Weekday[] }),
  }
}

/** A date means all of its day. */
function untilOf(value: string, zone: string): string {
  const { wall, zone: said } = timeOf({ name: 'UNTIL', params: new Map(), value }, zone)
  return new Date(momentOf(value.includes('T') ? wall : `${wall.slice(0, 10)}T23:59:59`, said)).toISOString()
}

export function writeCalendar(events: readonly CalendarEvent[], now: number): string {
  const lines = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//vivarium//calendar example//EN']
  for (const event of events) lines.push(...eventLines(event, utc(now)))
  return writeLines([...lines, 'END:VCALENDAR'])
}

const compact = (wall: string): string => wall.replace(/[-:]/g, '')
const utc = (moment: number): string => `${compact(new Date(moment).toISOString().slice(0, 19))}Z`

function eventLines(
  { uid, title, start, zone, minutes, place, description, remind, repeat }: CalendarEvent,
  stamp: string,
): string[] {
  return [
    'BEGIN:VEVENT',
    `UID:${uid}`,
    `DTSTAMP:${stamp}`,
    zone === 'UTC' ? `DTSTART:${compact(start)}Z` : `DTSTART;TZID=${zone}:${compact(start)}`,
    `DURATION:PT${minutes}M`,
    `SUMMARY:${writeText(title)}`,
    ...(place === undefined ? [] : [`LOCATION:${writeText(place)}`]),
    ...(description === undefined ? [] : [`DESCRIPTION:${writeText(description)}`]),
    ...(repeat === undefined ? [] : [`RRULE:${ruleOf(repeat)}`]),
    ...(remind === undefined
      ? []
      : ['BEGIN:VALARM', 'ACTION:DISPLAY', `DESCRIPTION:${writeText(title)}`, `TRIGGER:-PT${remind}M`, 'END:VALARM']),
    'END:VEVENT',
  ]
}

function ruleOf({ every, interval, count, until, days }: Repeat): string {
  return [
    `FREQ=${every === 'day' ? 'DAILY' : 'WEEKLY'}`,
    ...(interval === undefined ? [] : [`INTERVAL=${interval}`]),
    ...(count === undefined ? [] : [`COUNT=${count}`]),
    ...(until === undefined ? [] : [`UNTIL=${utc(Date.parse(until))}`]),
    ...(days === undefined ? [] : [`BYDAY=${days.join(',')}`]),
  ].join(';')
}
