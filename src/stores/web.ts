/** The stores that need files, threads or sockets, in the build for browsers and Workers: each refuses, and names what there is instead. */
import type { Blobs } from './blobs.ts'
import { type Store, StoreError } from './store.ts'

/** Stands in for `sqlite/store.ts`. */
export async function sqliteStore(): Promise<Store> {
  throw needsNode('A sqlite: store needs', storeInstead)
}

/** Stands in for `sqlite/path.ts`. There is no path to check: the store refuses when it is opened. */
export function checkSqlitePath(): void {}

/** As above. */
export function checkSqliteFile(): void {}

/** Stands in for `postgres/store.ts`. */
export async function postgresStore(): Promise<Store> {
  throw needsNode('A postgres: store needs', storeInstead)
}

/** Stands in for `postgres/pg.ts`. There is no driver to load: the store refuses when it is opened. */
export async function loadPg(): Promise<void> {}

/** Stands in for `directory-blobs.ts`. */
export async function directoryBlobs(): Promise<Blobs> {
  throw needsNode('Blobs in a folder need', 'Use memoryBlobs(), or your own Blobs (vivarium/stores)')
}

const storeInstead = 'Use memory:, or your own Store (vivarium/stores)'

function needsNode(what: string, instead: string): StoreError {
  return new StoreError('input', `${what} Node, Bun or Deno; this is the build for browsers and Workers. ${instead}`)
}
