/** The store of many processes: one Postgres database, its clock, its locks. */
import { checkKey, checkOps, pageSize, scanBounds, Watchers } from '../checks.ts'
import {
  type Committed,
  type Conflict,
  type Entry,
  type LogEntry,
  messageOf,
  type Op,
  type ReadOptions,
  type ScanOptions,
  type Store,
  StoreError,
} from '../store.ts'
import { type Client, loadPg, type Pool } from './pg.ts'
import { MIGRATIONS } from './schema.ts'

interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database` */
  readonly url: string
  /** Where the tables are; small letters, digits and `_`. Default `vivarium`. */
  readonly schema?: string
  /** Connections at once, beside the one for wake-ups. Default 6. */
  readonly connections?: number
}

const SWEEP_EVERY_MS = 10_000

/** Resolves when the database answers and the tables are there. */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const schema = options.schema ?? 'vivarium'
  if (!/^[a-z_][a-z0-9_]{0,50}$/.test(schema))
    throw new StoreError('input', `"${schema}" is not a valid schema name: use lower-case letters, digits and _`)
  const pg = await loadPg()
  const pool = pg.pool({ connectionString: options.url, max: options.connections ?? 6, allowExitOnIdle: true })
  // A connection that is lost while nobody uses it is the pool's to replace.
  pool.on('error', () => {})
  const watchers = new Watchers()
  const hints = new Hints(
    () => pg.client(options.url),
    schema,
    () => watchers.all(),
  )
  try {
    await migrate(pool, schema)
    await hints.start()
  } catch (error) {
    await Promise.allSettled([hints.close(), pool.end()])
    throw error instanceof StoreError ? error : unusable(options.url, error)
  }
  return new PostgresStore(pool, schema, watchers, hints)
}

/** By its address without user and password. Where a name has several addresses, what failed at each has no words as a whole. */
function unusable(url: string, error: unknown): StoreError {
  const { hostname, port, pathname } = new URL(url)
  const place = `postgres://${hostname}${port === '' ? '' : `:${port}`}${pathname}`
  const why =
    messageOf(error) || messageOf((error as { readonly errors?: readonly unknown[] }).errors?.[0] ?? 'it does not respond')
  const fix = 'Start the database, or correct its address, user and password'
  return new StoreError('failed', `The store ${place} cannot be opened: ${why}. ${fix}`, error)
}

interface Row {
  readonly key: string
  readonly value: string
  readonly version: string
  readonly expires: string | null
}

class PostgresStore implements Store {
  readonly #pool: Pool
  readonly #schema: string
  readonly #watchers: Watchers
  readonly #hints: Hints
  readonly #writer: PostgresWriter
  readonly #sweeping: NodeJS.Timeout
  #closing: Promise<void> | undefined

