/** The store of one process, gone with it: the default where nothing needs to last, and the model for the other drivers. */
import { checkKey, pageSize } from './checks.ts'
import { compareKeys, lowerBound, prefixEnd } from './key-order.ts'
import { Draft } from './memory-draft.ts'
import { isOver, MemoryTables, type MemoryValues, objectValues, textValues } from './memory-tables.ts'
import {
  type Committed,
  type Conflict,
  type Entry,
  type LogEntry,
  type Op,
  type ReadOptions,
  type ScanOptions,
  type Store,
  StoreError,
} from './store.ts'
import { Watchers } from './watchers.ts'

export interface MemoryStoreOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Keys and values together, roughly. Default 256 MiB. */
  readonly bytes?: number
}

/** A store in the memory of this process. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  return new MemoryStore(options, textValues)
}

/**
 * The same contract with values held by reference, for what one owner keeps in this process alone: nothing is written as text or
 * copied. A value must not be changed after it was put. The owner bounds what it keeps; the store does not know its size.
 */
export function memoryObjectStore<V extends object>(options: Pick<MemoryStoreOptions, 'now'> = {}): Store<V> {
  return new MemoryStore<V>(options, objectValues())
}

class MemoryStore<V> implements Store<V> {
  readonly capacity: number
  readonly #tables: MemoryTables<V>
  readonly #watchers = new Watchers()
  readonly #now: () => number
  readonly #bytes: number
  #sweepAt = 1000
  #closed = false

  constructor(options: MemoryStoreOptions, values: MemoryValues<V>) {
    this.#tables = new MemoryTables(values)
    this.#now = options.now ?? Date.now
    this.#bytes = options.bytes ?? 256 * 1024 * 1024
    this.capacity = Math.floor(this.#bytes / 2)
  }

  async get(key: string): Promise<Entry<V> | undefined> {
    this.#open()
    checkKey(key)
    const entry = this.#tables.entries.get(key)
    return entry === undefined || isOver(entry, this.#now()) ? undefined : entry
  }

  async scan(prefix: string, options: ScanOptions = {}): Promise<readonly Entry<V>[]> {
    this.#open()
    const limit = pageSize(options.limit)
    const { entries, keys } = this.#tables
    const now = this.#now()
    const found: Entry<V>[] = []
    const end = bound(keys, least(prefixEnd(prefix), options.before))
    for (let i = start(keys, prefix, options.after); i < end && found.length < limit; i++) {
      const entry = entries.get(keys[i] as string) as Entry<V>
      if (!isOver(entry, now)) found.push(entry)
    }
    return found
  }

  async read(log: string, options: ReadOptions = {}): Promise<readonly LogEntry<V>[]> {
    this.#open()
    checkKey(log, 'log')
    const limit = pageSize(options.limit)
    const kept = this.#tables.logs.get(log)
    if (kept === undefined) return []
    const from = Math.max(0, (options.after ?? 0) + 1 - kept.first)
    return kept.values.slice(from, from + limit).map((value, i) => ({ position: kept.first + from + i, value }))
  }

  async commit(ops: readonly Op<V>[]): Promise<Committed | Conflict> {
    this.#open()
    this.#tables.values.check(ops)
    const draft = new Draft(this.#tables, this.#now())
    const outcome = draft.run(ops)
    if (!outcome.ok) return outcome
    if (draft.growth > 0 && this.#tables.bytes + draft.growth > this.#bytes) {
      this.#sweep()
      if (this.#tables.bytes + draft.growth > this.#bytes)
        throw new StoreError(
          'full',
          `The store holds ${this.#tables.bytes} of ${this.#bytes} bytes: raise its limit, or use sqlite:`,
        )
    }
    draft.apply()
    if (this.#tables.entries.size > this.#sweepAt) this.#sweep()
    this.#watchers.changed(draft.names)
    return outcome
  }

  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void> {
    this.#open()
    return this.#watchers.watch(prefixes, signal)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#watchers.close()
  }

  #open(): void {
    if (this.#closed) throw new StoreError('closed', 'The store is closed: open it again')
  }

  /** Each time the number of keys has doubled: what is over goes, at a constant cost per write. */
  #sweep(): void {
    const now = this.#now()
    const { entries, keys } = this.#tables
    for (const entry of entries.values()) {
      if (!isOver(entry, now)) continue
      entries.delete(entry.key)
      this.#tables.bytes -= this.#tables.values.weight(entry.key, entry.value)
    }
    const left = keys.filter(key => entries.has(key))
    keys.length = 0
    for (const key of left) keys.push(key)
    this.#sweepAt = Math.max(1000, 2 * entries.size)
  }
}

function start(keys: readonly string[], prefix: string, after: string | undefined): number {
  const first = lowerBound(keys, prefix)
  return after === undefined ? first : Math.max(first, above(keys, after))
}

/** The index of the first key above this one. */
function above(keys: readonly string[], key: string): number {
  const index = lowerBound(keys, key)
  return keys[index] === key ? index + 1 : index
}

function bound(keys: readonly string[], end: string | undefined): number {
  return end === undefined ? keys.length : lowerBound(keys, end)
}

function least(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareKeys(a, b) < 0 ? a : b
}
