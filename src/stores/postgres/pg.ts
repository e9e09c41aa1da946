/** The only place that knows `pg`, an optional peer: loaded when a Postgres store is opened. */
import type { Client, Pool, PoolConfig } from 'pg'
import { StoreError } from '../store.ts'

export type { Client, Pool }

/** Loads the optional package `pg`, or says how to install it. */
export async function loadPg(): Promise<{ pool(config: PoolConfig): Pool; client(url: string): Client }> {
  try {
    const { default: pg } = await import('pg')
    return { pool: config => new pg.Pool(config), client: url => new pg.Client({ connectionString: url }) }
  } catch (error) {
    // That it is not found says nothing more, and would be printed as a second stack.
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
    throw new StoreError(
      'input',
      'A store at postgres:// needs the package pg, which is not installed. Run npm install pg',
      isMissing ? undefined : error,
    )
  }
}
