/** What rules count: how often something came lately, and how much is under way. Of this process, and gone with it. */
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import { type Cancel, type Clock, toMilliseconds } from '../../core/clock.ts'
import { canonicalJson, digestText } from '../../core/digest.ts'
import { Tally } from '../../core/occupancy.ts'
import { problem } from '../../core/problem.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { put, type Store } from '../../stores/store.ts'
import { isAbout } from './conditions.ts'
import type { ReadRule } from './read.ts'
import type { Asked, RuleRate } from './rule.ts'

/** What rules count: of this process alone, or of all that share a store. */
export interface RateCounts {
  /** Milliseconds until the rate allows one more; 0 where it does now. */
  wait(rule: ReadRule, asked: Asked): number
  /** It was let in: counts it for these rules, which are about it. */
  took(rules: readonly ReadRule[], asked: Asked): void
  /** To be waited for before a call is judged, until it is undefined. */
  ready?(rules: readonly ReadRule[], asked: Asked): Promise<void> | undefined
  close?(): Promise<void>
}

/** Of this process. */
export class Counts implements RateCounts {
  readonly #clock: Clock
  readonly #running = new Tally<string>()
  /** By what they count, so that a change of other rules leaves them alone. */
  #buckets = new Map<string, Buckets>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Milliseconds until the rate allows one more; 0 where it does now, or where the rule has none. */
  wait({ name, above: rate }: ReadRule, asked: Asked): number {
    if (rate === undefined) return 0
    const buckets = this.#of(name, rate)
    const { tokens } = buckets.left(countedAs(rate.by, asked))
    return tokens + 1e-9 >= 1 ? 0 : Math.ceil((1 - tokens) / (buckets.perSecond / 1000))
  }

  running(rule: ReadRule): number {
    return this.#running.of(rule.name)
  }

  took(rules: readonly ReadRule[], asked: Asked): void {
    for (const { name, above } of rules) if (above !== undefined) this.#of(name, above).take(countedAs(above.by, asked))
  }

  /** It begins; what is returned ends it. */
  enter(rules: readonly ReadRule[], asked: Asked): () => void {
    const about = rules.filter(({ running, conditions }) => running !== undefined && isAbout(conditions, asked))
    for (const { name } of about) this.#running.add(name, 1)
    let open = true
    return () => {
      if (open) for (const { name } of about) this.#running.add(name, -1)
      open = false
    }
  }

  /** Other rules count from now on. */
  keep(rules: readonly ReadRule[]): void {
    const wanted = new Set(rules.flatMap(({ name, above }) => (above === undefined ? [] : [keyOf(name, above)])))
    this.#buckets = new Map([...this.#buckets].filter(([key]) => wanted.has(key)))
  }

  #of(name: string, rate: RuleRate): Buckets {
    const key = keyOf(name, rate)
    const found = this.#buckets.get(key)
    if (found !== undefined) return found
    const perSecond = (rate.count * 1000) / toMilliseconds(rate.per)
    const made = createBuckets({ perSecond, burst: rate.count, clock: this.#clock })
    this.#buckets.set(key, made)
    return made
  }
}

function keyOf(name: string, rate: RuleRate): string {
  return `${name} ${JSON.stringify(rate)}`
}

/** What counts as one and the same. Where it has no client, it is its server; where it has no origin, its feature set stands for that. */
export function countedAs(by: RuleRate['by'] = 'client', { server, client, featureSet = '', origin }: Asked): string {
  if (by === 'server' || (by === 'client' && client === undefined)) return server
  if (by === 'client') return `${server}\n${client}`
  if (by === 'featureSet' || origin === undefined) return `${server}\n${featureSet}`
  return `${server}\n${canonicalJson(origin)}`
}

// Rates that several gateways on one store count together. The bucket of a rate lies on the store; each gateway takes a part of what
// is in it before it lets calls in, so that all together never let in more than the rate says. What one took and does not use goes
// back after a moment, until when the others can let in a little less.

/** One part in so many of what is there is taken at once, and never more than this. */
const share = 8
const mostTaken = 1_000
/** What is not used for so long goes back; and an empty bucket is looked into so often. */
const idleMs = 1_000
const mostTries = 100

interface Bucket {
  readonly tokens: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** What this process has of one bucket. */
interface Part {
  readonly key: Promise<string>
  readonly most: number
  readonly perMs: number
  tokens: number
  /** There was nothing in it: when there will be, and when to look again. */
  nextAt: number
  lookAt: number
  usedAt: number
  taking: Promise<void> | undefined
}

/** Counts of all processes that share a store. */
export class SharedCounts implements RateCounts {
  readonly #store: Store
  readonly #clock: Clock
  readonly #failed: (error: unknown) => void
  readonly #parts = new Map<string, Part>()
  #timer: Cancel | undefined = undefined

  constructor(store: Store, clock: Clock, failed: (error: unknown) => void) {
    this.#store = store
    this.#clock = clock
    this.#failed = failed
  }

