/** Frames as bars of the time axis: a request lasts until its answer; everything else is a moment. */
import type { FrameRow } from '#contract'
import type { Bar } from '../../pictures/axis/lanes.ts'

/** The newest of them: more are not told apart in one picture. */
const mostBars = 5000

export function frameBars(rows: readonly FrameRow[]): readonly Bar[] {
  const bars: Bar[] = []
  for (let at = rows.length - 1; at >= 0 && bars.length < mostBars; at--) {
    const bar = barOf(rows[at] as FrameRow)
    if (bar !== undefined) bars.push(bar)
  }
  return bars.reverse()
}

function barOf({ n, at, server, kind, method, about, ms, status, of }: FrameRow): Bar | undefined {
  // An answer is the end of its request.
  if ((kind === 'result' || kind === 'error') && of !== undefined) return undefined
  const name = kind === 'request' && method === 'tools/call' && about !== undefined ? about : (method ?? kind)
  const bar = { id: String(n), lane: server, name, from: at }
  if (kind !== 'request') return { ...bar, to: at, tone: kind === 'invalid' || kind === 'error' ? 'bad' : 'quiet' }
  const bad = status === 'error' || status === 'tool-error'
  // A stream of news: nobody waits for its answer.
  const waits = method === 'subscriptions/listen'
  return {
    ...bar,
    ...(ms !== undefined && { to: at + ms }),
    tone: bad ? 'bad' : waits ? 'quiet' : 'plain',
    ...(waits && { waits }),
  }
}
