import fc from 'fast-check'
import { expect, it } from 'vitest'
import { openHours } from './read.ts'

const night = { from: '22:00', to: '07:00' }

it.each([
  ['2026-01-10T21:30:00Z', 'Europe/Berlin', true],
  ['2026-01-10T20:59:00Z', 'Europe/Berlin', false],
  ['2026-01-10T05:59:00Z', 'Europe/Berlin', true],
  ['2026-01-10T06:00:00Z', 'Europe/Berlin', false],
  ['2026-07-10T05:30:00Z', 'Europe/Berlin', false],
  ['2026-01-10T21:30:00Z', 'America/New_York', false],
])('%s in %s lies within the night: %s', (at, zone, expected) => {
  expect(openHours({ ...night, zone }).contains(Date.parse(at))).toBe(expected)
})

it('hours over midnight belong to the day on which they begin', () => {
  const fridays = openHours({ ...night, zone: 'UTC', days: ['fri'] })
  const within = (at: string) => fridays.contains(Date.parse(at))
  expect([within('2026-01-09T23:00:00Z'), within('2026-01-10T06:00:00Z')]).toEqual([true, true])
  expect([within('2026-01-09T06:00:00Z'), within('2026-01-10T23:00:00Z')]).toEqual([false, false])
})

it('they are over at the first minute that lies outside, also where clocks are put forward or back', () => {
  const start = Date.parse('2026-01-01T00:00:00Z')
  const zones = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC')
  const times = fc.tuple(fc.nat(23), fc.nat(59)).map(parts => parts.map(part => String(part).padStart(2, '0')).join(':'))
  fc.assert(
    fc.property(zones, times, times, fc.nat(366 * 24 * 60), (zone, from, to, minutes) => {
      fc.pre(from !== to)
      const hours = openHours({ from, to, zone })
      const now = start + minutes * 60_000 + 1_234
      const end = hours.endsAfter(now)
      expect(end).toBeGreaterThan(now)
      expect(hours.contains(end)).toBe(false)
      if (hours.contains(now)) expect(hours.contains(end - 60_000)).toBe(true)
    }),
    { numRuns: 200 },
  )
})
