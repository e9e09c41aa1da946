/**
 * What is recorded of one operation: enough to answer a repetition of it without doing it twice. A ticket settles it; what
 * could not be settled at once is retried.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import { type Entry, type Op, put, remove, type Store, StoreError } from '../../stores/store.ts'
import type { Cancel, Clock } from '../clock.ts'

/**
 * `waiting`: it has asked its caller something, and whoever comes with the answer goes on with it. `indeterminate`: it was begun and
 * nobody knows how it ended. `undone`: it was done, and its effects were taken back.
 * An operation that was refused before it began leaves no record.
 */
type OperationStatus = 'running' | 'waiting' | 'done' | 'failed' | 'indeterminate' | 'undone'

/** The record of one operation under an idempotency key. */
export interface Operation {
  readonly id: string
  /** What was called: repetitions of the key must call the same. */
  readonly target: string
  /** A digest of what was called, with what, as part of what. */
  readonly fingerprint: string
  readonly status: OperationStatus
  /** The process that runs it, or ran it last. */
  readonly runner: string
  /** Whose share it counts against, where that is not its owner. */
  readonly account?: string
  readonly startedAt: number
  readonly endedAt?: number
  /** Of one that is indeterminate: why nobody knows, where the process that ran it could still say so. */
  readonly lostBy?: string
  /** What came of it; JSON. */
  readonly outcome?: unknown
  /** How long it is remembered once it has ended. */
  readonly ttlMs: number
}

/** Has ended with an outcome that a repetition gets again. */
export function isSettled(operation: Operation): boolean {
  return operation.status === 'done' || operation.status === 'failed'
}

/** The text of a record, as the store keeps it. */
export function writeOperation(operation: Operation): string {
  return JSON.stringify(operation)
}

/** The store is ours, but a record of another version may lie in it: what cannot be read is told, not guessed. */
export function readOperation(text: string): Operation {
  const value: unknown = JSON.parse(text)
  if (
    !isRecord(value) ||
    typeof value.id !== 'string' ||
    typeof value.fingerprint !== 'string' ||
    typeof value.status !== 'string'
  )
    throw new Error('A record of the journal does not have the expected form. Another program may have written it')
  return value as unknown as Operation
}

// The right, and the duty, to do an operation that was claimed and to say how it ended.

interface HeldOperation {
  readonly store: Store
  readonly clock: Clock
  readonly place: string
  readonly operation: Operation
  readonly version: number
  /** The length of the record as it was written. */
  readonly length: number
  readonly unsettled: OutcomeRetryQueue
  /** Characters that its account may still keep. */
  readonly left: () => number
}

/** The right to run an operation, and the way to write down how it ended. */
export class Ticket {
  readonly #held: HeldOperation
  readonly #ended: (grown: number, freed: boolean) => void
  #length: number
  #open = true

  /** `ended` hears by how much the record has grown. */
  constructor(held: HeldOperation, ended: (grown: number, freed: boolean) => void) {
    this.#held = held
    this.#length = held.length
    this.#ended = ended
  }

  get operation(): Operation {
    return this.#held.operation
  }

  /** Characters that may be kept of its outcome: what is longer than the rest of the share is not kept, only that it was done. */
  get capacity(): number {
    return this.#held.left()
  }

  /**
   * It has ended, and a repetition gets this outcome again. `also` is written in the same commit. Gives the record as it stands,
   * or undefined where another took over because this process was silent for too long: then the outcome is theirs to tell.
   * `mostMs`: remembered no longer than that.
   */
  settle(status: 'done' | 'failed', outcome: unknown, also: readonly Op[] = [], mostMs?: number): Promise<Operation | undefined> {
    const operation: Operation = { ...this.#held.operation, status, outcome, endedAt: this.#held.clock.now() }
    const ttl = Math.min(operation.ttlMs, mostMs ?? operation.ttlMs)
    return this.#end(async () => ((await this.#replace(operation, also, ttl)) ? operation : undefined), false)
  }

  /** It did not begin, or may be tried anew: the key is as if it had never been used. */
  async release(also: readonly Op[] = []): Promise<void> {
    await this.#end(() => this.#held.store.commit([remove(this.#held.place, this.#held.version), ...also]), true)
  }

  /** It waits for an answer of its caller, for so long: whoever brings it goes on with the same operation. */
  async pause(ms: number): Promise<void> {
    await this.#end(() => this.#replace({ ...this.#held.operation, status: 'waiting' }, [], ms), false)
  }

  /** It was begun and this process cannot say how it ends, only why it does not know. */
  async lose(lostBy: string, also: readonly Op[] = []): Promise<void> {
    const { operation, clock } = this.#held
    const lost: Operation = { ...operation, status: 'indeterminate', lostBy, endedAt: clock.now() }
    await this.#end(() => this.#replace(lost, also), false)
  }

  async #end<T>(write: () => Promise<T>, freed: boolean): Promise<T> {
    if (!this.#open) throw new Error('This operation has already ended')
    this.#open = false
    try {
      return await write()
    } catch (error) {
      // Written when the store is back, so that whoever repeats it is not told for ever that it runs.
      this.#held.unsettled.add(this.#held.place, write, this.#length)
      throw error
    } finally {
      this.#ended((freed ? 0 : this.#length) - this.#held.length, freed)
    }
  }

  async #replace(operation: Operation, also: readonly Op[], ttl = operation.ttlMs): Promise<boolean> {
    const { store, place, version } = this.#held
    const text = writeOperation(operation)
    this.#length = text.length
    const write = (ifVersion: number): readonly Op[] => [put(place, text, { ifVersion, ttl }), ...also]
    if ((await store.commit(write(version))).ok) return true
    // Others took us for dead and wrote that the end is unknown. We know it, so it stands corrected.
    const entry = await store.get(place)
    if (entry === undefined) return false
    const found = readOperation(entry.value)
    return found.id === operation.id && found.status === 'indeterminate' && (await store.commit(write(entry.version))).ok
  }
}

