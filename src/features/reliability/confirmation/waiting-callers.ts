/**
 * Which queued calls somebody still waits for: an entry with a short life for each waiting caller, on the store of the queue, so that every
 * process can tell whether an approval lets a call continue, or counts only for a repetition of it.
 */
import type { Clock } from '../../../core/clock.ts'
import { put, remove, type Store } from '../../../stores/store.ts'

const prefix = 'approval-callers/'
/** If the process of a caller ends without a word, the caller counts as gone after this time. */
const lifeMs = 30_000
const renewMs = 10_000

/**
 * Marks the call of this key as waited for, and calls `beat` now and again while it is. Returns the function that ends both: call it
 * when the caller waits no longer.
 */
export async function markWaiting(store: Store, clock: Clock, key: string, beat: () => void): Promise<() => Promise<void>> {
  const own = `${prefix}${key}/${crypto.randomUUID()}`
  const mark = async (): Promise<void> => {
    // A mark that cannot be written only makes the caller count as gone; the call itself looks at the queue.
    await store.commit([put(own, '1', { ttl: lifeMs })]).catch(() => {})
  }
  let ended = false
  let marking = mark()
  let cancel = (): void => {}
  const renew = (): void => {
    if (ended) return
    cancel = clock.setTimeout(
      () => {
        beat()
        marking = mark().then(renew)
      },
      renewMs,
      true,
    )
  }
  beat()
  await marking
  renew()
  return async () => {
    ended = true
    cancel()
    await marking
    await store.commit([remove(own)]).catch(() => {})
  }
}

/** The keys of the calls that somebody waits for: of all calls, or this one if somebody does. */
export async function keysWaitedFor(store: Store, key?: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  const under = key === undefined ? prefix : `${prefix}${key}/`
  for (let after: string | undefined; ; ) {
    const page = await store.scan(under, after === undefined ? {} : { after })
    for (const entry of page) found.add(entry.key.slice(prefix.length, entry.key.lastIndexOf('/')))
    after = page.at(-1)?.key
    if (after === undefined || page.length < 1_000) return found
  }
}
