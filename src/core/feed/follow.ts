/** Reading a feed as it grows. The store's hints only make it quick: without any it looks again by itself. */
import type { Position } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import type { Feed, FeedPage, PageOptions } from './feed.ts'

const lookEveryMs = 1_000

export async function* follow(
  feed: Feed,
  after: Position | undefined,
  signal: AbortSignal,
  options?: PageOptions,
): AsyncGenerator<FeedPage, void> {
  const ending = new AbortController()
  const hints = feed.store.watch([feed.log], AbortSignal.any([signal, ending.signal]))[Symbol.asyncIterator]()
  try {
    // Asked for before each reading, so that what comes while it is read is a hint for the next.
    let hint = hints.next()
    for (let cursor = after; !signal.aborted; ) {
      const page = await feed.read(cursor, options)
      cursor = page.cursor
      if (page.occurrences.length > 0 || page.truncated) yield page
      if (page.more) continue
      const found = await soon(feed.clock, hint)
      if (found?.done === true) return
      if (found !== undefined) hint = hints.next()
    }
  } finally {
    ending.abort()
  }
}

/** What was waited for, or undefined when it is time to look anyway. */
async function soon<T>(clock: Clock, awaited: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const cancel = clock.setTimeout(() => resolve(undefined), lookEveryMs, true)
  try {
    return await Promise.race([awaited, promise])
  } finally {
    cancel()
  }
}
