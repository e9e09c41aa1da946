/**
 * Keys under which operations are done once: whoever comes with a known key gets what came of it, joins who is at it, or is
 * told that nobody knows. Written before the effect and after it, so that a crash in between is seen.
 */
import { type Entry, type Op, type PutOptions, put, type Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import { Tally } from '../occupancy.ts'
import { problem } from '../problem.ts'
import type { JournalCapacity } from './journal.ts'
import { isSettled, type Operation, type OutcomeRetryQueue, readOperation, Ticket, writeOperation } from './operation.ts'
import type { ProcessLeases } from './process-leases.ts'

/** What a caller wants to do once. */
export interface ClaimRequest {
  readonly target: string
  readonly fingerprint: string
  readonly ttlMs: number
  /** The id of the operation, if it is begun now: by it all that is written about it is found. Default: a new one. */
  readonly id?: string
  /** Whose share it counts against. Default: its owner's. */
  readonly account?: string | undefined
  /** It takes something back: that is never refused for want of room. */
  readonly always?: boolean | undefined
  /** Written with the claim, in the same commit. */
  readonly also?: readonly Op[]
}

/** What became of a claim: it is the caller's to run, or somebody has run it, or runs it. */
export type Claim =
  /** Nobody has done it: do it now, and say how it ended. */
  | { readonly kind: 'fresh'; readonly ticket: Ticket }
  | { readonly kind: 'replay'; readonly operation: Operation }
  /** The key stands for something else, or for what was undone. */
  | { readonly kind: 'conflict'; readonly operation: Operation }
  | { readonly kind: 'running'; readonly operation: Operation; readonly settled: (ms: number) => Promise<boolean> }
  /** It was begun and its end is unknown. `retake` begins it anew; undefined where another was faster. */
  | { readonly kind: 'indeterminate'; readonly operation: Operation; readonly retake: () => Promise<Ticket | undefined> }

interface ClaimsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly runners: ProcessLeases
  readonly capacity: JournalCapacity
  readonly unsettled: OutcomeRetryQueue
  /** Ids of operations. */
  readonly id: () => string
}

const TRIES = 8
const LOOK_EVERY_MS = 250

