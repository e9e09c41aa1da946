/** Histograms of durations: bucket 0 is below 1 ms, bucket i ends at 2^(i/8) ms. Sums of histograms are histograms. */
import type { TrafficRow, TrafficWindow } from '#contract'

export type Buckets = ReadonlyMap<number, number>

/** All rows as one. */
export function sumBuckets(rows: readonly TrafficRow[]): Buckets {
  const sum = new Map<number, number>()
  for (const { buckets } of rows) for (const [bucket, count] of buckets) sum.set(bucket, (sum.get(bucket) ?? 0) + count)
  return sum
}

/** The upper end of a bucket in milliseconds. */
export function endOf(bucket: number): number {
  return 2 ** (bucket / 8)
}

/** The duration that a share of the calls stay below; undefined without calls. */
export function percentile(buckets: Buckets, share: number): number | undefined {
  const total = [...buckets.values()].reduce((sum, count) => sum + count, 0)
  let seen = 0
  for (const [bucket, count] of [...buckets].sort(([a], [b]) => a - b)) {
    seen += count
    if (seen >= total * share) return endOf(bucket)
  }
  return undefined
}

export interface Figures {
  readonly calls: number
  readonly failures: number
  readonly refused: number
  readonly p50: number | undefined
  readonly p95: number | undefined
}

/** What rows say in five figures. */
export function figuresOf(rows: readonly TrafficRow[]): Figures {
  const buckets = sumBuckets(rows)
  const sum = (name: 'calls' | 'failures' | 'refused') => rows.reduce((total, row) => total + row[name], 0)
  return {
    calls: sum('calls'),
    failures: sum('failures'),
    refused: sum('refused'),
    p50: percentile(buckets, 0.5),
    p95: percentile(buckets, 0.95),
  }
}

/** Calls and failures for each window from `from` to `to`; windows without calls are zero. */
export function series(windows: readonly TrafficWindow[], from: number, to: number, step: number) {
  const first = Math.floor(from / step)
  const points = Array.from({ length: Math.max(1, Math.ceil(to / step) - first) }, (_, index) => ({
    at: (first + index) * step,
    calls: 0,
    failures: 0,
  }))
  for (const { at, rows } of windows) {
    const point = points[Math.floor(at / step) - first]
    if (point === undefined) continue
    const { calls, failures } = figuresOf(rows)
    point.calls += calls
    point.failures += failures
  }
  return points
}
