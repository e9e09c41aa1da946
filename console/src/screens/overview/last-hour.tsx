/** Calls of the last hour by minute, and how long they took. */
import type { ReactNode } from 'react'
import type { TrafficWindow } from '#contract'
import { durationText, timeText } from '../../parts/time.tsx'
import { Bars } from '../../pictures/bars.tsx'
import { endOf, percentile, series, sumBuckets } from '../../pictures/buckets.ts'

const minuteMs = 60_000
const hourMs = 3_600_000

/** Buckets that are one bar: a bar for each factor of two. */
const perBar = 8

export interface LastHourProps {
  readonly windows: readonly TrafficWindow[]
  /** Only of this server. */
  readonly server: string | undefined
}

export function LastHour({ windows, server }: LastHourProps): ReactNode {
  const now = Date.now()
  const chosen = windows.map(window => ({
    ...window,
    rows: window.rows.filter(row => server === undefined || row.server === server),
  }))
  const points = series(chosen, now - hourMs, now, minuteMs)
  const rows = chosen.flatMap(each => each.rows)
  const buckets = sumBuckets(rows)
  const last = Math.max(0, ...buckets.keys())
  const bars = Array.from({ length: Math.floor(last / perBar) + 1 }, (_, index) => {
    const from = index * perBar
    const value = Array.from({ length: perBar }, (_each, step) => buckets.get(from + step) ?? 0).reduce(
      (sum, count) => sum + count,
      0,
    )
    return { key: String(index), label: `up to ${durationText(endOf(from + perBar - 1))}`, value }
  })
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map(share => percentile(buckets, share))
  return (
    <div className="space-y-4">
      <Bars
        title={server === undefined ? 'Calls a minute' : `Calls a minute, ${server}`}
        unit="calls"
        ends={[timeText(now - hourMs), 'now']}
        bars={points.map(({ at, calls, failures }) => ({ key: String(at), label: timeText(at), value: calls, bad: failures }))}
      />
      {p50 !== undefined && (
        <>
          <Bars title="How long calls took" unit="calls" ends={['1 ms', durationText(endOf(last))]} bars={bars} />
          <p className="text-muted tabular-nums">
            p50 {durationText(p50)} · p95 {durationText(p95 ?? p50)} · p99 {durationText(p99 ?? p50)}
          </p>
        </>
      )}
      {p50 === undefined && <p className="text-muted">No call ended in this time.</p>}
    </div>
  )
}