  constructor(pool: Pool, schema: string, watchers: Watchers, hints: Hints) {
    this.#pool = pool
    this.#schema = schema
    this.#watchers = watchers
    this.#hints = hints
    this.#writer = new PostgresWriter(pool, schema)
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_EVERY_MS)
    this.#sweeping.unref()
  }

  async get(key: string): Promise<Entry | undefined> {
    checkKey(key)
    const [row] = await this.#query<Row>('get', `SELECT * FROM ${this.#schema}.entries WHERE key = $1 AND ${this.#live}`, [key])
    return row === undefined ? undefined : entryOf(row)
  }

  async scan(prefix: string, { after, before, limit }: ScanOptions = {}): Promise<readonly Entry[]> {
    const { from, end } = scanBounds(prefix, after, before)
    const within = `key >= $1 AND ($2::text IS NULL OR key > $2) AND ${this.#live}`
    const start = [from, after ?? null, pageSize(limit)]
    // A bound that may be absent would not keep the walk over the index from going on to its end.
    const rows = await (end === undefined
      ? this.#query<Row>('scan-all', this.#scanText(within), start)
      : this.#query<Row>('scan', this.#scanText(`${within} AND key < $4`), [...start, end]))
    return rows.map(entryOf)
  }

  #scanText(where: string): string {
    return `SELECT * FROM ${this.#schema}.entries WHERE ${where} ORDER BY key LIMIT $3`
  }

  async read(log: string, { after = 0, limit }: ReadOptions = {}): Promise<readonly LogEntry[]> {
    checkKey(log, 'log')
    const rows = await this.#query<{ position: string; value: string }>(
      'read',
      `SELECT position, value FROM ${this.#schema}.log_entries WHERE log = $1 AND position > $2 ORDER BY position LIMIT $3`,
      [log, after, pageSize(limit)],
    )
    return rows.map(row => ({ position: Number(row.position), value: row.value }))
  }

  async commit(ops: readonly Op[]): Promise<Committed | Conflict> {
    this.#open()
    checkOps(ops)
    const outcome = await this.#writer.commit(ops)
    if (outcome.ok && ops.length > 0) {
      this.#watchers.changed(ops.map(op => ('log' in op ? op.log : op.key)))
      this.#hints.tell()
    }
    return outcome
  }

  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void> {
    return this.#watchers.watch(prefixes, signal)
  }

  close(): Promise<void> {
    clearInterval(this.#sweeping)
    this.#watchers.close()
    this.#closing ??= Promise.all([this.#hints.close(), this.#pool.end()]).then(() => {})
    return this.#closing
  }

  get #live(): string {
    return `(expires IS NULL OR expires > ${this.#schema}.now_ms())`
  }

  #open(): void {
    if (this.#closing !== undefined) throw new StoreError('closed', 'The store is closed: open it again')
  }

  async #query<R extends object>(name: string, text: string, values: unknown[]): Promise<R[]> {
    this.#open()
    try {
      return (await this.#pool.query<R>({ name: `vivarium-${name}`, text, values })).rows
    } catch (error) {
      throw new StoreError('failed', `Postgres could not read: ${messageOf(error)}`, error)
    }
  }

  #sweep(): void {
    const over = `SELECT key FROM ${this.#schema}.entries WHERE expires <= ${this.#schema}.now_ms() ORDER BY expires LIMIT 500`
    this.#pool
      .query(
        `DELETE FROM ${this.#schema}.entries WHERE key IN (${over} FOR UPDATE SKIP LOCKED) AND expires <= ${this.#schema}.now_ms()`,
      )
      .catch(() => {})
  }
}

function entryOf(row: Row): Entry {
  const entry = { key: row.key, value: row.value, version: Number(row.version) }
  return row.expires === null ? entry : { ...entry, expires: Number(row.expires) }
}

/** Brings the tables of one schema to this version, once, whoever of many processes comes first. */
async function migrate(pool: Pool, schema: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 7420))', [`vivarium migrates ${schema}`])
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await client.query(`SET LOCAL search_path TO ${schema}`)
    await client.query('CREATE TABLE IF NOT EXISTS migrations (version int PRIMARY KEY)')
    const { rows } = await client.query<{ version: number }>('SELECT coalesce(max(version), 0) AS version FROM migrations')
    const version = Number(rows[0]?.version)
    if (version > MIGRATIONS.length)
      throw new StoreError(
        'failed',
        `The tables have schema version ${version}; this version of Vivarium supports ${MIGRATIONS.length}. Update Vivarium`,
      )
    for (const [index, migration] of MIGRATIONS.entries()) {
      if (index < version) continue
      await client.query(migration)
      await client.query('INSERT INTO migrations VALUES ($1)', [index + 1])
    }
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}

// Wake-ups between processes: at most one notice without content every few milliseconds, on a connection of its own, so that
// no commit waits for it. A lost connection is opened again; what was missed meanwhile is a wake-up for everybody.

const GATHER_MS = 5
const AGAIN_MS = 500

/** Sends and hears the notifications by which processes on one database wake each other. */
export class Hints {
  readonly #open: () => Client
  readonly #channel: string
  readonly #woken: () => void
  #client: Client | undefined
  /** Its own notices come back too; they are told apart by the connection that sent them. */
  #pid: number | undefined
  #timer: NodeJS.Timeout | undefined
  #telling = false
  #again = false
  #closed = false

  constructor(open: () => Client, channel: string, woken: () => void) {
    this.#open = open
    this.#channel = channel
    this.#woken = woken
  }

