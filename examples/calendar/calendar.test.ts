import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectInMemory, fakeClock } from 'vivarium/testing'
import { command, liveHost, temporaryFolder, wires } from '../../test/examples/live-host.ts'
import { type CalendarOptions, openCalendar } from './calendar.ts'
import { readCalendar, writeCalendar } from './ics.ts'
import { type CalendarEvent, occurrences, weekdays } from './occurrences.ts'
import { momentOf, wallAt } from './zones.ts'

const zone = 'Europe/Berlin'
const hour = 3_600_000
const at = (time: string) => Date.parse(time)

function opened(options: Partial<CalendarOptions> = {}) {
  const calendar = openCalendar({ file: join(temporaryFolder(), 'calendar.db'), zone, ...options })
  let closing: PromiseLike<void> | undefined
  const close = async () => {
    closing ??= calendar[Symbol.asyncDispose]()
    await closing
  }
  onTestFinished(close)
  return { server: calendar.server, close }
}

describe.each(wires)('a live host on %s', revision => {
  test('is woken by the reminder of an event when it is due, and not before', async () => {
    const clock = fakeClock(at('2026-01-23T08:00:00Z'))
    const { mcp, pushed } = await liveHost(opened({ clock }).server, { revision })
    const added = await mcp.callTool('add_event', { title: 'Review', start: '2026-01-23T10:30:00', remind: 15, place: 'Room 4' })
    expect(added.structured).toMatchObject({ begins: '2026-01-23T09:30:00.000Z' })
    clock.advance(1.25 * hour - 1)
    await mcp.callTool('list_events')
    expect(pushed).toEqual([])
    clock.advance(1)
    const { uid } = added.structured as { uid: string }
    await expect
      .poll(() => pushed)
      .toMatchObject([
        {
          featureSet: 'calendar.reminders',
          eventId: `${uid}@2026-01-23T09:30:00.000Z`,
          timestamp: '2026-01-23T09:15:00.000Z',
          content: [
            {
              type: 'text',
              text: 'Reminder, 15 minutes before it begins: Review\nBegins 2026-01-23 10:30 Europe/Berlin, Room 4',
            },
          ],
          tags: ['calendar', 'reminder'],
        },
      ])
  })
})

test('what repeats is told each time, at the same time on the wall, also when the clocks change', async () => {
  const clock = fakeClock(at('2026-03-27T00:00:00Z'))
  const { mcp, pushed } = await liveHost(opened({ clock }).server)
  await mcp.callTool('add_event', {
    title: 'Standup',
    start: '2026-03-27T09:00:00',
    remind: 0,
    repeat: { every: 'day', count: 4 },
  })
  for (const told of [1, 2, 3, 4]) {
    clock.advance(24 * hour)
    await expect.poll(() => pushed.length).toBe(told)
  }
  clock.advance(240 * hour)
  await mcp.callTool('list_events')
  expect(pushed.map(({ timestamp }) => timestamp)).toEqual([
    '2026-03-27T08:00:00.000Z',
    '2026-03-28T08:00:00.000Z',
    '2026-03-29T07:00:00.000Z',
    '2026-03-30T07:00:00.000Z',
  ])
})

test('after a long sleep of the server only the last of the reminders of one event is told, and each once', async () => {
  const file = join(temporaryFolder(), 'calendar.db')
  const clock = fakeClock(at('2026-01-01T00:00:00Z'))
  const first = opened({ file, clock, zone: 'UTC' })
  const before = await liveHost(first.server)
  await before.mcp.callTool('add_event', { title: 'Daily', start: '2026-01-02T09:00', remind: 60, repeat: { every: 'day' } })
  await before.mcp.callTool('add_event', { title: 'Once', start: '2026-01-05T09:00:00Z', remind: 0 })
  await before.mcp.close()
  await first.close()
  clock.advance(10 * 24 * hour)
  const second = opened({ file, clock, zone: 'UTC' })
  clock.advance(0)
  const { pushed, mcp } = await liveHost(second.server)
  await expect
    .poll(() => pushed.map(({ timestamp }) => timestamp).sort())
    .toEqual(['2026-01-05T09:00:00.000Z', '2026-01-10T08:00:00.000Z'])
  await mcp.close()
  await second.close()
  const third = await liveHost(opened({ file, clock, zone: 'UTC' }).server)
  clock.advance(10 * hour)
  await expect.poll(() => third.pushed).toMatchObject([{ timestamp: '2026-01-11T08:00:00.000Z' }])
})

