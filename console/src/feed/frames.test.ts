import { describe, expect, it } from 'vitest'
import type { FrameRow } from '../../../src/console/contract/frames.ts'
import { joined, placeOf } from './frames.ts'

const request = (n: number): FrameRow => ({
  n,
  at: n,
  server: 'shop',
  connection: 'c',
  way: 'out',
  kind: 'request',
  status: 'open',
  method: 'tools/call',
  id: n,
  bytes: 1,
})
const answer = (n: number, of: number): FrameRow => ({
  n,
  at: n,
  server: 'shop',
  connection: 'c',
  way: 'in',
  kind: 'result',
  status: 'ok',
  of,
  ms: n - of,
  bytes: 1,
})

describe('frames as they are known', () => {
  it('a request learns how it was answered, also by an answer of the same news', () => {
    const rows = joined(joined([], [request(1), request(2)]), [answer(3, 1), request(4), answer(5, 4)])
    expect(rows.map(({ n, status, ms, answer: by }) => [n, status, ms, by])).toEqual([
      [1, 'ok', 2, 3],
      [2, 'open', undefined, undefined],
      [3, 'ok', 2, undefined],
      [4, 'ok', 1, 5],
      [5, 'ok', 1, undefined],
    ])
  })

  it('what was missed is put where it belongs, and nothing stands twice', () => {
    const rows = joined([request(1), request(5)], [request(2), request(3), request(5), request(6)])
    expect(rows.map(({ n }) => n)).toEqual([1, 2, 3, 5, 6])
    expect(placeOf(rows, 4)).toBe(3)
  })

  it('are bounded: the newest stay', () => {
    const many = Array.from({ length: 20_050 }, (_, index) => request(index + 1))
    expect(joined([], many)).toHaveLength(20_000)
    expect(joined(joined([], many), [request(20_051)]).at(0)?.n).toBe(52)
  })
})
