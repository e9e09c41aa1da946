/** Opens the store that a URL names; the driver is loaded then. */
import type { MemoryStoreOptions } from './memory.ts'
import { type Store, StoreError } from './store.ts'

/** Options of `openStore`. Options of other drivers are part of the address. */
export interface OpenOptions extends MemoryStoreOptions {
  /** Whether a SQLite file that does not exist is created. False for programs that only read: a wrong path is an error. Default true. */
  readonly create?: boolean
}

/**
 * Opens a store by its address: `memory:`, `sqlite:path/to/file.db` or `postgres://user@host/database?schema=name`.
 * @example const store = await openStore('memory:')
 */
export async function openStore(url: string, options: OpenOptions = {}): Promise<Store> {
  const now = options.now === undefined ? {} : { now: options.now }
  if (url === 'memory:') return (await import('./memory.ts')).memoryStore(options)
  if (url.startsWith('sqlite:')) {
    const path = sqlitePath(url)
    if (options.create === false) (await import('./sqlite/path.ts')).checkSqliteFile(path)
    return (await import('./sqlite/store.ts')).sqliteStore({ path, ...now })
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { postgresStore } = await import('./postgres/store.ts')
    if (!URL.canParse(url))
      throw new StoreError(
        'input',
        'The address of the postgres:// store is not a valid URL: write postgres://user:password@host:5432/database',
      )
    const address = new URL(url)
    const schema = address.searchParams.get('schema')
    address.searchParams.delete('schema')
    return postgresStore({ url: address.href, ...(schema !== null && { schema }) })
  }
  throw new StoreError('input', `"${url.slice(0, 20)}" is not the address of a store: use memory:, sqlite:path or postgres://…`)
}

/**
 * What can be said of a store before it is opened, and without opening it: that its driver is there, and a place for its file.
 * Throws a StoreError.
 */
export async function checkStoreUrl(url: string): Promise<void> {
  if (/^postgres(ql)?:\/\//.test(url)) await (await import('./postgres/pg.ts')).loadPg()
  else if (url.startsWith('sqlite:')) {
    const { checkSqlitePath } = await import('./sqlite/path.ts')
    checkSqlitePath(sqlitePath(url))
  }
}

function sqlitePath(url: string): string {
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
  if (path === '') throw new StoreError('input', 'sqlite: has no file name: write sqlite:path/to/file.db')
  return path
}
