/** Points in time and durations, as short as they can be read without doubt. */
import { type ReactNode, useEffect, useState } from 'react'

const day = new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short' })
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** `10:04:07`, with the date where it was on another day. */
export function timeText(at: number): string {
  const date = new Date(at)
  const time = clock.format(date)
  return date.toDateString() === new Date().toDateString() ? time : `${day.format(date)} ${time}`
}

/** `0.8 ms`, `41 ms`, `1.2 s`, `5 min`, `2 h`, `6 d`. */
export function durationText(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return ms < 86_400_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`
}

/** A point in time; the whole date is in its title. */
export function Time({ at }: { readonly at: number }): ReactNode {
  const whole = new Date(at).toISOString()
  return (
    <time dateTime={whole} title={whole} className="tabular-nums">
      {timeText(at)}
    </time>
  )
}

/** The clock, for what counts down or up; the component is drawn again every `everyMs`. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}
