/** Where there are no sockets to a database. */
import { type Store, StoreError } from '../store.ts'

export async function postgresStore(): Promise<Store> {
  throw new StoreError(
    'input',
    'A postgres: store needs Node, Bun or Deno, and this is the build for browsers and Workers. Use memory:, or give a Store of your own (vivarium/stores)',
  )
}
