/** Where there are no files and no threads. */
import { type Store, StoreError } from '../store.ts'

export async function sqliteStore(): Promise<Store> {
  throw new StoreError(
    'input',
    'A sqlite: store needs Node, Bun or Deno, and this is the build for browsers and Workers. Use memory:, or give a Store of your own (vivarium/stores)',
  )
}
