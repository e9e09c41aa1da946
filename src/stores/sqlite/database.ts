/** One open file: answers what came together, all its commits in one transaction, so that they share one sync to disk. */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { scanBounds, sumOf, unmetCondition } from '../checks.ts'
import { type Committed, type Conflict, type Entry, type LogEntry, messageOf, type Op, type OpResult } from '../store.ts'
import type { Batch, WorkerAnswer, WorkerReply, WorkerRequest } from './protocol.ts'

const SWEEP_EVERY_MS = 10_000

/** A new file is its owner's alone: it holds results, questions and keys. SQLite gives those beside it the same rights. */
function keepPrivate(path: string): void {
  if (path === ':memory:' || path === '') return
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // It is there already, with the rights that somebody gave it; or it cannot be, which is told when it is opened.
  }
}

/** The store in a SQLite file, as its worker thread runs it: synchronous, one transaction for each batch. */
export class Database {
  readonly #database: DatabaseSync
  readonly #tables: Tables
  readonly #version: StatementSync
  readonly #setVersion: StatementSync
  readonly #savepoint: StatementSync
  readonly #undo: StatementSync
  readonly #release: StatementSync
  /** Another number whenever another process has written. */
  readonly #others: StatementSync
  #sweptAt = 0
  #transactions = 0

  constructor(path: string) {
    keepPrivate(path)
    this.#database = new DatabaseSync(path)
    prepare(this.#database)
    this.#tables = new Tables(this.#database)
    this.#version = this.#database.prepare('SELECT version FROM counter')
    this.#setVersion = this.#database.prepare('UPDATE counter SET version = ?')
    this.#savepoint = this.#database.prepare('SAVEPOINT one')
    this.#undo = this.#database.prepare('ROLLBACK TO one')
    this.#release = this.#database.prepare('RELEASE one')
    this.#others = this.#database.prepare('PRAGMA data_version')
  }

  /** Gives one answer to each request, in order. An answer to a commit is given once it is on disk. */
  answer(batch: Batch): WorkerAnswer[] {
    this.#tables.now = batch.now
    const writes = batch.requests.some(([, request]) => request.ask === 'commit')
    if (!writes) return batch.requests.map(([id, request]) => this.#one(id, request))
    try {
      return this.#transaction(() => batch.requests.map(([id, request]) => this.#one(id, request)))
    } catch (error) {
      return batch.requests.map(([id]) => ({ id, error: messageOf(error) }))
    }
  }

  close(): void {
    this.#database.close()
  }

  #transaction(work: () => WorkerAnswer[]): WorkerAnswer[] {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      this.#tables.version = Number(this.#version.get()?.version)
      const before = this.#tables.version
      const answers = work()
      if (this.#tables.version !== before) this.#setVersion.run(this.#tables.version)
      this.#maySweep()
      this.#database.exec('COMMIT')
      this.#transactions++
      return answers
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }

  #maySweep(): void {
    if (Math.abs(this.#tables.now - this.#sweptAt) < SWEEP_EVERY_MS) return
    this.#sweptAt = this.#tables.now
    this.#tables.sweep()
  }

  #one(id: number, request: WorkerRequest): WorkerAnswer {
    // A failing read is its own; a failing write may have left half a step, so the whole batch goes with it.
    if (request.ask === 'commit') return { id, value: this.#commit(request.ops) }
    try {
      return { id, value: this.#look(request) }
    } catch (error) {
      return { id, error: messageOf(error) }
    }
  }

  #look(request: Exclude<WorkerRequest, { ask: 'commit' }>): WorkerReply {
    switch (request.ask) {
      case 'get':
        return this.#tables.get(request.key)
      case 'scan':
        return this.#tables.scan(request.prefix, request.after, request.before, request.limit)
      case 'read':
        return this.#tables.read(request.log, request.after, request.limit)
      case 'others':
        return Number(this.#others.get()?.data_version)
      case 'pragmas':
        return {
          journalMode: String(this.#database.prepare('PRAGMA journal_mode').get()?.journal_mode),
          synchronous: Number(this.#database.prepare('PRAGMA synchronous').get()?.synchronous),
          transactions: this.#transactions,
        }
    }
  }

  #commit(ops: readonly Op[]): Committed | Conflict {
    // A single step looks before it writes: where it conflicts there is nothing to undo.
    if (ops.length === 1) return this.#tables.run(ops)
    this.#savepoint.run()
    const outcome = this.#tables.run(ops)
    if (!outcome.ok) this.#undo.run()
    this.#release.run()
    return outcome
  }
}

// Reads and the steps of commits, as statements on one open database.

type Step = OpResult | Conflict['reason']
type Row = ReturnType<StatementSync['get']>

/** Both bounds are plain: one that may be absent would not keep the walk over the index from going on to its end. */
export const scanText = `SELECT key, value, version, expires FROM entries
  WHERE key >= ?1 AND key < ?2 AND (?3 IS NULL OR key > ?3) AND (expires IS NULL OR expires > ?4) ORDER BY key LIMIT ?5`
/** In the order of SQLite every text is below every blob. */
const aboveAll = new Uint8Array(0)

class Tables {
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
    const reason = op.ifAbsent || op.ifVersion !== undefined ? unmetCondition(op, this.#found(op.key)) : undefined
    return reason ?? { version: this.#write(op.key, op.value, op.ttl === undefined ? undefined : this.now + op.ttl) }
  }

  #deleteStep(op: Op & { op: 'delete' }): Step {
    const reason = op.ifVersion === undefined ? undefined : unmetCondition(op, this.#found(op.key))
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

// The tables, and how a file of an earlier version becomes one of this.

/** Each brings the file from its index to the next version. Never change one that was released: add another. */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE entries (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL, expires INTEGER);
   CREATE INDEX entries_by_expiry ON entries (expires) WHERE expires IS NOT NULL;
   CREATE TABLE logs (log TEXT NOT NULL PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE log_entries (log TEXT NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL, UNIQUE (log, position));
   CREATE TABLE counter (only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL);
   INSERT INTO counter VALUES (1, 0);`,
]

/** Pages of the write-ahead log, 16 MiB, after which a commit also writes them to their places: seldom, because it makes that commit long. */
const checkpointPages = 4_000

/** Opens the file for lasting writes: a commit that returned survives a loss of power. */
export function prepare(database: DatabaseSync): void {
  database.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
  database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
  database.exec('BEGIN IMMEDIATE')
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  if (version > MIGRATIONS.length) {
    database.exec('ROLLBACK')
    throw new Error(
      `The file has schema version ${version}; this version of Vivarium supports ${MIGRATIONS.length}. Update Vivarium`,
    )
  }
  for (const migration of MIGRATIONS.slice(version)) database.exec(migration)
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
  database.exec('COMMIT')
}
