import { expect, it } from 'vitest'
import { type Duration, toMilliseconds } from './clock.ts'

it.each<[Duration, number]>([
  [250, 250],
  [0, 0],
  ['250ms', 250],
  ['30s', 30_000],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
])('%s is %d milliseconds', (duration, milliseconds) => {
  expect(toMilliseconds(duration)).toBe(milliseconds)
})

it.each([
  '',
  '30',
  's',
  '-1s',
  '30 s',
  '30sec',
  '1e3s',
  '30x',
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  undefined,
  'constructor',
])('%s is refused with the option named and the forms that would be right', wrong => {
  expect(() => toMilliseconds(wrong as Duration, 'timeout')).toThrow(/^timeout: .*is not a duration.*'30s'/)
})
