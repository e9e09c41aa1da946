/**
 * What is offered under names: an immutable snapshot, replaced on change. What is derived from a snapshot
 * (encoded lists, its digest) is kept with it and goes with it, so nothing stale can be served.
 */
import { clip } from '../jsonrpc/limits.ts'
import { digest } from './digest.ts'

/** Derived values kept per snapshot; more than this are made anew each time. */
const maxMemos = 1_024

interface CatalogOptions<Entry> {
  /** What an entry is called in errors: `tool`, `resource`, … */
  readonly noun: string
  /** The name under which an entry is found. */
  readonly key: (entry: Entry) => string
  /** What of an entry its revision depends on. Default: all that JSON can hold of it. */
  readonly facts?: (entry: Entry) => unknown
}

interface Page<Entry> {
  readonly entries: readonly Entry[]
  /** Give this to the next `page`. Undefined on the last one. */
  readonly next: number | undefined
}

/** The entries of a catalog at one moment; never changes. */
export interface Snapshot<Entry> {
  /** Counts changes; two snapshots of one catalog with the same version are the same object. */
  readonly version: number
  /** In the order in which they were added. */
  readonly entries: readonly Entry[]
  /** The entries behind the position `after` (0 for the first page). Positions stay good across changes. */
  page(after: number, limit: number): Page<Entry>
  /** `make`'s result, made once per snapshot and key. */
  memo<T>(key: string, make: () => T): T
  /** Digest of the contents: equal for equal entries, in whatever order and process they were added. */
  revision(): Promise<string>
}

/** A set of entries by key, of which snapshots are cheap and changes are told. */
export interface Catalog<Entry> {
  readonly size: number
  /** As it is now; the same object until something changes. */
  readonly snapshot: Snapshot<Entry>
  /** Undefined where nothing has this key. */
  get(key: string): Entry | undefined
  /** Digest of one entry as it is offered now, of the same facts as the revision: what was approved of it is bound to this. */
  digestOf(key: string): Promise<string> | undefined
  /** Throws where the key is taken. */
  add(entry: Entry): void
  /** Replaces the entry of the same key and keeps its place. */
  update(entry: Entry): void
  /** False if there was none. */
  remove(key: string): boolean
  /** Calls `fn` at once after each change, until the returned function is called. */
  onChange(fn: () => void): () => void
}

/**
 * @example
 * const tools = createCatalog<Tool>({ noun: 'tool', key: (tool) => tool.name })
 * tools.add(echo)
 * const bytes = tools.snapshot.memo('list', () => encode(tools.snapshot.entries))
 */
export function createCatalog<Entry>(options: CatalogOptions<Entry>): Catalog<Entry> {
  return new LiveCatalog(options)
}

interface PlacedEntry<Entry> {
  /** Counts up and is never given twice, so that a page may end at an entry that is gone by the next one. */
  readonly seq: number
  readonly entry: Entry
  /** Computed when first asked for. */
  digest?: Promise<string>
}

class LiveCatalog<Entry> implements Catalog<Entry> {
  readonly #options: CatalogOptions<Entry>
  readonly #placed = new Map<string, PlacedEntry<Entry>>()
  readonly #listeners = new Set<() => void>()
  #seq = 0
  #version = 0
  // Made when first read: a thousand additions in a row make one snapshot, not a thousand.
  #snapshot: Snapshot<Entry> | undefined

  constructor(options: CatalogOptions<Entry>) {
    this.#options = options
  }

  get size(): number {
    return this.#placed.size
  }

  get snapshot(): Snapshot<Entry> {
    this.#snapshot ??= new FrozenSnapshot(this.#version, [...this.#placed.values()], this.#options)
    return this.#snapshot
  }

  get(key: string): Entry | undefined {
    return this.#placed.get(key)?.entry
  }

  digestOf(key: string): Promise<string> | undefined {
    const placed = this.#placed.get(key)
    if (placed === undefined) return undefined
    placed.digest ??= digest(factsOf(this.#options, placed.entry))
    return placed.digest
  }

  add(entry: Entry): void {
    const key = this.#options.key(entry)
    if (this.#placed.has(key)) {
      const { noun } = this.#options
      throw new Error(`The ${noun} "${clip(key)}" already exists. Choose another name, or update or remove the existing one`)
    }
    this.#placed.set(key, { seq: ++this.#seq, entry })
    this.#changed()
  }

  update(entry: Entry): void {
    const key = this.#options.key(entry)
    const placed = this.#placed.get(key)
    if (placed === undefined)
      throw new Error(`The ${this.#options.noun} "${clip(key)}" does not exist. Add it before you update it`)
    this.#placed.set(key, { seq: placed.seq, entry })
    this.#changed()
  }

  remove(key: string): boolean {
    if (!this.#placed.delete(key)) return false
    this.#changed()
    return true
  }

  onChange(fn: () => void): () => void {
    const listener = () => fn()
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #changed(): void {
    this.#version++
    this.#snapshot = undefined
    for (const listener of this.#listeners) listener()
  }
}

class FrozenSnapshot<Entry> implements Snapshot<Entry> {
  readonly version: number
  readonly entries: readonly Entry[]
  readonly #placed: readonly PlacedEntry<Entry>[]
  readonly #options: CatalogOptions<Entry>
  readonly #memos = new Map<string, unknown>()
  #revision: Promise<string> | undefined

  constructor(version: number, placed: readonly PlacedEntry<Entry>[], options: CatalogOptions<Entry>) {
    this.version = version
    this.entries = Object.freeze(placed.map(({ entry }) => entry))
    this.#placed = placed
    this.#options = options
  }

  page(after: number, limit: number): Page<Entry> {
    const start = this.#behind(after)
    const end = Math.min(start + Math.max(1, limit), this.entries.length)
    const next = end < this.entries.length ? this.#placed[end - 1]?.seq : undefined
    return { entries: this.entries.slice(start, end), next }
  }

  memo<T>(key: string, make: () => T): T {
    const stored = this.#memos.get(key)
    // Under one key always the same `make`, hence the same type.
    if (stored !== undefined) return stored as T
    const made = make()
    if (this.#memos.size < maxMemos) this.#memos.set(key, made)
    return made
  }

  revision(): Promise<string> {
    const options = this.#options
    this.#revision ??= digest(Object.fromEntries(this.entries.map(entry => [options.key(entry), factsOf(options, entry)])))
    return this.#revision
  }

  /** Index of the first entry whose sequence is above `after`, by halving: sequences rise with the index. */
  #behind(after: number): number {
    let low = 0
    let high = this.#placed.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#placed[middle]?.seq ?? 0) > after) high = middle
      else low = middle + 1
    }
    return low
  }
}

function factsOf<Entry>({ facts }: CatalogOptions<Entry>, entry: Entry): unknown {
  return facts === undefined ? entry : facts(entry)
}