  async start(): Promise<void> {
    const client = this.#open()
    client.on('notification', message => {
      if (message.processId !== this.#pid) this.#woken()
    })
    client.on('error', () => this.#lost(client))
    client.on('end', () => this.#lost(client))
    await client.connect()
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await client.query(`LISTEN ${this.#channel}`)
    this.#pid = rows[0]?.pid
    this.#client = client
    if (this.#closed) await client.end()
  }

  /** Something was committed here. */
  tell(): void {
    this.#again = true
    if (this.#timer !== undefined || this.#telling || this.#closed) return
    this.#timer = setTimeout(() => void this.#notify(), GATHER_MS)
    this.#timer.unref()
  }

  /** One at a time: a connection takes no second statement before the first has ended. */
  async #notify(): Promise<void> {
    this.#timer = undefined
    this.#telling = true
    this.#again = false
    await this.#client?.query(`NOTIFY ${this.#channel}`).catch(() => {})
    this.#telling = false
    if (this.#again) this.tell()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    await client?.end()
  }

  #lost(client: Client): void {
    if (this.#closed || this.#client !== client) return
    this.#client = undefined
    setTimeout(() => this.#reopen(), AGAIN_MS).unref()
  }

  #reopen(): void {
    if (this.#closed) return
    this.start().then(this.#woken, () => setTimeout(() => this.#reopen(), AGAIN_MS).unref())
  }
}

// Gathers commits that are asked for at the same time into one statement; each still stands or falls by itself.

/** Beyond these a group gains nothing, and would hold too many locks at once. */
const MOST_COMMITS = 64
const MOST_OPS = 1000
/** Groups under way at once: while one waits for its sync, the next is on its way. */
const WRITERS = 2
/** The database undid these by itself, so they can be sent again. */
const UNDONE = new Set(['40001', '40P01'])
const TRIES = 5
/** A commit of the group conflicted after its first step: each has to be able to fall by itself. */
const HALF_DONE = 'VV002'

interface Statement {
  readonly name: string
  readonly text: string
}

interface Waiting {
  readonly ops: readonly Op[]
  resolve(outcome: Committed | Conflict): void
  reject(error: unknown): void
}

class PostgresWriter {
  readonly #pool: Pool
  readonly #group: Statement
  readonly #each: Statement
  #queue: Waiting[] = []
  #writing = 0
  #planned = false

  constructor(pool: Pool, schema: string) {
    this.#pool = pool
    this.#group = { name: 'vivarium-group', text: `SELECT ${schema}.commit_group($1::jsonb) AS outcomes` }
    this.#each = { name: 'vivarium-commit', text: `SELECT ${schema}.commit_all($1::jsonb) AS outcomes` }
  }

  commit(ops: readonly Op[]): Promise<Committed | Conflict> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ ops, resolve, reject })
      this.#plan()
    })
  }

  /** What is asked in one turn goes together. */
  #plan(): void {
    if (this.#planned || this.#writing >= WRITERS || this.#queue.length === 0) return
    this.#planned = true
    setImmediate(() => {
      this.#planned = false
      void this.#write(this.#take())
      this.#plan()
    })
  }

  #take(): Waiting[] {
    let count = 0
    let ops = 0
    for (const waiting of this.#queue) {
      ops += waiting.ops.length
      if (count === MOST_COMMITS || (count > 0 && ops > MOST_OPS)) break
      count++
    }
    return this.#queue.splice(0, count)
  }

  async #write(group: readonly Waiting[]): Promise<void> {
    this.#writing++
    try {
      const outcomes = await this.#send(JSON.stringify(group.map(waiting => waiting.ops)))
      for (const [i, waiting] of group.entries()) waiting.resolve(outcomes[i] as Committed | Conflict)
    } catch (error) {
      const failed = new StoreError('failed', `Postgres could not commit: ${messageOf(error)}`, error)
      for (const waiting of group) waiting.reject(failed)
    } finally {
      this.#writing--
      this.#plan()
    }
  }

  async #send(commits: string): Promise<readonly (Committed | Conflict)[]> {
    let statement = this.#group
    for (let attempt = 1; ; attempt++) {
      try {
        const { rows } = await this.#pool.query<{ outcomes: (Committed | Conflict)[] }>({ ...statement, values: [commits] })
        return rows[0]?.outcomes ?? []
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : ''
        if (code === HALF_DONE) statement = this.#each
        else if (attempt === TRIES || !UNDONE.has(code)) throw error
      }
    }
  }
}