test('an event that is removed is not told, and comes back from what its removal gave', async () => {
  const clock = fakeClock(at('2026-01-01T00:00:00Z'))
  const { mcp, pushed } = await liveHost(opened({ clock }).server)
  const { structured } = await mcp.callTool('add_event', { title: 'A, b; c', start: '2026-01-02T09:00:00', remind: 5 })
  const gone = await mcp.callTool('remove_event', structured as { uid: string })
  clock.advance(12 * hour)
  expect((await mcp.callTool('list_events')).structured).toEqual({ events: [] })
  await mcp.callTool('import_ics', { text: (gone.structured as { ics: string }).ics })
  clock.advance(24 * hour)
  await expect.poll(() => pushed.length).toBe(1)
  expect(JSON.stringify(pushed)).toContain('A, b; c')
  expect(await mcp.callTool('remove_event', { uid: 'none' })).toMatchObject({ problem: { code: 'RESOURCE_NOT_FOUND' } })
})

test('a plain host has the tools, the calendar as a resource, and reminders among the pending events', async () => {
  const clock = fakeClock(at('2026-01-01T00:00:00Z'))
  const mcp = await connectInMemory(opened({ clock }).server)
  onTestFinished(() => mcp.close())
  const repeat = { every: 'week', interval: 2, days: ['MO', 'TH'] }
  await mcp.callTool('add_event', { title: 'Gym', start: '2026-01-01T18:00:00', remind: 30, repeat })
  const listed = await mcp.callTool('list_events', { from: '2026-01-01T00:00:00', days: 21 })
  expect((listed.structured as { events: { local: string }[] }).events.map(({ local }) => local)).toEqual(
    ['01', '12', '15'].map(day => `2026-01-${day}T18:00:00 Europe/Berlin`),
  )
  clock.advance(17 * hour)
  const pending = async () => JSON.stringify((await mcp.readResource('live://events/pending')).contents)
  await expect.poll(pending).toContain('Gym')
  const { contents } = await mcp.readResource('calendar://calendar.ics')
  expect(contents[0]).toMatchObject({ text: expect.stringContaining('RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH\r\n') })
  const wrong = await mcp.callTool('add_event', { title: 'x', start: '2026-01-01T18:00:00', zone: 'Mars/Base' })
  expect(wrong).toMatchObject({ isError: true })
})

const ics = (...lines: string[]) => ['BEGIN:VCALENDAR', ...lines, 'END:VCALENDAR', ''].join('\r\n')

test('an iCalendar file of others is read as far as it is understood, and the rest is named with the reason', () => {
  const text = ics(
    ...['BEGIN:VTIMEZONE', 'TZID:Europe/Berlin', 'END:VTIMEZONE'],
    ...['BEGIN:VEVENT', 'UID:1', 'SUMMARY;LANGUAGE=en:Lunch\\, with', '  Ada', 'DTSTART;TZID="Europe/Berlin":20260123T120000'],
    ...['DTEND;TZID=Europe/Berlin:20260123T133000', 'BEGIN:VALARM', 'TRIGGER:-PT1H', 'END:VALARM', 'END:VEVENT'],
    ...['BEGIN:VEVENT', 'UID:2', 'SUMMARY:Holiday', 'DTSTART;VALUE=DATE:20260501', 'END:VEVENT'],
    ...['BEGIN:VEVENT', 'UID:3', 'SUMMARY:Rent', 'DTSTART:20260101T000000Z', 'RRULE:FREQ=MONTHLY', 'END:VEVENT'],
    ...['BEGIN:VEVENT', 'UID:4', 'SUMMARY:Far', 'DTSTART;TZID=Mars:20260101T000000', 'END:VEVENT'],
    ...['BEGIN:VEVENT', 'UID:5', 'SUMMARY:No', 'DTSTART:20261399T000000Z', 'END:VEVENT'],
  )
  const { events, skipped } = readCalendar(text, 'UTC')
  expect(events).toEqual([
    { uid: '1', title: 'Lunch, with Ada', start: '2026-01-23T12:00:00', zone, minutes: 90, remind: 60 },
    { uid: '2', title: 'Holiday', start: '2026-05-01T00:00:00', zone: 'UTC', minutes: 1440 },
  ])
  expect(skipped.map(({ title }) => title)).toEqual(['Rent', 'Far', 'No'])
  expect(skipped[0]?.reason).toContain('FREQ=MONTHLY')
})

