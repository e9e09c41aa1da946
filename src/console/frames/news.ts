/** News of frames: gathered for a moment, so that a busy server does not become as many events. */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { FrameRow } from '../contract/frames.ts'
import type { Feed } from '../feed.ts'
import { reducedRow } from './ring.ts'
import type { Traffic } from './traffic.ts'

const gatherMs = 50
/** Rows of one event; lists have the others. */
const mostRows = 500

/** Publishes what passes, until the signal is aborted. */
export function publishFrames(traffic: Traffic, feed: Feed, clock: Clock, signal: AbortSignal): void {
  let rows: FrameRow[] = []
  let skipped = 0
  let timer: Cancel | undefined
  const flush = (): void => {
    timer = undefined
    feed.publish('frames', { rows, skipped }, { rows: rows.map(reducedRow), skipped })
    rows = []
    skipped = 0
  }
  const stops = [
    traffic.ring.follow(({ row }) => {
      if (rows.length < mostRows) rows.push(row)
      else skipped++
      timer ??= clock.setTimeout(flush, gatherMs, true)
    }),
    traffic.follow(connection => feed.publish('connection', connection)),
  ]
  signal.addEventListener('abort', () => {
    timer?.()
    for (const stop of stops) stop()
  })
}