/**
 * Ends that could not be written because the store was away: kept here, and written when it is back. Until then whoever repeats the
 * operation in this process waits for that; in others it is taken to run, and once this process is gone, its end to be unknown.
 */
interface UnsettledOptions {
  readonly store: Store
  readonly clock: Clock
}

/** Writes it; rejects where the store is still away. */
type Write = () => Promise<unknown>

interface Waiting {
  readonly write: Write
  readonly length: number
}

const FIRST_MS = 250
const LONGEST_MS = 5_000
/** Characters that wait. What is beyond is left to the next look at the journal, which marks its end as unknown. */
const MOST_LENGTH = 16 * 1024 * 1024
const MOST = 10_000

/** Endings that could not be written when they came, written as soon as the store takes them. */
export class OutcomeRetryQueue {
  readonly #options: UnsettledOptions
  readonly #waiting = new Map<string, Waiting>()
  #length = 0
  #timer: Cancel | undefined
  #closed = false

  constructor(options: UnsettledOptions) {
    this.#options = options
  }

  has(place: string): boolean {
    return this.#waiting.has(place)
  }

  add(place: string, write: Write, length: number): void {
    if (this.#closed || this.#waiting.size >= MOST || this.#length + length > MOST_LENGTH) return
    this.#drop(place)
    this.#waiting.set(place, { write, length })
    this.#length += length
    this.#plan(FIRST_MS)
  }

  /** A record that says of something that it runs, which was never begun: should it be there, what was there before comes back. */
  unbegun(place: string, id: string, before: Entry | undefined): void {
    if (this.#waiting.has(place)) return
    const { store, clock } = this.#options
    const write = async (): Promise<void> => {
      const entry = await store.get(place)
      const found = entry === undefined ? undefined : readOperation(entry.value)
      if (entry === undefined || found?.id !== id || found.status !== 'running') return
      const ttl = before?.expires === undefined ? undefined : Math.max(1, before.expires - clock.now())
      const { version: ifVersion } = entry
      const back = before === undefined ? remove(place, ifVersion) : put(place, before.value, { ifVersion, ...(ttl && { ttl }) })
      await store.commit([back])
    }
    this.add(place, write, before?.value.length ?? 0)
  }

  /** Tries it now. False where the store is still away. */
  async flush(place: string): Promise<boolean> {
    const waiting = this.#waiting.get(place)
    if (waiting === undefined) return true
    try {
      await waiting.write()
    } catch (error) {
      // What the store will never take is given up: the next look at the journal marks its end as unknown.
      if (!(error instanceof StoreError && error.kind === 'input')) return false
    }
    if (this.#waiting.get(place) === waiting) this.#drop(place)
    return true
  }

  close(): void {
    this.#closed = true
    this.#timer?.()
  }

  #drop(place: string): void {
    this.#length -= this.#waiting.get(place)?.length ?? 0
    this.#waiting.delete(place)
  }

  #plan(ms: number): void {
    if (this.#closed || this.#timer !== undefined || this.#waiting.size === 0) return
    this.#timer = this.#options.clock.setTimeout(() => void this.#flushAll(ms), ms, true)
  }

  async #flushAll(after: number): Promise<void> {
    let away = false
    for (const [place, waiting] of [...this.#waiting]) {
      away = !(await this.flush(place))
      if (!away) continue
      // Most likely the others would fail too; they are the first the next time.
      if (this.#waiting.delete(place)) this.#waiting.set(place, waiting)
      break
    }
    this.#timer = undefined
    this.#plan(away ? Math.min(LONGEST_MS, 2 * after) : FIRST_MS)
  }
}
