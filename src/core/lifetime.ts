/** How long something lasts that a caller asked for: no longer than the server allows, nor than what let the caller in. */

export interface LifetimeBounds {
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
