/** The parts of the OAuth client that need files or a listener, in the build for browsers and Workers: each refuses, and names what there is instead. */
import { needsNode } from '../../core/web.ts'

/** Stands in for `file-storage.ts`: there are no files. */
export function openFileStorage(): never {
  throw needsNode('fileStorage', 'Use memoryStorage(), or give oauth your own storage: { get, set, delete }')
}

/** Stands in for `loopback.ts`: nothing can be listened on, so the user cannot be sent back to this machine. */
export function openLoopback(): never {
  throw needsNode(
    'cli(), which waits for the user on 127.0.0.1,',
    'Give oauth your own browser, { redirectUri, authorize }: open the address in a window, and return the address of the callback',
  )
}
