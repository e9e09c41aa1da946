/** The journal of a process on a store: what it claims, and that it is alive. One for all who write into it. */
import { type Entry, put, type Store } from '../../stores/store.ts'
import type { Audit } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { quotaExhausted, Shares } from '../occupancy.ts'
import { problem } from '../problem.ts'
import { Claims } from './claims.ts'
import { OutcomeRetryQueue, readOperation, writeOperation } from './operation.ts'
import { ProcessLeases } from './process-leases.ts'
import { readUnit } from './unit.ts'

interface JournalOptions {
  readonly store: Store
  readonly clock: Clock
  /** Records in all. Default 1,000,000. */
  readonly records?: number | undefined
  /** Characters of all records. Default 256 Mi, or half of a store that holds less than twice that. */
  readonly length?: number | undefined
  readonly leaseMs?: number
  /** Ids that nobody can guess. */
  readonly id?: () => string
  /** Where decisions are told that must be found again long after. */
  readonly audit?: Audit | undefined
}

/** The journal of one process: its claims, its limits, and what keeps it alive for others. */
export interface Journal {
  readonly store: Store
  /** Who runs what, by idempotency key. */
  readonly claims: Claims
  /** Shows that this process is alive. */
  readonly runners: ProcessLeases
  /** How much may be kept. */
  readonly capacity: JournalCapacity
  /** Endings that wait for the store. */
  readonly unsettled: OutcomeRetryQueue
  readonly audit: Audit | undefined
  /** Ends what keeps it alive; the store stays open. */
  close(): void
}

/** Opens the journal of this process on a store. */
export function createJournal({ store, clock, records, length, leaseMs, id = randomId, audit }: JournalOptions): Journal {
  const runners = new ProcessLeases({ store, clock, id: id(), ...(leaseMs === undefined ? {} : { leaseMs }) })
  const unsettled = new OutcomeRetryQueue({ store, clock })
  const capacity = new JournalCapacity({ store, clock, runners, records, length, runsHere: place => claims.runs(place) })
  const claims = new Claims({ store, clock, runners, capacity, unsettled, id })
  const close = (): void => {
    runners.close()
    unsettled.close()
  }
  return { store, runners, capacity, unsettled, audit, claims, close }
}

function randomId(): string {
  return crypto.randomUUID()
}

// Keeps what is remembered within limits, per account and in all. Counted by looking now and then, and in between by what this
// process adds. Nothing is forgotten before its time: what is new is refused, with the wait until something of the same account ends.

interface JournalCapacityOptions {
  readonly store: Store
  readonly clock: Clock
  readonly runners: ProcessLeases
  /** Records in all. Default 1,000,000. */
  readonly records?: number | undefined
  /** Characters of all records and their keys. Default 256 Mi, or half of a store that holds less than twice that. */
  readonly length?: number | undefined
  /** Whether this process is at what is recorded there, or still has to write how it ended. */
  readonly runsHere?: (place: string) => boolean
}

const OPERATIONS = 'done/'
/** Units before their steps: they say whose the steps are. */
const PREFIXES = [OPERATIONS, 'unit/', 'step/'] as const
const LOOK_EVERY_MS = 300_000
/** Looks take at most so small a part of the time. */
const REST_FACTOR = 20
/** For an account that is full: what others freed for it is seen after so long. */
const LOOK_AGAIN_MS = 60_000
/** Characters that are read at once, or a little more. */
const PAGE_LENGTH = 4 * 1024 * 1024
/** An outcome that takes no more than a few records. */
const SMALL = 4 * 1024
/** After so long nobody here is about to say that it runs. */
const STALE_MS = 60_000

/** What a look found of one account. */
interface AccountUsage {
  /** When the first of its records ends; undefined where none has an end yet. */
  soonest: number | undefined
}

/** How much the journal may hold, in all and for each account. */
export class JournalCapacity {
  readonly #options: JournalCapacityOptions
  #shares: Shares
  /** Accounts that a look has found full: until when it is not looked again for them. */
  readonly #full = new Map<string, { readonly until: number; readonly soonest: number | undefined }>()
  #lookAt = 0
  #looking: Promise<ReadonlyMap<string, AccountUsage>> | undefined

