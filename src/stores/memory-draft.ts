/** One commit in the making: reads through to the tables, writes aside, so that a conflict leaves no trace. */
import { obstacle } from './checks.ts'
import { lowerBound } from './key-order.ts'
import { isOver, type MemoryLog, type MemoryTables } from './memory-tables.ts'
import type { Committed, Conflict, Entry, LogPosition, Op, OpResult } from './store.ts'

type Step = OpResult | Conflict['reason']

export class Draft<V> {
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
        if (!known) tables.keys.splice(lowerBound(tables.keys, key), 0, key)
        tables.entries.set(key, entry)
      } else if (known) {
        tables.keys.splice(lowerBound(tables.keys, key), 1)
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
    return obstacle(op, this.#find(op.key)) ?? { version: version() }
  }

  #delete(op: Op<V> & { op: 'delete' }): Step {
    const reason = obstacle(op, this.#find(op.key))
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
    const kept = this.#tables.logs.get(log)
    return (kept === undefined ? 1 : kept.first + kept.values.length) + (this.#appended.get(log)?.length ?? 0)
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
