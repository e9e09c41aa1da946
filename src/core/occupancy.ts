/**
 * Places of which there are so many for all: sessions, tasks, streams, calls, sockets. Whoever signed in is counted as a user, whatever
 * programs act for it; all others by the network they come from. Those together may hold three quarters, and one network as much as is
 * still free of them: alone it gets half, and the next one always finds some. The networks of one site (IPv6) may hold three times as much
 * as is still free, so that whoever has many of them leaves something to others. The last quarter is for users. An address that tells
 * nothing, because it is this machine's own or a proxy's on it, has no share of its own: those who come by it have all three quarters.
 */
import { isAnonymous, siteOf, unknownNetwork } from './accounts.ts'
import { type Problem, problem } from './problem.ts'

/** What nobody is refused for: so few do not keep others out. */
const little = 16

/** Counts who holds the places of a bounded table, and refuses those who would hold more than their share. */
export class Occupancy {
  readonly limit: number
  readonly #accounts = new Tally<string>()
  readonly #sites = new Tally<string>()
  #held = 0
  #anonymous = 0

  constructor(limit: number) {
    this.limit = limit
  }

  /** All that are taken. */
  get held(): number {
    return this.#held
  }

  of(account: string): number {
    return this.#accounts.of(account)
  }

  /** Why an account cannot have one more: there is none, or too many are its own, or of others who did not sign in. */
  refusal(account: string): 'limit' | 'share' | undefined {
    if (this.#held >= this.limit) return 'limit'
    if (!isAnonymous(account)) return undefined
    // Of a handful there are no quarters.
    const reserved = this.limit > little ? Math.floor(this.limit / 4) : 0
    const free = this.limit - reserved - this.#anonymous
    if (free <= 0) return 'share'
    if (account === unknownNetwork) return undefined
    const site = siteOf(account)
    const crowded = exceeds(this.#accounts.of(account), free) || (site !== undefined && exceeds(this.#sites.of(site), 3 * free))
    return crowded ? 'share' : undefined
  }

  /** How much counts where one gives way to another: what its whole site holds, so that many networks of one site gain nothing. */
  weight(account: string): number {
    const site = isAnonymous(account) ? siteOf(account) : undefined
    return site === undefined ? this.of(account) : this.#sites.of(site)
  }

  enter(account: string, places = 1): void {
    this.#held += places
    this.#accounts.add(account, places)
    if (!isAnonymous(account)) return
    this.#anonymous += places
    const site = siteOf(account)
    if (site !== undefined) this.#sites.add(site, places)
  }

  leave(account: string): void {
    this.enter(account, -1)
  }

  /**
   * Whether something of one account gives way to something new of another: who did not sign in to who did, and among equals whoever
   * holds more.
   */
  yields(from: string, to: string): boolean {
    const [anonymous, other] = [isAnonymous(from), isAnonymous(to)]
    if (anonymous !== other) return anonymous
    return this.weight(from) > this.weight(to) + 1
  }
}

function exceeds(held: number, most: number): boolean {
  return held >= little && held >= most
}

/** For the sentence of a refusal by share. */
export function shareText(what: string): string {
  return `Unauthenticated callers from your network already use their share of the ${what}`
}

/** Counts by key. A key that counts nothing is forgotten, so that the table holds only who is there. */
export class Tally<K> {
  readonly #counts = new Map<K, number>()

  of(key: K): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: K, by: number): void {
    const count = this.of(key) + by
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  /** How many keys count something. */
  get size(): number {
    return this.#counts.size
  }
}

// Shares of a bounded table. An account (a user, the owner of the process, or a network from which nobody signed in) may hold as much
// as is still free of three quarters of the table: one alone gets three eighths of it. The last quarter is for those who hold little,
// so that the next one still finds room when several have taken all they could. Nobody takes away what another holds.

/** Of a table, or of what one account holds in it. `length` is whatever the table counts: characters, or bytes. */
interface Amount {
  readonly records: number
  readonly length: number
}

/** What is little: this part of a table. */
const littlePart = 1 / 256

/** What of `limit` an account may still take that holds `mine` of the `held` of all accounts. */
export function leftOf(limit: number, held: number, mine: number): number {
  const shared = Math.ceil(limit * 0.75) - held - mine
  const reserved = Math.min(Math.ceil(limit * littlePart) - mine, limit - held)
  return Math.max(0, shared, reserved)
}

/** Counts what accounts hold of a table that is bounded in records and in length. */
export class Shares {
  readonly limit: Amount
  #accounts = new Map<string, Amount>()
  #records = 0
  #length = 0

  constructor(limit: Amount) {
    this.limit = limit
  }

  /** What all accounts hold. */
  get held(): Amount {
    return { records: this.#records, length: this.#length }
  }

  of(account: string): Amount {
    return this.#accounts.get(account) ?? nothing
  }

  /** What an account may still take. */
  left(account: string): Amount {
    const mine = this.of(account)
    return {
      records: leftOf(this.limit.records, this.#records, mine.records),
      length: leftOf(this.limit.length, this.#length, mine.length),
    }
  }

  fits(account: string, { records, length }: Amount): boolean {
    const left = this.left(account)
    return records <= left.records && length <= left.length
  }

  /** Counts; by less than nothing where something is gone. */
  add(account: string, records: number, length: number): void {
    const mine = this.of(account)
    // Never below nothing: what another process freed may be subtracted here although it was never added.
    const next = { records: Math.max(0, mine.records + records), length: Math.max(0, mine.length + length) }
    this.#records += next.records - mine.records
    this.#length += next.length - mine.length
    if (next.records === 0 && next.length === 0) this.#accounts.delete(account)
    else this.#accounts.set(account, next)
  }

  entries(): readonly (readonly [string, Amount])[] {
    return [...this.#accounts]
  }
}

const nothing: Amount = { records: 0, length: 0 }

/** The refusal of something new whose account has no share left. Nothing that is kept gives way to it. */
export function quotaExhausted(what: string, waitMs: number | undefined, suggestion: string): Problem {
  return problem('QUOTA_EXHAUSTED', `Your share of ${what} is used up. Nothing was executed`, {
    // Without a known time: soon enough for whoever waits, seldom enough for whoever is asked.
    retryAfter: Math.max(1_000, waitMs ?? 5_000),
    suggestion,
  })
}
