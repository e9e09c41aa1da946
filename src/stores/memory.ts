/** The store of one process, gone with it: the default where nothing needs to last, and the model for the other drivers. */
import { checkKey, checkOps, checkSteps, pageSize, SortedKeys, scanBounds, sumOf, unmetCondition, Watchers } from './checks.ts'
import {
  type Committed,
  type Conflict,
  type Entry,
  type LogEntry,
  type LogPosition,
  type Op,
  type OpResult,
  type ReadOptions,
  type ScanOptions,
  type Store,
  StoreError,
} from './store.ts'

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** For tests: milliseconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number
  /** The most bytes of keys and values, approximately. Default 256 MiB. */
  readonly bytes?: number
}

/** Creates a store in the memory of this process. Its data is lost when the process ends. */
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
    const { from, end } = scanBounds(prefix, options.after, options.before)
    keys.walk(from, end, key => {
      const entry = entries.get(key) as Entry<V>
      if (key !== options.after && !isOver(entry, now)) found.push(entry)
      return found.length < limit
    })
    return found
  }

  async read(log: string, options: ReadOptions = {}): Promise<readonly LogEntry<V>[]> {
    this.#open()
    checkKey(log, 'log')
    const limit = pageSize(options.limit)
    const stored = this.#tables.logs.get(log)
    if (stored === undefined) return []
    const from = Math.max(0, (options.after ?? 0) + 1 - stored.first)
    return stored.values.slice(from, from + limit).map((value, i) => ({ position: stored.first + from + i, value }))
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
          `The memory store is full: ${this.#tables.bytes} of ${this.#bytes} bytes are in use. Raise its limit, or use sqlite:`,
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
    keys.retain(key => entries.has(key))
    this.#sweepAt = Math.max(1000, 2 * entries.size)
  }
}

// One commit in the making: reads through to the tables, writes aside, so that a conflict leaves no trace.

type Step = OpResult | Conflict['reason']

class Draft<V> {
  readonly #tables: MemoryTables<V>
  readonly #now: number
  /** Undefined: deleted. */
  readonly #entries = new Map<string, Entry<V> | undefined>()
  readonly #appended = new Map<string, V[]>()
  readonly #trimmed = new Map<string, LogPosition>()
  #version: number
  /** By how many bytes the tables grow. */
  growth = 0

  constructor(tables: MemoryTables<V>, now: number) {
    this.#tables = tables
    this.#now = now
    this.#version = tables.version
  }

  run(ops: readonly Op<V>[]): Committed | Conflict {
    const results: OpResult[] = []
    for (const [index, op] of ops.entries()) {
      const step = this.#step(op)
      if (typeof step === 'string') return { ok: false, index, reason: step }
      results.push(step)
    }
    return { ok: true, results }
  }

  /** Keys and logs that were written. */
  get names(): string[] {
    return [...this.#entries.keys(), ...this.#appended.keys()]
  }

  apply(): void {
    const tables = this.#tables
    for (const [key, entry] of this.#entries) {
      const known = tables.entries.has(key)
      if (entry !== undefined) {
        if (!known) tables.keys.add(key)
        tables.entries.set(key, entry)
      } else if (known) {
        tables.keys.delete(key)
        tables.entries.delete(key)
      }
    }
    for (const [name, values] of this.#appended) this.#log(name).values.push(...values)
    for (const [name, before] of this.#trimmed) this.#cut(name, before)
    tables.version = this.#version
    tables.bytes += this.growth
  }

  #step(op: Op<V>): Step {
    switch (op.op) {
      case 'check':
        return this.#find(op.key)?.version === op.version ? {} : 'version'
      case 'put':
        return this.#put(op)
      case 'delete':
        return this.#delete(op)
      case 'add':
        return this.#add(op)
      case 'append':
        return this.#append(op)
      case 'trim':
        this.#trimmed.set(op.log, Math.max(Math.min(op.before, this.#next(op.log)), this.#trimmed.get(op.log) ?? 0))
        return {}
    }
  }

  #put(op: Op<V> & { op: 'put' }): Step {
    const version = (): number => this.#write(op.key, op.value, op.ttl === undefined ? undefined : this.#now + op.ttl)
    return unmetCondition(op, this.#find(op.key)) ?? { version: version() }
  }

  #delete(op: Op<V> & { op: 'delete' }): Step {
    const reason = unmetCondition(op, this.#find(op.key))
    if (reason === undefined) this.#set(op.key, undefined)
    return reason ?? {}
  }

  #add(op: Op<V> & { op: 'add' }): Step {
    const found = this.#find(op.key)
    const counted = this.#tables.values.add(op, found)
    if (typeof counted === 'string') return counted
    const fresh = op.ttl === undefined ? undefined : this.#now + op.ttl
    const { sum, value } = counted
    return { sum, version: this.#write(op.key, value, found === undefined ? fresh : found.expires) }
  }

  #append(op: Op<V> & { op: 'append' }): Step {
    const position = this.#next(op.log)
    if (op.at !== undefined && op.at !== position) return 'position'
    const added = this.#appended.get(op.log) ?? []
    added.push(op.value)
    this.#appended.set(op.log, added)
    this.growth += this.#weight('', op.value)
    return { position }
  }

  #write(key: string, value: V, expires: number | undefined): number {
    const version = ++this.#version
    this.#set(key, expires === undefined ? { key, value, version } : { key, value, version, expires })
    return version
  }

