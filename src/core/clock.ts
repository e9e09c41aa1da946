/** Time and chance as something given, so that tests move the clock by hand, repeat a seed, and nothing sleeps. */
import { clip } from '../jsonrpc/limits.ts'

/** Cancels a timer. */
export interface Cancel {
  (): void
  /** Sets whether the timer keeps the process alive. Absent on clocks that never do. */
  hold?(alive: boolean): void
}

/** The source of time and timers. */
export interface Clock {
  /** The current time, in milliseconds since the epoch. */
  now(): number
  /** Calls `fn` once after `ms`. A background timer does not keep the process alive. */
  setTimeout(fn: () => void, ms: number, background?: boolean): Cancel
}

/** The clock of this machine. */
export const realClock: Clock = {
  now: Date.now,
  setTimeout(fn, ms, background = false) {
    const timer: unknown = setTimeout(fn, ms)
    const cancel: Cancel = () => clearTimeout(timer as number)
    if (!isHeld(timer)) return cancel
    if (background) timer.unref()
    cancel.hold = alive => {
      if (alive) timer.ref()
      else timer.unref()
    }
    return cancel
  },
}

/** Timers are plain numbers on some runtimes, and those never keep anything alive. */
function isHeld(timer: unknown): timer is { ref(): void; unref(): void } {
  return typeof timer === 'object' && timer !== null && 'unref' in timer && 'ref' in timer
}

/** Numbers from 0 up to 1, the same for the same seed: mulberry32, which is small, quick and the same everywhere. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Waits so long. Ends early, with the reason of the signal, when that aborts. */
export function pauseFor(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

// Durations as authors write them (`'30s'`, `'5m'`, or plain milliseconds), and lifetimes within their bounds.

/** The unit of a duration: milliseconds, seconds, minutes, hours or days. */
type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

/**
 * A duration: milliseconds as a number, or a number with a unit: `250ms`, `30s`, `5m`, `2h`, `1d`.
 * @title duration
 * @minimum 0
 * @pattern ^\d{1,15}(\.\d{1,6})?(ms|s|m|h|d)$
 */
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
    `${name}: ${clip(String(duration))} is not a duration. Give milliseconds as a number ≥ 0, or text such as '250ms', '30s', '5m', '2h', '1d'`,
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
