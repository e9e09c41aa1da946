/** Brings the tables of one schema to this version, once, whoever of many processes comes first. */
import { StoreError } from '../store.ts'
import type { Pool } from './pg.ts'
import { MIGRATIONS } from './schema.ts'

export async function migrate(pool: Pool, schema: string): Promise<void> {
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
        `The tables were made by a later version (${version}, this one knows ${MIGRATIONS.length}). Update vivarium`,
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
