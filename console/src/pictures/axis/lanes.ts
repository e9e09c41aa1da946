/** Puts bars into lanes, one for each server, and bars of the same time below each other. */
import type { Extent } from './scale.ts'

/** A bar of the picture. Without `to` it has not ended. */
export interface Bar {
  readonly id: string
  readonly lane: string
  readonly name: string
  readonly from: number
  readonly to?: number
  /** `bad`: it failed. `quiet`: it stands for something in the background. */
  readonly tone: 'plain' | 'bad' | 'quiet'
  /** It mostly waits, as a stream does: its length does not keep idle time from being folded. */
  readonly waits?: boolean
}

/** A bar with its place: the row counts through all lanes. */
export interface PlacedBar extends Extent {
  readonly bar: Bar
  readonly row: number
}

export interface Lane {
  readonly name: string
  readonly first: number
  readonly rows: number
}

export interface Layout {
  readonly lanes: readonly Lane[]
  /** By row, each in the order of time. */
  readonly rows: readonly (readonly PlacedBar[])[]
}

/** What is at the same time beyond this shares the last row of its lane. */
const mostRows = 8

/** Lays all bars out; those that have not ended reach to `now`. */
export function layOut(bars: readonly Bar[], now: number): Layout {
  const byLane = Map.groupBy(
    [...bars].sort((a, b) => a.from - b.from),
    ({ lane }) => lane,
  )
  const lanes: Lane[] = []
  const rows: PlacedBar[][] = []
  for (const [name, own] of byLane) {
    const first = rows.length
    const ends: number[] = []
    for (const bar of own) {
      const to = Math.max(bar.from, bar.to ?? now)
      const free = ends.findIndex(end => end <= bar.from)
      const row = free >= 0 ? free : Math.min(ends.length, mostRows - 1)
      ends[row] = Math.max(ends[row] ?? 0, to)
      rows[first + row] ??= []
      rows[first + row]?.push({ bar, from: bar.from, to, row: first + row })
    }
    lanes.push({ name, first, rows: ends.length })
  }
  return { lanes, rows }
}

/** When something happens: bars that wait, or have not ended, only begin and end. */
export function workOf(rows: Layout['rows']): readonly Extent[] {
  return rows.flat().flatMap(({ bar, from, to }) => {
    if (bar.to !== undefined && bar.waits !== true) return [{ from, to }]
    return [from, to].map(at => ({ from: at, to: at }))
  })
}

/** The bar of a row that is nearest to a time, where one is near enough. */
export function nearest(row: readonly PlacedBar[] | undefined, at: number, reach: number): PlacedBar | undefined {
  let best: PlacedBar | undefined
  let least = reach
  for (const placed of row ?? []) {
    const away = at < placed.from ? placed.from - at : at > placed.to ? at - placed.to : 0
    if (away > least) continue
    best = placed
    least = away
  }
  return best
}
