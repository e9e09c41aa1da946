/**
 * Keeps the number of records within a limit. Counted by looking now and then, and in between by what this process adds;
 * when there are too many, the oldest that have ended go first, and what runs is never forgotten.
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
  readonly records?: number
}

const PREFIX = 'done/'
const LOOK_EVERY_MS = 300_000
/** What is evicted at once, as a part of the limit: so that a full journal does not look through all of it for each call. */
const PART = 0.1

export class Room {
  readonly #options: RoomOptions
  readonly #records: number
  #count = 0
  #lookAt = 0
  #looking: Promise<void> | undefined

  constructor(options: RoomOptions) {
    this.#options = options
    this.#records = options.records ?? 100_000
  }

  /** Resolves when there is room for one more; refuses where everything there is still runs. */
  async make(): Promise<void> {
    if (this.#count < this.#records && this.#options.clock.now() < this.#lookAt) return
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    await this.#looking
    if (this.#count >= this.#records)
      throw problem('SERVER_UNAVAILABLE', `${this.#count} operations are remembered, and none that has ended can be forgotten`, {
        retryAfter: 5000,
        suggestion: 'Wait until some of what is running has ended',
      })
  }

  taken(): void {
    this.#count++
  }

  freed(): void {
    this.#count--
  }

  /** Counts; marks what a dead process left running; evicts if there are too many. */
  async #look(): Promise<void> {
    const ended: { readonly key: string; readonly version: number; readonly at: number }[] = []
    let count = 0
    for (let after: string | undefined; ; ) {
      const page = await this.#options.store.scan(PREFIX, after === undefined ? {} : { after })
      for (const entry of page) {
        const { status, endedAt } = readOperation(entry.value)
        count++
        if (status !== 'running') ended.push({ key: entry.key, version: entry.version, at: endedAt ?? 0 })
        else await this.#abandoned(entry)
      }
      after = page.at(-1)?.key
      if (page.length === 0) break
    }
    this.#count = count
    this.#lookAt = this.#options.clock.now() + LOOK_EVERY_MS
    if (count >= this.#records) await this.#evict(ended)
  }

  async #abandoned(entry: Entry): Promise<void> {
    const { store, runners, clock } = this.#options
    const operation = readOperation(entry.value)
    if (operation.runner === runners.id || (await runners.isAlive(operation.runner))) return
    const lost = writeOperation({ ...operation, status: 'indeterminate', endedAt: clock.now() })
    await store.commit([put(entry.key, lost, { ifVersion: entry.version, ttl: operation.ttlMs })])
  }

  async #evict(ended: { readonly key: string; readonly version: number; readonly at: number }[]): Promise<void> {
    const many = Math.max(1, Math.ceil(this.#records * PART), this.#count - this.#records + 1)
    const oldest = ended.sort((a, b) => a.at - b.at).slice(0, many)
    for (const { key, version } of oldest) {
      // A conflict means that it is in use again: then it stays.
      if ((await this.#options.store.commit([remove(key, version)])).ok) this.#count--
    }
  }
}
