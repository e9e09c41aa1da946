/** Times as people say them. */
import { type Duration, toMilliseconds } from '../../core/duration.ts'

/** A date, or how long ago. */
export function timeOf(text: string): number {
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) return Date.now() - toMilliseconds(text as Duration)
  const time = Date.parse(text)
  if (Number.isNaN(time))
    throw new TypeError(`"${text.slice(0, 40)}" is no time: write 2h, 1d, 2026-07-28 or 2026-07-28T12:00:00Z`)
  return time
}
