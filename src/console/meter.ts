/**
 * Counts calls by server, tool and client: in windows of ten seconds for an hour, and of five minutes for a day. Counting is all that
 * happens while nobody looks, so a call costs a few additions.
 */
import type { Clock } from '../core/clock.ts'
import type { TrafficBy, TrafficRow, TrafficWindow } from './contract/traffic.ts'

/** One call or refusal. */
export interface MeteredCall {
  readonly server: string
  readonly tool: string
  readonly client: string
  readonly outcome: 'success' | 'failure' | 'refused'
  /** How long it took; absent for refusals. */
  readonly ms?: number
  /** How many of a kind it stands for. */
  readonly times?: number
}

interface Cell {
  readonly server: string
  readonly tool: string
  readonly client: string
  calls: number
  failures: number
  refused: number
  readonly buckets: Map<number, number>
}

type Cells = Map<string, Cell>

const fineMs = 10_000
const fineWindows = 360
const coarseMs = 300_000
const coarseWindows = 288
/** Groups of one window that are told apart; names of tools come from servers. */
const mostGroups = 200
const others = '(others)'
const lastBucket = 160

/** The bucket of a duration: eight for each power of two. */
export function bucketOf(ms: number): number {
  return ms < 1 ? 0 : Math.min(lastBucket, 1 + Math.floor(8 * Math.log2(ms)))
}

/** Counts calls, and adds them up for whoever looks. */
export class Meter {
  readonly #clock: Clock
  /** By the beginning of the window, oldest first. */
  readonly #fine = new Map<number, Cells>()
  readonly #coarse = new Map<number, Cells>()
  #recent: Cells = new Map()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts one call. */
  take(call: MeteredCall): void {
    const now = this.#clock.now()
    addTo(windowAt(this.#fine, now, fineMs, fineWindows), call)
    addTo(windowAt(this.#coarse, now, coarseMs, coarseWindows), call)
    addTo(this.#recent, call)
  }

  /** What was counted since the last time this was called. */
  recent(): readonly TrafficRow[] {
    const cells = this.#recent
    this.#recent = new Map()
    return [...cells.values()].map(cell => rowOf(cell, 'each'))
  }

  /** Windows since a time, oldest first. Times more than an hour ago are counted in coarse windows. */
  read({ by, since, step }: { by: TrafficBy; since: number; step: number | undefined }): readonly TrafficWindow[] {
    const now = this.#clock.now()
    const fine = since >= now - fineMs * fineWindows
    const [unit, windows] = fine ? [fineMs, this.#fine] : [coarseMs, this.#coarse]
    const from = Math.floor(since / unit) * unit
    const whole = Math.max(unit, Math.ceil((now + 1 - from) / unit) * unit)
    const length = step === undefined ? whole : Math.min(whole, Math.max(unit, Math.ceil(step / unit) * unit))
    const found = new Map<number, Cells>()
    for (const [at, cells] of windows) {
      if (at < from) continue
      const start = from + Math.floor((at - from) / length) * length
      const into = found.get(start) ?? new Map()
      found.set(start, into)
      for (const cell of cells.values()) merge(into, cell, by)
    }
    return [...found].map(([at, cells]) => ({ at, step: length, rows: [...cells.values()].map(cell => rowOf(cell, by)) }))
  }
}

function windowAt(windows: Map<number, Cells>, now: number, unit: number, most: number): Cells {
  const at = Math.floor(now / unit) * unit
  const known = windows.get(at)
  if (known !== undefined) return known
  const fresh: Cells = new Map()
  windows.set(at, fresh)
  for (const old of windows.keys()) if (old <= at - unit * most) windows.delete(old)
  return fresh
}

function addTo(cells: Cells, { server, tool, client, outcome, ms, times = 1 }: MeteredCall): void {
  const cell = cellOf(cells, server, tool, client)
  if (outcome === 'refused') {
    cell.refused += times
    return
  }
  cell.calls += times
  if (outcome === 'failure') cell.failures += times
  if (ms === undefined) return
  const bucket = bucketOf(ms)
  cell.buckets.set(bucket, (cell.buckets.get(bucket) ?? 0) + times)
}

function cellOf(cells: Cells, server: string, tool: string, client: string): Cell {
  const key = `${server}\n${tool}\n${client}`
  const known = cells.get(key)
  if (known !== undefined) return known
  // Servers are few: only names of tools and clients are left out.
  if (cells.size >= mostGroups && tool !== others) return cellOf(cells, server, others, others)
  const cell = { server, tool, client, calls: 0, failures: 0, refused: 0, buckets: new Map<number, number>() }
  cells.set(key, cell)
  return cell
}

function merge(into: Cells, { server, tool, client, ...counts }: Cell, by: TrafficBy): void {
  const labels = {
    server: by === 'client' ? '' : server,
    tool: by === 'tool' || by === 'each' ? tool : '',
    client: by === 'client' || by === 'each' ? client : '',
  }
  const cell = cellOf(into, labels.server, labels.tool, labels.client)
  cell.calls += counts.calls
  cell.failures += counts.failures
  cell.refused += counts.refused
  for (const [bucket, count] of counts.buckets) cell.buckets.set(bucket, (cell.buckets.get(bucket) ?? 0) + count)
}

function rowOf({ server, tool, client, buckets, ...counts }: Cell, by: TrafficBy): TrafficRow {
  return {
    ...(by !== 'client' && { server }),
    ...((by === 'tool' || by === 'each') && { tool }),
    ...((by === 'client' || by === 'each') && { client }),
    ...counts,
    buckets: [...buckets].sort(([one], [other]) => one - other),
  }
}
