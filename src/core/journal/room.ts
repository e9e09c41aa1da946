/**
 * Keeps what is remembered within limits, in number and in length. Counted by looking now and then, and in between by what this
 * process adds; when there is too much, the oldest that has ended goes first, and what runs is never forgotten.
 */
import { put, remove } from '../../stores/ops.ts'
import type { Entry, Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import { problem } from '../problem.ts'
import { readOperation, writeOperation } from './operation.ts'
import type { Runners } from './runners.ts'

export interface RoomOptions {
  readonly store: Store
  readonly clock: Clock
  readonly runners: Runners
  /** Records in all. Default 100,000. */
  readonly records?: number | undefined
  /** Characters of all records. Default 256 Mi. */
  readonly length?: number | undefined
}

const PREFIX = 'done/'
const LOOK_EVERY_MS = 300_000
/** What is evicted at once, as a part of the limit: so that a full journal does not look through all of it for each call. */
const PART = 0.1
/** Forgotten together, in as few writes as the store makes of them. */
const TOGETHER = 64

interface Ended {
  readonly key: string
  readonly version: number
  readonly at: number
  readonly length: number
}

export class Room {
  readonly #options: RoomOptions
  readonly #records: number
  readonly #most: number
  #count = 0
  #length = 0
  #lookAt = 0
  #looking: Promise<void> | undefined

  constructor(options: RoomOptions) {
    this.#options = options
    this.#records = options.records ?? 100_000
    this.#most = options.length ?? 256 * 1024 * 1024
  }

  /** Undefined where there is room for one more. Else resolves when room was made, or refuses where everything there is still runs. */
  make(): Promise<void> | undefined {
    if (this.#isFull()) return this.#free()
    // The first look after a start may take a while, and nobody has to wait for it.
    if (this.#options.clock.now() >= this.#lookAt) this.#look().catch(() => {})
    return undefined
  }

  taken(length: number): void {
    this.#count++
    this.#length += length
  }

  /** A record has become longer, or is gone. */
  changed(grown: number, freed: boolean): void {
    this.#length += grown
    if (freed) this.#count--
  }

  #isFull(): boolean {
    return this.#count >= this.#records || this.#length >= this.#most
  }

  async #free(): Promise<void> {
    await this.#look()
    if (!this.#isFull()) return
    throw problem('SERVER_UNAVAILABLE', `${this.#count} operations are remembered, and none that has ended can be forgotten`, {
      retryAfter: 5000,
      suggestion: 'Wait until some of what is running has ended',
    })
  }

  #look(): Promise<void> {
    // Not again at once, also if it fails.
    this.#lookAt = this.#options.clock.now() + LOOK_EVERY_MS
    this.#looking ??= this.#countAll().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Counts; marks what a dead process left running; evicts if there is too much. */
  async #countAll(): Promise<void> {
    const before = { count: this.#count, length: this.#length }
    const ended: Ended[] = []
    let count = 0
    let length = 0
    for (let after: string | undefined; ; ) {
      const page = await this.#options.store.scan(PREFIX, after === undefined ? {} : { after })
      for (const entry of page) {
        const { status, endedAt, startedAt } = readOperation(entry.value)
        count++
        length += entry.value.length
        const { key, version, value } = entry
        if (status !== 'running') ended.push({ key, version, at: endedAt ?? startedAt, length: value.length })
        else await this.#abandoned(entry)
      }
      after = page.at(-1)?.key
      if (page.length === 0) break
    }
    // What came meanwhile counts too, some of it perhaps twice, until the next look.
    this.#count = count + Math.max(0, this.#count - before.count)
    this.#length = length + Math.max(0, this.#length - before.length)
    if (this.#isFull()) await this.#evict(ended)
  }

  async #abandoned(entry: Entry): Promise<void> {
    const { store, runners, clock } = this.#options
    const operation = readOperation(entry.value)
    if (operation.runner === runners.id || (await runners.isAlive(operation.runner))) return
    const lost = writeOperation({ ...operation, status: 'indeterminate', endedAt: clock.now() })
    await store.commit([put(entry.key, lost, { ifVersion: entry.version, ttl: operation.ttlMs })])
  }

  async #evict(ended: Ended[]): Promise<void> {
    const records = this.#records - Math.max(1, Math.ceil(this.#records * PART))
    const most = this.#most * (1 - PART)
    const oldest = ended.sort((a, b) => a.at - b.at)
    while (oldest.length > 0 && (this.#count > records || this.#length > most))
      await Promise.all(oldest.splice(0, Math.min(TOGETHER, Math.max(1, this.#count - records))).map(each => this.#forget(each)))
  }

  async #forget({ key, version, length }: Ended): Promise<void> {
    // A conflict means that it is in use again: then it stays.
    if ((await this.#options.store.commit([remove(key, version)])).ok) this.changed(-length, true)
  }
}
