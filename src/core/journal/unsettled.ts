/**
 * Ends that could not be written because the store was away: kept here, and written when it is back. Until then whoever repeats the
 * operation in this process waits for that; in others it is taken to run, and once this process is gone, its end to be unknown.
 */
import { put, remove } from '../../stores/ops.ts'
import { type Entry, type Store, StoreError } from '../../stores/store.ts'
import type { Cancel, Clock } from '../clock.ts'
import { readOperation } from './operation.ts'

export interface UnsettledOptions {
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

export class Unsettled {
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
