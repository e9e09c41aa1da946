/** Gathers commits that are asked for at the same time into one statement; each still stands or falls by itself. */
import { type Committed, type Conflict, messageOf, type Op, StoreError } from '../store.ts'
import type { Pool } from './pg.ts'

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

export class PostgresWriter {
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
      const failed = new StoreError('failed', `Postgres refused a commit: ${messageOf(error)}`, error)
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