  wait(rule: ReadRule, asked: Asked): number {
    const part = this.#of(rule, asked)
    if (part === undefined || part.tokens >= 1) return 0
    const waitMs = part.nextAt - this.#clock.now()
    // Long ago: nobody knows what is there now.
    return waitMs < -idleMs ? 0 : Math.max(1, Math.ceil(waitMs))
  }

  ready(rules: readonly ReadRule[], asked: Asked): Promise<void> | undefined {
    const now = this.#clock.now()
    for (const rule of rules) {
      const part = this.#of(rule, asked)
      if (part !== undefined && part.tokens < 1 && now >= part.lookAt) {
        part.taking ??= this.#take(part).finally(() => {
          part.taking = undefined
        })
        return part.taking
      }
    }
    return undefined
  }

  took(rules: readonly ReadRule[], asked: Asked): void {
    for (const rule of rules) {
      const part = this.#of(rule, asked)
      if (part === undefined || part.tokens < 1) continue
      part.tokens--
      part.usedAt = this.#clock.now()
    }
  }

  /** Gives back what was not used. */
  async close(): Promise<void> {
    this.#timer?.()
    await Promise.all([...this.#parts.values()].map(part => this.#give(part).catch(this.#failed)))
  }

  #of({ name, above: rate }: ReadRule, asked: Asked): Part | undefined {
    if (rate === undefined) return undefined
    const id = `${name}\n${JSON.stringify(rate)}\n${countedAs(rate.by, asked)}`
    const known = this.#parts.get(id)
    if (known !== undefined) return known
    const key = digestText(id).then(hash => `gateway/rate/${hash}`)
    const perMs = rate.count / toMilliseconds(rate.per)
    const none = { tokens: 0, nextAt: Number.NEGATIVE_INFINITY, lookAt: 0, usedAt: 0, taking: undefined }
    const made: Part = { key, most: rate.count, perMs, ...none }
    this.#parts.set(id, made)
    return made
  }

  #take(part: Part): Promise<void> {
    return this.#change(part, bucket => {
      const now = this.#clock.now()
      if (bucket.tokens + 1e-9 < 1) {
        part.nextAt = now + (1 - bucket.tokens) / part.perMs
        part.lookAt = Math.min(part.nextAt, now + idleMs)
        return undefined
      }
      const taken = Math.max(1, Math.min(Math.floor(bucket.tokens / share), mostTaken))
      const got = (): void => {
        part.tokens += taken
        part.usedAt = now
        this.#plan()
      }
      return [{ tokens: Math.max(0, bucket.tokens - taken), at: bucket.at }, got]
    })
  }

  async #give(part: Part): Promise<void> {
    const given = Math.floor(part.tokens)
    if (given < 1) return
    // Nobody uses it from here on, whatever becomes of the write.
    part.tokens -= given
    await this.#change(part, ({ tokens, at }) => [{ tokens: Math.min(part.most, tokens + given), at }, () => {}])
  }

  /** `next`: what becomes of the bucket as it is now, and what to do once that is so; undefined: it stays. */
  async #change(part: Part, next: (bucket: Bucket) => readonly [Bucket, () => void] | undefined): Promise<void> {
    const key = await part.key
    for (let tries = 0; tries < mostTries; tries++) {
      const entry = await this.#store.get(key)
      const made = next(this.#read(part, entry?.value))
      if (made === undefined) return
      const [bucket, done] = made
      const condition = entry === undefined ? { ifAbsent: true } : { ifVersion: entry.version }
      const ttl = Math.ceil(2 * (part.most / part.perMs)) + idleMs
      if ((await this.#store.commit([put(key, JSON.stringify(bucket), { ...condition, ttl })])).ok) return done()
    }
    throw problem('SERVER_UNAVAILABLE', 'The call was not made: too many gateways update its rate limit at once', {
      retryAfter: 100,
    })
  }

  /** As full as it is by now. What cannot be read is full, as one that nobody has used. */
  #read({ most, perMs }: Part, text: string | undefined): Bucket {
    const now = this.#clock.now()
    const said: unknown = text === undefined ? undefined : JSON.parse(text)
    const { tokens, at } = isRecord(said) ? said : {}
    if (typeof tokens !== 'number' || typeof at !== 'number') return { tokens: most, at: now }
    // Clocks of processes differ: time that another one has counted is not counted again.
    return { tokens: Math.min(most, tokens + Math.max(0, now - at) * perMs), at: Math.max(at, now) }
  }

  #plan(): void {
    this.#timer ??= this.#clock.setTimeout(() => this.#giveIdle(), idleMs, true)
  }

  #giveIdle(): void {
    this.#timer = undefined
    const now = this.#clock.now()
    for (const part of this.#parts.values()) {
      if (part.tokens < 1) continue
      if (now - part.usedAt < idleMs) this.#plan()
      else void this.#give(part).catch(this.#failed)
    }
  }
}