const text = fc
  .string({ unit: 'grapheme', maxLength: 120 })
  .map(each => each.replace(/\r\n?|[\u0000-\u0008\u000b-\u001f\u007f]/g, ' '))
const calendarEvent: fc.Arbitrary<CalendarEvent> = fc.record(
  {
    uid: fc.uuid(),
    title: text,
    start: fc.integer({ min: 0, max: 2 ** 31 }).map(seconds => new Date(seconds * 1000).toISOString().slice(0, 19)),
    zone: fc.constantFrom('UTC', zone, 'America/New_York', 'Asia/Kolkata'),
    minutes: fc.nat(5000),
    place: text,
    description: text,
    remind: fc.nat(5000),
    repeat: fc.record(
      {
        every: fc.constant('week' as const),
        interval: fc.integer({ min: 2, max: 9 }),
        count: fc.integer({ min: 1, max: 50 }),
        until: fc.constant('2030-01-01T00:00:00.000Z'),
        days: fc.uniqueArray(fc.constantFrom(...weekdays), { minLength: 1 }),
      },
      { requiredKeys: ['every'] },
    ),
  },
  { requiredKeys: ['uid', 'title', 'start', 'zone', 'minutes'] },
)

test('a title keeps the line separators of Unicode, which end no line of a calendar', () => {
  const event = { uid: '1', title: 'One\u2028two\u2029three', start: '2026-01-05T09:00:00', zone: 'UTC', minutes: 30 }
  expect(readCalendar(writeCalendar([event], 0), 'UTC')).toEqual({ events: [event], skipped: [] })
})

test('what is written as iCalendar is read as what it was, in lines of at most 75 bytes', () => {
  fc.assert(
    fc.property(fc.array(calendarEvent, { maxLength: 3 }), events => {
      const written = writeCalendar(events, 0)
      for (const line of written.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75)
      expect(readCalendar(written, 'UTC')).toEqual({ events, skipped: [] })
    }),
    { numRuns: 50 },
  )
})

test('the occurrences of an event are in order, no more than its count, and the same from wherever one looks', () => {
  fc.assert(
    fc.property(calendarEvent, fc.nat(20), (event, skip) => {
      const all = [...occurrences({ ...event, ...(event.repeat && { repeat: { ...event.repeat, count: 20 } }) }, 0)]
      const sorted = [...all].sort((a, b) => a - b)
      expect(all).toEqual(sorted)
      expect(all.length).toBeLessThanOrEqual(20)
      const from = all[Math.min(skip, all.length - 1)] ?? 0
      const again = [...occurrences({ ...event, ...(event.repeat && { repeat: { ...event.repeat, count: 20 } }) }, from)]
      expect(again).toEqual(all.filter(moment => moment >= from))
    }),
    { numRuns: 50 },
  )
})

test('a time on the wall is the moment at which a clock shows it, the first of two, and goes on where there is none', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 31 }), fc.constantFrom(zone, 'America/New_York', 'UTC'), (seconds, where) => {
      const wall = wallAt(seconds * 1000, where)
      const moment = momentOf(wall, where)
      expect(wallAt(moment, where)).toBe(wall)
      expect(moment).toBeLessThanOrEqual(seconds * 1000)
    }),
  )
  expect(new Date(momentOf('2026-03-29T02:30:00', zone)).toISOString()).toBe('2026-03-29T01:30:00.000Z')
  expect(new Date(momentOf('2026-10-25T02:30:00', zone)).toISOString()).toBe('2026-10-25T00:30:00.000Z')
})

test('as a process of its own it keeps its events', async () => {
  const target = command('calendar', [], { CALENDAR_FILE: join(temporaryFolder(), 'c.db'), CALENDAR_ZONE: 'UTC' })
  const first = await liveHost(target)
  await first.mcp.callTool('add_event', { title: 'Party', start: '2035-05-05T20:00:00' })
  await first.mcp.close()
  const { mcp } = await liveHost(target)
  expect((await mcp.callTool('list_events', { from: '2035-05-05T00:00:00', days: 1 })).text).toContain('2035-05-05T20:00:00 UTC')
})
