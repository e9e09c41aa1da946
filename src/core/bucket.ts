/** Token buckets: so many at once, so many a second, per key. A refusal says how long to wait. */
import { type Clock, realClock } from './clock.ts'

interface BucketOptions {
  /** Tokens that come back each second. */
  readonly perSecond: number
  /** Tokens a full bucket holds. Default: one second's worth, at least 1. */
  readonly burst?: number
  readonly clock?: Clock
  /** The most string keys remembered; the longest unused are forgotten first (and start full again). Default 10,000. */
  readonly maxKeys?: number
}

/** Token buckets of one rate, one for each key. */
export interface Buckets {
  /** Tokens that come back each second. */
  readonly perSecond: number
  /** Tokens a full bucket holds. */
  readonly burst: number
  /**
   * Takes `n` tokens and returns 0, or takes none and returns the milliseconds after which they will be there
   * (`Infinity` when `n` is more than a bucket ever holds). An object as key lives as long as the object.
   */
  take(key: object | string, n?: number): number
  /** What is there now for a key, and after how many milliseconds all will be. Takes nothing. */
  left(key: object | string): { readonly tokens: number; readonly fullInMs: number }
}

/**
 * @example
 * const calls = createBuckets({ perSecond: 10, burst: 20 })
 * const wait = calls.take(principal.id)
 * if (wait > 0) throw problem('RATE_LIMIT_EXCEEDED', 'Too many calls', { retryAfter: wait })
 */
export function createBuckets(options: BucketOptions): Buckets {
  const { perSecond, burst = Math.max(1, perSecond) } = options
  if (!(perSecond > 0 && Number.isFinite(perSecond)))
    throw new RangeError(`perSecond is ${perSecond}: give a finite number above 0`)
  if (!(burst >= 1 && Number.isFinite(burst))) throw new RangeError(`burst is ${burst}: give a finite number of at least 1`)
  return new TokenBuckets(perSecond, burst, options.clock ?? realClock, options.maxKeys ?? 10_000)
}

class Bucket {
  tokens: number
  at: number
  constructor(tokens: number, at: number) {
    this.tokens = tokens
    this.at = at
  }
}

class TokenBuckets implements Buckets {
  readonly perSecond: number
  readonly #perMs: number
  readonly burst: number
  readonly #clock: Clock
  readonly #half: number
  readonly #objects = new WeakMap<object, Bucket>()
  // Two generations instead of a strict order of use: a hit in the young one, the usual case, moves nothing.
  #young = new Map<string, Bucket>()
  #old = new Map<string, Bucket>()

  constructor(perSecond: number, burst: number, clock: Clock, maxKeys: number) {
    this.perSecond = perSecond
    this.#perMs = perSecond / 1000
    this.burst = burst
    this.#clock = clock
    this.#half = Math.max(1, Math.floor(maxKeys / 2))
  }

  take(key: object | string, n = 1): number {
    const now = this.#clock.now()
    const bucket = (typeof key === 'string' ? this.#young.get(key) : this.#objects.get(key)) ?? this.#open(key, now)
    // A clock that was set back gives nothing, and takes nothing away.
    const elapsed = now - bucket.at
    if (elapsed > 0) bucket.tokens = Math.min(this.burst, bucket.tokens + elapsed * this.#perMs)
    bucket.at = now
    // The wait named below must suffice, whatever the fractions round to.
    if (n <= bucket.tokens + 1e-9) {
      bucket.tokens -= n
      return 0
    }
    if (n > this.burst) return Number.POSITIVE_INFINITY
    return Math.ceil((n - bucket.tokens) / this.#perMs)
  }

  left(key: object | string): { readonly tokens: number; readonly fullInMs: number } {
    const bucket = typeof key === 'string' ? (this.#young.get(key) ?? this.#old.get(key)) : this.#objects.get(key)
    if (bucket === undefined) return { tokens: this.burst, fullInMs: 0 }
    const elapsed = Math.max(0, this.#clock.now() - bucket.at)
    const tokens = Math.min(this.burst, bucket.tokens + elapsed * this.#perMs)
    return { tokens, fullInMs: Math.ceil((this.burst - tokens) / this.#perMs) }
  }

  #open(key: object | string, now: number): Bucket {
    if (typeof key !== 'string') {
      const bucket = new Bucket(this.burst, now)
      this.#objects.set(key, bucket)
      return bucket
    }
    const bucket = this.#old.get(key) ?? new Bucket(this.burst, now)
    if (this.#young.size >= this.#half) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, bucket)
    return bucket
  }
}
