/** The tables, and how a file of an earlier version becomes one of this. */
import type { DatabaseSync } from 'node:sqlite'

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
      `The file was written by a later version (its tables are version ${version}, this one knows ${MIGRATIONS.length}). Update vivarium`,
    )
  }
  for (const migration of MIGRATIONS.slice(version)) database.exec(migration)
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`)
  database.exec('COMMIT')
}
