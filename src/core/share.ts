/**
 * Shares of a bounded table. An account (a user, the owner of the process, or a network from which nobody signed in) may hold as much
 * as is still free of three quarters of the table: one alone gets three eighths of it. The last quarter is for those who hold little,
 * so that the next one still finds room when several have taken all they could. Nobody takes away what another holds.
 */
import { type Problem, problem } from './problem.ts'

/** Of a table, or of what one account holds in it. `length` is whatever the table counts: characters, or bytes. */
interface Amount {
  readonly records: number
  readonly length: number
}

/** What is little: this part of a table. */
const little = 1 / 256

/** What of `limit` an account may still take that holds `mine` of the `held` of all accounts. */
export function leftOf(limit: number, held: number, mine: number): number {
  const shared = Math.ceil(limit * 0.75) - held - mine
  const reserved = Math.min(Math.ceil(limit * little) - mine, limit - held)
  return Math.max(0, shared, reserved)
}

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