  constructor(options: JournalCapacityOptions) {
    this.#options = options
    const { capacity = Number.POSITIVE_INFINITY } = options.store
    this.#shares = new Shares({
      records: options.records ?? 1_000_000,
      length: options.length ?? Math.min(256 * 1024 * 1024, Math.floor(capacity / 2)),
    })
  }

  /** Undefined where the account may keep one more. Else resolves when it may after all, or refuses. */
  admit(account: string, length = 1): Promise<void> | undefined {
    if (!this.#shares.fits(account, { records: 1, length })) return this.#make(account, length)
    // The first look after a start may take a while, and nobody has to wait for it.
    if (this.#options.clock.now() >= this.#lookAt) this.#look().catch(() => {})
    return undefined
  }

  /**
   * Characters that may be kept of one more outcome of the account. The last part of a share is for records without large outcomes:
   * that something was done matters more than what came of it, and calls go on for longer.
   */
  outcome(account: string): number {
    const left = this.#shares.left(account).length
    const reserved = this.#shares.limit.length / 10
    return left > reserved + SMALL ? left - reserved : Math.min(left, SMALL)
  }

  taken(account: string, key: string, length: number): void {
    this.#shares.add(account, 1, weightOf(key, length))
  }

  /** A record has become longer, or is gone. */
  changed(account: string, key: string, grown: number, freed: boolean): void {
    this.#shares.add(account, freed ? -1 : 0, freed ? grown - weightOf(key, 0) : grown)
    // What ran has an end now.
    if (this.#full.get(account)?.soonest === undefined) this.#full.delete(account)
  }

  async #make(account: string, length: number): Promise<void> {
    const { clock } = this.#options
    let known = this.#full.get(account)
    if (known === undefined || known.until <= clock.now()) {
      // One that is under way may have passed by what matters.
      await this.#looking?.catch(() => {})
      const soonest = (await this.#look()).get(account)?.soonest
      known = { soonest, until: Math.min(soonest ?? Number.POSITIVE_INFINITY, clock.now() + LOOK_AGAIN_MS) }
      this.#full.set(account, known)
    }
    if (this.#shares.fits(account, { records: 1, length })) return
    const { records } = this.#shares.of(account)
    if (records === 0 || known.soonest === undefined)
      throw problem('SERVER_UNAVAILABLE', 'The journal is full of running calls. The call was not executed', {
        retryAfter: 5_000,
        suggestion: 'Wait until running calls have ended',
      })
    throw quotaExhausted(
      `the records of calls with idempotency keys and of transactions (${records} records)`,
      known.soonest - clock.now(),
      'Wait, or send a shorter idempotency_ttl_seconds with each call; the operator can raise idempotency.records and idempotency.length',
    )
  }

  #look(): Promise<ReadonlyMap<string, AccountUsage>> {
    const { clock } = this.#options
    const began = clock.now()
    // Not again at once, also if it fails.
    this.#lookAt = began + LOOK_EVERY_MS
    this.#looking ??= this.#countAll().finally(() => {
      this.#looking = undefined
      this.#lookAt = Math.max(this.#lookAt, clock.now() + REST_FACTOR * (clock.now() - began))
    })
    return this.#looking
  }

  /** Counts, and marks what a dead process left running. */
  async #countAll(): Promise<ReadonlyMap<string, AccountUsage>> {
    const before = new Map(this.#shares.entries())
    const counted = new Shares(this.#shares.limit)
    const seen = new Map<string, AccountUsage>()
    const accounts = new Map<string, string>()
    this.#full.clear()
    for (const prefix of PREFIXES)
      for await (const entry of this.#entries(prefix)) {
        const [, owner = '', name = ''] = entry.key.split('/', 3)
        const unit = `${owner}/${name}`
        const said = prefix === OPERATIONS ? await this.#operation(entry) : accountIn(prefix, entry)
        const account = said ?? accounts.get(unit) ?? accounts.get(owner) ?? owner
        // Callers who are not known have one owner and many accounts: of those each unit says whose it is.
        if (!accounts.has(owner)) accounts.set(owner, account)
        else if (prefix === 'unit/' && accounts.get(owner) !== account) accounts.set(unit, account)
        counted.add(account, 1, weightOf(entry.key, entry.value.length))
        const { soonest } = seen.get(account) ?? {}
        if (entry.expires !== undefined) seen.set(account, { soonest: Math.min(entry.expires, soonest ?? entry.expires) })
      }
    // What came meanwhile counts too, some of it perhaps twice, until the next look.
    for (const [account, now] of this.#shares.entries()) {
      const was = before.get(account) ?? { records: 0, length: 0 }
      counted.add(account, Math.max(0, now.records - was.records), Math.max(0, now.length - was.length))
    }
    this.#shares = counted
    return seen
  }

  /** Page by page, each of about the same length however long the records are. */
  async *#entries(prefix: string): AsyncGenerator<Entry, void, undefined> {
    let limit = 8
    for (let after: string | undefined; ; ) {
      const page = await this.#options.store.scan(prefix, { limit, ...(after === undefined ? {} : { after }) })
      yield* page
      after = page.at(-1)?.key
      if (after === undefined) return
      const mean = page.reduce((sum, { value }) => sum + value.length, 0) / page.length
      limit = Math.min(1_000, 4 * limit, Math.max(1, Math.floor(PAGE_LENGTH / (mean + 1))))
    }
  }

  /** Gives whose it is, where that is not its owner. */
  async #operation(entry: Entry): Promise<string | undefined> {
    const { store, runners, clock, runsHere = () => true } = this.#options
    const operation = readOperation(entry.value)
    const { status, runner, account, startedAt, ttlMs } = operation
    if (status !== 'running') return account
    const stale = startedAt + STALE_MS <= clock.now() && !runsHere(entry.key)
    if (runner === runners.id ? stale : !(await runners.isAlive(runner))) {
      const lost = writeOperation({ ...operation, status: 'indeterminate', endedAt: clock.now() })
      await store.commit([put(entry.key, lost, { ifVersion: entry.version, ttl: ttlMs })])
    }
    return account
  }
}

/** As the memory store weighs it, in characters. */
function weightOf(key: string, length: number): number {
  return key.length + length + 32
}

function accountIn(prefix: string, { value }: Entry): string | undefined {
  return prefix === 'unit/' ? readUnit(value).account : undefined
}
