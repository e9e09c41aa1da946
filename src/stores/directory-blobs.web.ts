/** Where there are no folders. */
import type { Blobs } from './blobs.ts'
import { StoreError } from './store.ts'

export async function directoryBlobs(): Promise<Blobs> {
  throw new StoreError(
    'input',
    'Blobs in a folder need Node, Bun or Deno, and this is the build for browsers and Workers. Use memoryBlobs(), or give Blobs of your own (vivarium/stores)',
  )
}
