/** Reads and the steps of commits, as statements on one open database. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { obstacle, sumOf } from '../conditions.ts'
import { scanBounds } from '../key-order.ts'
import type { Committed, Conflict, Entry, LogEntry, Op, OpResult } from '../store.ts'

type Step = OpResult | Conflict['reason']
type Row = ReturnType<StatementSync['get']>

/** Both bounds are plain: one that may be absent would not keep the walk over the index from going on to its end. */
export const scanText = `SELECT key, value, version, expires FROM entries
  WHERE key >= ?1 AND key < ?2 AND (?3 IS NULL OR key > ?3) AND (expires IS NULL OR expires > ?4) ORDER BY key LIMIT ?5`
/** In the order of SQLite every text is below every blob. */
const aboveAll = new Uint8Array(0)

export class Tables {
  readonly #get: StatementSync
  readonly #versionOf: StatementSync
  readonly #put: StatementSync
  readonly #delete: StatementSync
  readonly #scan: StatementSync
  readonly #read: StatementSync
  readonly #next: StatementSync
  readonly #setNext: StatementSync
  readonly #append: StatementSync
  readonly #trim: StatementSync
  readonly #sweep: StatementSync
  /** The last one given; read and written by whoever opens a transaction. */
  version = 0
  now = 0

  constructor(database: DatabaseSync) {
    const live = '(expires IS NULL OR expires > ?)'
    this.#get = database.prepare(`SELECT key, value, version, expires FROM entries WHERE key = ? AND ${live}`)
    this.#versionOf = database.prepare(`SELECT version FROM entries WHERE key = ? AND ${live}`)
    this.#put = database.prepare(
      `INSERT INTO entries (key, value, version, expires) VALUES (?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires`,
    )
    this.#delete = database.prepare('DELETE FROM entries WHERE key = ?')
    this.#scan = database.prepare(scanText)
    this.#read = database.prepare(
      'SELECT position, value FROM log_entries WHERE log = ? AND position > ? ORDER BY position LIMIT ?',
    )
    this.#next = database.prepare('SELECT next FROM logs WHERE log = ?')
    this.#setNext = database.prepare(
      'INSERT INTO logs (log, next) VALUES (?, ?) ON CONFLICT (log) DO UPDATE SET next = excluded.next',
    )
    this.#append = database.prepare('INSERT INTO log_entries (log, position, value) VALUES (?, ?, ?)')
    this.#trim = database.prepare('DELETE FROM log_entries WHERE log = ? AND position < ?')
    this.#sweep = database.prepare(
      'DELETE FROM entries WHERE key IN (SELECT key FROM entries WHERE expires <= ? ORDER BY expires LIMIT 500)',
    )
  }

  get(key: string): Entry | undefined {
    const row = this.#get.get(key, this.now)
    return row === undefined ? undefined : entryOf(row)
  }

  scan(prefix: string, after: string | undefined, before: string | undefined, limit: number): Entry[] {
    const { from, end } = scanBounds(prefix, after, before)
    return this.#scan.all(from, end ?? aboveAll, after ?? null, this.now, limit).map(entryOf)
  }

  read(log: string, after: number, limit: number): LogEntry[] {
    return this.#read.all(log, after, limit).map(row => ({ position: Number(row.position), value: String(row.value) }))
  }

  /** Runs inside a transaction and a savepoint of its own, which the caller undoes on a conflict. */
  run(ops: readonly Op[]): Committed | Conflict {
    const results: OpResult[] = []
    for (const [index, op] of ops.entries()) {
      const step = this.#step(op)
      if (typeof step === 'string') return { ok: false, index, reason: step }
      results.push(step)
    }
    return { ok: true, results }
  }

  /** Lets go of some entries whose time is over. */
  sweep(): void {
    this.#sweep.run(this.now)
  }

  #step(op: Op): Step {
    switch (op.op) {
      case 'check':
        return this.#found(op.key)?.version === op.version ? {} : 'version'
      case 'put':
        return this.#putStep(op)
      case 'delete':
        return this.#deleteStep(op)
      case 'add':
        return this.#addStep(op)
      case 'append':
        return this.#appendStep(op)
      case 'trim':
        this.#trim.run(op.log, op.before)
        return {}
    }
  }

  #putStep(op: Op & { op: 'put' }): Step {
    // A put without conditions need not know what it replaces.
    const reason = op.ifAbsent || op.ifVersion !== undefined ? obstacle(op, this.#found(op.key)) : undefined
    return reason ?? { version: this.#write(op.key, op.value, op.ttl === undefined ? undefined : this.now + op.ttl) }
  }

  #deleteStep(op: Op & { op: 'delete' }): Step {
    const reason = op.ifVersion === undefined ? undefined : obstacle(op, this.#found(op.key))
    if (reason === undefined) this.#delete.run(op.key)
    return reason ?? {}
  }

  #addStep(op: Op & { op: 'add' }): Step {
    const found = this.get(op.key)
    const sum = sumOf(op, found)
    if (typeof sum === 'string') return sum
    const fresh = op.ttl === undefined ? undefined : this.now + op.ttl
    return { sum, version: this.#write(op.key, String(sum), found === undefined ? fresh : found.expires) }
  }

  #appendStep(op: Op & { op: 'append' }): Step {
    const row = this.#next.get(op.log)
    const position = row === undefined ? 1 : Number(row.next)
    if (op.at !== undefined && op.at !== position) return 'position'
    this.#setNext.run(op.log, position + 1)
    this.#append.run(op.log, position, op.value)
    return { position }
  }

  /** What conditions are about: not the value, which may be long. */
  #found(key: string): Pick<Entry, 'version'> | undefined {
    const row = this.#versionOf.get(key, this.now)
    return row === undefined ? undefined : { version: Number(row.version) }
  }

  #write(key: string, value: string, expires: number | undefined): number {
    const version = ++this.version
    this.#put.run(key, value, version, expires === undefined ? null : Math.ceil(expires))
    return version
  }
}

function entryOf(row: NonNullable<Row>): Entry {
  const entry = { key: String(row.key), value: String(row.value), version: Number(row.version) }
  return row.expires === null ? entry : { ...entry, expires: Number(row.expires) }
}
