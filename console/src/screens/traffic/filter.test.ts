import { describe, expect, it } from 'vitest'
import type { FrameRow } from '../../../../src/console/contract/frames.ts'
import { frameBars } from './bars.ts'
import { holds, isWithin, readFrameFilter, readRange, writeRange } from './filter.ts'

const frame = (more: Partial<FrameRow>): FrameRow => ({
  n: 1,
  at: 1000,
  server: 'shop',
  connection: 'shop-1',
  way: 'out',
  kind: 'request',
  bytes: 10,
  ...more,
})
const rows = [
  frame({ n: 1, method: 'tools/call', status: 'ok', ms: 41, answer: 2, about: 'order {"item":"Bread"}' }),
  frame({ n: 2, at: 1041, kind: 'result', way: 'in', of: 1, method: 'tools/call', status: 'ok', ms: 41 }),
  frame({ n: 3, at: 1050, server: 'wiki', method: 'tools/list', status: 'error', ms: 600, code: -32601 }),
  frame({ n: 4, at: 1060, kind: 'notification', way: 'in', method: 'notifications/progress' }),
  frame({ n: 5, at: 1070, method: 'tools/call', status: 'open' }),
]
const fit = (line: string) => rows.filter(readFrameFilter(line).fits).map(({ n }) => n)

describe('the filter line of frames', () => {
  it('compares words, beginnings and figures', () => {
    expect(fit('server:wiki')).toEqual([3])
    expect(fit('method:tools/*')).toEqual([1, 2, 3, 5])
    expect(fit('method:tools/* ms:>40 ms:>500')).toEqual([3])
    expect(fit('ms:>40 way:out')).toEqual([1, 3])
    expect(fit('code:-32601')).toEqual([3])
    expect(fit('ms:soon')).toEqual([])
    expect(fit('')).toHaveLength(5)
  })

  it('says which fields do not exist, and leaves other words for the text', () => {
    expect(readFrameFilter('serve:shop two words')).toMatchObject({ unknown: ['serve'], text: 'two words' })
    expect(rows.filter(row => holds(row, 'bread')).map(({ n }) => n)).toEqual([1])
  })

  it('keeps what lasted into the chosen time', () => {
    expect(rows.filter(row => isWithin(row, { from: 1030, to: 1045 })).map(({ n }) => n)).toEqual([1, 2])
    expect(readRange(writeRange({ from: 1030.2, to: 1045.6 }))).toEqual({ from: 1030, to: 1046 })
    expect(readRange('never..ever')).toBeUndefined()
  })
})

describe('frames on the time axis', () => {
  it('a request is a bar up to its answer, a notification a moment, and an answer is in its request', () => {
    expect(frameBars(rows).map(({ id, from, to, tone }) => [id, from, to, tone])).toEqual([
      ['1', 1000, 1041, 'plain'],
      ['3', 1050, 1650, 'bad'],
      ['4', 1060, 1060, 'quiet'],
      ['5', 1070, undefined, 'plain'],
    ])
  })
})
