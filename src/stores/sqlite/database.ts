/** One open file: answers what came together, all its commits in one transaction, so that they share one sync to disk. */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { type Committed, type Conflict, messageOf, type Op } from '../store.ts'
import type { Answer, Batch, Reply, Request } from './protocol.ts'
import { prepare } from './schema.ts'
import { Tables } from './tables.ts'

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
  answer(batch: Batch): Answer[] {
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

  #transaction(work: () => Answer[]): Answer[] {
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

  #one(id: number, request: Request): Answer {
    // A failing read is its own; a failing write may have left half a step, so the whole batch goes with it.
    if (request.ask === 'commit') return { id, value: this.#commit(request.ops) }
    try {
      return { id, value: this.#look(request) }
    } catch (error) {
      return { id, error: messageOf(error) }
    }
  }

  #look(request: Exclude<Request, { ask: 'commit' }>): Reply {
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