  #set(key: string, entry: Entry<V> | undefined): void {
    // One that is over still takes up room until it is swept or written anew.
    const before = this.#entries.has(key) ? this.#entries.get(key) : this.#tables.entries.get(key)
    if (before !== undefined) this.growth -= this.#weight(key, before.value)
    if (entry !== undefined) this.growth += this.#weight(key, entry.value)
    this.#entries.set(key, entry)
  }

  #weight(key: string, value: V): number {
    return this.#tables.values.weight(key, value)
  }

  #find(key: string): Entry<V> | undefined {
    const entry = this.#entries.has(key) ? this.#entries.get(key) : this.#tables.entries.get(key)
    return entry === undefined || isOver(entry, this.#now) ? undefined : entry
  }

  /** The position that the next entry of a log gets. */
  #next(log: string): LogPosition {
    const stored = this.#tables.logs.get(log)
    return (stored === undefined ? 1 : stored.first + stored.values.length) + (this.#appended.get(log)?.length ?? 0)
  }

  #log(name: string): MemoryLog<V> {
    let log = this.#tables.logs.get(name)
    if (log === undefined) {
      log = { first: 1, values: [] }
      this.#tables.logs.set(name, log)
    }
    return log
  }

  #cut(name: string, before: LogPosition): void {
    const log = this.#tables.logs.get(name)
    if (log === undefined) return
    const gone = log.values.splice(0, Math.max(0, Math.min(before - log.first, log.values.length)))
    log.first += gone.length
    for (const value of gone) this.#tables.bytes -= this.#weight('', value)
  }
}

// What the memory store holds, and what that weighs.

interface MemoryLog<V> {
  /** The position of the first entry, or of the next one where there is none. */
  first: number
  readonly values: V[]
}

/** What a commit works on. */
class MemoryTables<V> {
  readonly entries = new Map<string, Entry<V>>()
  /** The keys of `entries`. */
  readonly keys = new SortedKeys()
  readonly logs = new Map<string, MemoryLog<V>>()
  readonly values: MemoryValues<V>
  version = 0
  bytes = 0

  constructor(values: MemoryValues<V>) {
    this.values = values
  }
}

/** What the tables must know of values. */
interface MemoryValues<V> {
  /** Refuses what no store keeps. */
  check(ops: readonly Op<V>[]): void
  /** What a key and its value take up, near enough for a limit. */
  weight(key: string, value: V): number
  /** The sum of an `add` with its value, or what stands in its way. */
  add(op: Op<V> & { op: 'add' }, found: Entry<V> | undefined): { readonly sum: number; readonly value: V } | Conflict['reason']
}

/** Values as all drivers keep them. */
const textValues: MemoryValues<string> = {
  check: checkOps,
  weight: (key, value) => 2 * (key.length + value.length) + 64,
  add: (op, found) => {
    const sum = sumOf(op, found)
    return typeof sum === 'string' ? sum : { sum, value: String(sum) }
  },
}

/** Values by reference: neither copied nor written as text, so their size is not known and whoever keeps them bounds them. */
function objectValues<V extends object>(): MemoryValues<V> {
  return {
    check: checkSteps,
    weight: () => 0,
    add: () => {
      throw new StoreError('input', 'A store of objects cannot count: use a store of text')
    },
  }
}

/** Whether the time of an entry is over. */
function isOver(entry: Entry<unknown>, now: number): boolean {
  return entry.expires !== undefined && entry.expires <= now
}
