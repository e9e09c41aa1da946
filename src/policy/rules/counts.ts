/** What rules count: how often something came lately, and how much is under way. Of this process, and gone with it. */
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import type { Clock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { toMilliseconds } from '../../core/duration.ts'
import { Tally } from '../../core/occupancy.ts'
import { isAbout } from './conditions.ts'
import type { ReadRule } from './read.ts'
import type { Asked, Counted, RuleRate } from './rule.ts'

/** What rules count: of this process alone, or of all that share a store. */
export interface RateCounts {
  /** Milliseconds until the rate allows one more; 0 where it does now. */
  wait(rule: ReadRule, asked: Asked): number
  /** It was let in. */
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
  wait({ name, rule }: ReadRule, asked: Asked): number {
    const rate = rule.when?.above
    if (rate === undefined) return 0
    const buckets = this.#of(name, rate)
    const { tokens } = buckets.left(countedAs(rate.by, asked))
    return tokens + 1e-9 >= 1 ? 0 : Math.ceil((1 - tokens) / (buckets.perSecond / 1000))
  }

  running(rule: ReadRule): number {
    return this.#running.of(rule.name)
  }

  /** It was let in. */
  took(rules: readonly ReadRule[], asked: Asked): void {
    for (const { name, rule, conditions } of rules) {
      const rate = rule.when?.above
      if (rate !== undefined && isAbout(conditions, asked)) this.#of(name, rate).take(countedAs(rate.by, asked))
    }
  }

  /** It begins; what is returned ends it. */
  enter(rules: readonly ReadRule[], asked: Asked): () => void {
    const about = rules.filter(({ rule, conditions }) => rule.when?.running !== undefined && isAbout(conditions, asked))
    for (const { name } of about) this.#running.add(name, 1)
    let open = true
    return () => {
      if (open) for (const { name } of about) this.#running.add(name, -1)
      open = false
    }
  }

  /** Other rules count from now on. */
  keep(rules: readonly ReadRule[]): void {
    const wanted = new Set(
      rules.flatMap(({ name, rule }) => (rule.when?.above === undefined ? [] : [keyOf(name, rule.when.above)])),
    )
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
export function countedAs(by: Counted = 'client', { server, client, featureSet = '', origin }: Asked): string {
  if (by === 'server' || (by === 'client' && client === undefined)) return server
  if (by === 'client') return `${server}\n${client}`
  if (by === 'featureSet' || origin === undefined) return `${server}\n${featureSet}`
  return `${server}\n${canonicalJson(origin)}`
}
