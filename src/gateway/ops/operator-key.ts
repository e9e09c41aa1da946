/**
 * How whoever runs a gateway shows that to it over HTTP: by a key that lies on its store. Who can read the store can approve calls there
 * anyway; who merely reaches the listener, through whatever proxy, cannot.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { put, type Store } from '../../stores/store.ts'

/** Not `authorization`: that one may be passed on to an authorization server, which has no business with it. */
export const operatorHeader = 'vivarium-operator-key'
const key = 'gateway/operator-key'

/** Undefined where none was made yet. */
export async function readOperatorKey(store: Store): Promise<string | undefined> {
  return (await store.get(key))?.value
}

export async function isOperator(store: Store, shown: string | undefined): Promise<boolean> {
  if (shown === undefined) return false
  const kept = await readOperatorKey(store)
  return kept !== undefined && timingSafeEqual(hashOf(kept), hashOf(shown))
}

/** One for all who share the store. */
export async function makeOperatorKey(store: Store): Promise<void> {
  if ((await readOperatorKey(store)) !== undefined) return
  // Where another process was faster, its key counts.
  await store.commit([put(key, randomBytes(32).toString('base64url'), { ifAbsent: true })])
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