/** Claims of idempotency keys: of all callers with one key exactly one runs the operation. */
export class Claims {
  readonly #options: ClaimsOptions
  /** What runs here, by its place in the store: those who join need not ask the store. */
  readonly #running = new Map<string, Promise<void>>()
  /** What is being claimed here right now: the store may know of it before we do. */
  readonly #taking = new Tally<string>()

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /** `owner` is a key of the principal, `key` what the caller calls the operation. */
  async claim(owner: string, key: string, wanted: ClaimRequest): Promise<Claim> {
    const place = placeOf(owner, key)
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const entry = this.#running.has(place) ? await this.#options.store.get(place) : undefined
      const claim = entry === undefined ? await this.#take(place, owner, wanted) : await this.#judge(place, owner, entry, wanted)
      if (claim !== undefined) return claim
    }
    throw problem('IDEMPOTENCY_IN_PROGRESS', 'Other calls keep claiming this idempotency key', { retryAfter: 1000 })
  }

  /** Whether what is recorded there is done, or claimed, here at this moment. */
  runs(place: string): boolean {
    return this.#running.has(place) || this.#taking.of(place) > 0 || this.#options.unsettled.has(place)
  }

  /** What a key stands for, if anything. */
  async find(owner: string, key: string): Promise<Operation | undefined> {
    await this.#options.unsettled.flush(placeOf(owner, key))
    const entry = await this.#options.store.get(placeOf(owner, key))
    return entry === undefined ? undefined : readOperation(entry.value)
  }

  /** The step that marks an operation as undone, for the commit that records its undoing. Undefined where none is known. */
  async undo(owner: string, key: string): Promise<Op | undefined> {
    const entry = await this.#options.store.get(placeOf(owner, key))
    if (entry === undefined) return undefined
    const operation = readOperation(entry.value)
    const undone = writeOperation({ ...operation, status: 'undone', endedAt: this.#options.clock.now() })
    return put(entry.key, undone, { ifVersion: entry.version, ttl: operation.ttlMs })
  }

  /** Puts the first record. Undefined: someone else was there, look again. */
  async #take(place: string, owner: string, wanted: ClaimRequest): Promise<Claim | undefined> {
    const { store, runners, capacity } = this.#options
    const refused = wanted.always === true ? undefined : await this.#unadmitted(capacity, wanted.account ?? owner)
    // Whoever repeats a call adds nothing, and gets what came of it however full it is.
    if (refused !== undefined) return this.#known(place, owner, wanted, refused)
    const held = runners.hold()
    if (held !== undefined) await held.catch(error => this.#letGo(error))
    const ticket = await this.#put(place, this.#begin(owner, wanted), { ifAbsent: true }, wanted)
    if (ticket !== undefined) return { kind: 'fresh', ticket }
    const entry = await store.get(place)
    return entry === undefined ? undefined : this.#judge(place, owner, entry, wanted)
  }

  /** Why the account may not keep one more; undefined where it may. */
  async #unadmitted(capacity: JournalCapacity, account: string): Promise<unknown> {
    try {
      // Mostly there is nothing to wait for.
      const admitted = capacity.admit(account)
      if (admitted !== undefined) await admitted
      return undefined
    } catch (refused) {
      return refused
    }
  }

  async #known(place: string, owner: string, wanted: ClaimRequest, refused: unknown): Promise<Claim | undefined> {
    const entry = await this.#options.store.get(place)
    if (entry === undefined) throw refused
    return this.#judge(place, owner, entry, wanted)
  }

  #letGo(error: unknown): never {
    this.#options.runners.release()
    throw error
  }

  async #judge(place: string, owner: string, entry: Entry, wanted: ClaimRequest): Promise<Claim | undefined> {
    const { unsettled } = this.#options
    // How it ended is known here, and could not be written then.
    if (unsettled.has(place) && (await unsettled.flush(place))) return undefined
    const operation = readOperation(entry.value)
    if (operation.fingerprint !== wanted.fingerprint || operation.status === 'undone') return { kind: 'conflict', operation }
    if (isSettled(operation)) return { kind: 'replay', operation }
    if (operation.status === 'waiting') {
      const ticket = await this.#retake(place, owner, entry, wanted, operation)
      return ticket === undefined ? undefined : { kind: 'fresh', ticket }
    }
    if (operation.status === 'indeterminate')
      return { kind: 'indeterminate', operation, retake: () => this.#retake(place, owner, entry, wanted) }
    const here = this.#running.has(place) || this.#taking.of(place) > 0
    if (here || (operation.runner !== this.#options.runners.id && (await this.#options.runners.isAlive(operation.runner))))
      return { kind: 'running', operation, settled: ms => this.#settled(place, operation, ms) }
    // Its process is gone, or this one lost it: how it ended nobody knows.
    const lost = writeOperation({ ...operation, status: 'indeterminate', endedAt: this.#options.clock.now() })
    await this.#options.store.commit([put(place, lost, { ifVersion: entry.version, ttl: operation.ttlMs })])
    return undefined
  }

  /** `same`: the operation that goes on; else another one begins in its place. */
  async #retake(place: string, owner: string, entry: Entry, wanted: ClaimRequest, same?: Operation): Promise<Ticket | undefined> {
    const held = this.#options.runners.hold()
    if (held !== undefined) await held.catch(error => this.#letGo(error))
    const begun = this.#begin(owner, wanted)
    const operation = same === undefined ? begun : { ...begun, id: same.id, startedAt: same.startedAt }
    return this.#put(place, operation, { ifVersion: entry.version }, wanted, entry)
  }

  /** Writes that it runs here. Undefined: the place is not as it was thought to be. */
  async #put(
    place: string,
    operation: Operation,
    when: PutOptions,
    { also = [] }: ClaimRequest,
    before?: Entry,
  ): Promise<Ticket | undefined> {
    const { store, runners, capacity } = this.#options
    const text = writeOperation(operation)
    this.#taking.add(place, 1)
    try {
      // No time to live while it runs: a key that became free then could be done twice at once.
      const outcome = await store.commit([put(place, text, when), ...also]).catch(error => {
        // It may have been written all the same. Nothing was done under it, so it goes when the store is back.
        this.#options.unsettled.unbegun(place, operation.id, before)
        return this.#letGo(error)
      })
      if (outcome.ok) {
        const account = accountOf(place, operation)
        if (before === undefined) capacity.taken(account, place, text.length)
        else capacity.changed(account, place, text.length - before.value.length, false)
        return this.#ticket(place, operation, outcome.results[0]?.version ?? 0, text.length)
      }
      runners.release()
      if (outcome.index > 0)
        throw problem('TRANSACTION_CONFLICT', 'The transaction of the call was changed by another request', {
          suggestion: 'Read its status before you continue',
        })
      return undefined
    } finally {
      this.#taking.add(place, -1)
    }
  }

  #begin(owner: string, { target, fingerprint, ttlMs, id, account = owner }: ClaimRequest): Operation {
    const { clock, runners } = this.#options
    return {
      id: id ?? this.#options.id(),
      target,
      fingerprint,
      status: 'running',
      runner: runners.id,
      ...(account === owner ? {} : { account }),
      startedAt: clock.now(),
      ttlMs,
    }
  }

  #ticket(place: string, operation: Operation, version: number, length: number): Ticket {
    const { store, clock, runners, capacity, unsettled } = this.#options
    const account = accountOf(place, operation)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#running.set(place, promise)
    const left = (): number => capacity.outcome(account)
    return new Ticket({ store, clock, place, operation, version, length, unsettled, left }, (grown, freed) => {
      this.#running.delete(place)
      runners.release()
      capacity.changed(account, place, grown, freed)
      resolve()
    })
  }

  /** True once the operation is no longer running, here or elsewhere; false when the wait is over first. */
  async #settled(place: string, operation: Operation, ms: number): Promise<boolean> {
    const { store, clock, runners } = this.#options
    const ending = new AbortController()
    const cancel = clock.setTimeout(() => ending.abort(), ms)
    const changes = store.watch([place], ending.signal)[Symbol.asyncIterator]()
    // One reader at a time: a turn that another cause ended leaves its reader to the next.
    let change: Promise<unknown> | undefined
    try {
      while (!ending.signal.aborted) {
        const here = this.#running.get(place)
        const entry = await store.get(place)
        const now = entry === undefined ? undefined : readOperation(entry.value)
        if (now === undefined || now.id !== operation.id || now.status !== 'running') return true
        if (here === undefined && (now.runner === runners.id || !(await runners.isAlive(now.runner)))) return true
        change ??= changes.next().finally(() => {
          change = undefined
        })
        await firstOf(here === undefined ? [change] : [change, here], clock, ending.signal)
      }
      return false
    } finally {
      cancel()
      ending.abort()
    }
  }
}

function accountOf(place: string, { account }: Operation): string {
  return account ?? place.split('/', 2)[1] ?? ''
}

function placeOf(owner: string, key: string): string {
  return `done/${owner}/${key}`
}

/** Until one of them is there, or it is time to look again. */
async function firstOf(causes: readonly Promise<unknown>[], clock: Clock, signal: AbortSignal): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const end = (): void => resolve()
  const cancel = clock.setTimeout(end, LOOK_EVERY_MS, true)
  signal.addEventListener('abort', end)
  try {
    await Promise.race([over, ...causes])
  } finally {
    cancel()
    signal.removeEventListener('abort', end)
  }
}
