/** Durations as authors write them (`'30s'`, `'5m'`, or plain milliseconds), and lifetimes within their bounds. */
import { clip } from '../jsonrpc/limits.ts'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

export type Duration = number | `${number}${Unit}`

const units: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/**
 * Milliseconds. `name` says in the error which option was wrong.
 *
 * @example
 * toMilliseconds('30s') // 30000
 */
export function toMilliseconds(duration: Duration, name = 'duration'): number {
  if (typeof duration === 'number') {
    if (Number.isFinite(duration) && duration >= 0) return duration
  } else if (typeof duration === 'string') {
    const [, amount = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,6})?)([a-z]{1,2})$/.exec(duration) ?? []
    const factor = units.get(unit)
    if (factor !== undefined) return Number(amount) * factor
  }
  throw new TypeError(
    `${name}: ${clip(String(duration))} is no duration. Give milliseconds as a number ≥ 0, or text such as '250ms', '30s', '5m', '2h', '1d'`,
  )
}

/** For messages: in seconds where that is shorter. */
export function durationText(ms: number): string {
  return ms >= 1_000 ? `${Number((ms / 1_000).toFixed(3))} s` : `${Math.round(ms)} ms`
}

/** How long something lasts that a caller asked for: no longer than the server allows, nor than what let the caller in. */

interface LifetimeBounds {
  /** The longest that the server allows, in milliseconds. */
  readonly mostMs: number
  /** What it is where the caller asks for nothing, if that is less. */
  readonly defaultMs?: number | undefined
}

/** Milliseconds. What a caller asks for is never an error for being too long: it gets the longest, and is told so where there is a place for it. */
export function lifetimeMs(askedMs: number | undefined, { mostMs, defaultMs = mostMs }: LifetimeBounds): number {
  const asked = askedMs === undefined || Number.isNaN(askedMs) ? defaultMs : askedMs
  return Math.max(0, Math.min(asked, mostMs))
}

/** The same for whole seconds as they come over a wire. */
export function lifetimeOfSeconds(seconds: number | undefined, bounds: LifetimeBounds): number {
  return lifetimeMs(seconds === undefined ? undefined : seconds * 1_000, bounds)
}

/** When it ends, in milliseconds since the epoch: also not after any of the other ends, such as that of the caller's token. */
export function endOfLife(now: number, lastsMs: number, ...ends: readonly (number | undefined)[]): number {
  return Math.min(now + lastsMs, ...ends.filter(end => end !== undefined))
}
