import { describe, expect, it } from 'vitest'
import { type Bar, layOut, nearest, workOf } from './lanes.ts'
import { foldIdle, moved, ticksOf, zoomed } from './scale.ts'

const day = 86_400_000
const bar = (id: string, from: number, to?: number, lane = 'shop'): Bar => ({
  id,
  lane,
  name: id,
  from,
  ...(to !== undefined && { to }),
  tone: 'plain',
})

describe('the line of time', () => {
  const line = foldIdle([
    { from: 1000, to: 1100 },
    { from: 1120, to: 1200 },
    { from: day, to: day + 100 },
  ])

  it('folds a long wait between bursts of work, and only that', () => {
    expect(line.folds).toMatchObject([{ from: 1200, to: day }])
    expect(line.length).toBeLessThan(500)
  })

  it('goes from a time to its place and back, inside of folds too', () => {
    for (const at of [1000, 1050, 1110, 1200, day / 2, day, day + 99.9]) expect(line.timeAt(line.placeOf(at))).toBeCloseTo(at, 1)
    expect(line.placeOf(1000)).toBe(0)
    expect(line.placeOf(day + 100)).toBeCloseTo(line.length, 6)
  })

  it('has a length also for one moment and for nothing', () => {
    expect(foldIdle([{ from: 5, to: 5 }]).length).toBe(1)
    expect(foldIdle([]).length).toBe(1)
  })

  it('is zoomed about a place and moved, and never left', () => {
    expect(zoomed({ from: 0, to: 100 }, 0.5, 80, 100)).toEqual({ from: 40, to: 90 })
    expect(zoomed({ from: 40, to: 90 }, 4, 80, 100)).toEqual({ from: 0, to: 100 })
    expect(zoomed({ from: 40, to: 40.2 }, 0.01, 40.1, 100).to).toBeCloseTo(40.15, 6)
    expect(moved({ from: 0, to: 50 }, 0.5, 100)).toEqual({ from: 25, to: 75 })
    expect(moved({ from: 0, to: 50 }, -0.5, 100)).toEqual({ from: 0, to: 50 })
  })

  it('has marks at round times that do not touch, and none in a fold', () => {
    const ticks = ticksOf(line, { from: 0, to: line.length }, 40)
    expect(ticks.length).toBeGreaterThan(3)
    expect(ticks.every(at => at % 50 === 0 && (at <= 1200 || at >= day))).toBe(true)
  })
})

describe('lanes', () => {
  const layout = layOut([bar('a', 0, 10), bar('b', 5, 8), bar('c', 10, 12), bar('x', 3, 4, 'wiki'), bar('open', 11)], 50)

  it('put what is at the same time below each other, and each server into its own', () => {
    expect(layout.lanes).toEqual([
      { name: 'shop', first: 0, rows: 2 },
      { name: 'wiki', first: 2, rows: 1 },
    ])
    expect(layout.rows.map(row => row.map(each => each.bar.id))).toEqual([['a', 'c'], ['b', 'open'], ['x']])
  })

  it('let what has not ended reach to now', () => expect(layout.rows[1]?.[1]?.to).toBe(50))

  it('what waits, or has not ended, does not keep a wait from being folded', () => {
    const stream: Bar = { ...bar('stream', 0, day), waits: true }
    const calls = [bar('a', 10, 20), bar('b', day - 20, day - 10), bar('open', 15)]
    const { folds, length } = foldIdle(workOf(layOut([stream, ...calls], day + 5).rows))
    expect(folds).toMatchObject([{ from: 20, to: day - 20 }])
    expect(length).toBeLessThan(100)
  })

  it('stay bounded, however much happens at once', () => {
    const many = layOut(
      Array.from({ length: 100 }, (_, index) => bar(String(index), 0, 10)),
      10,
    )
    expect(many.rows.length).toBe(8)
    expect(many.rows.flat().length).toBe(100)
  })

  it('know the bar that a press meant', () => {
    expect(nearest(layout.rows[0], 9.5, 1)?.bar.id).toBe('a')
    expect(nearest(layout.rows[0], 13, 2)?.bar.id).toBe('c')
    expect(nearest(layout.rows[0], 30, 2)).toBeUndefined()
  })
})
