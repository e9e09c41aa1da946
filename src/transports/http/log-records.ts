/** Where the streams of several processes lie on a store, and what is known of each. Under digests of session ids, because an id is all that a caller needs. */
import { digestText } from '../../core/digest.ts'
import type { Entry, Store } from '../../stores/store.ts'

/** How a stream came to its end: with its answer, without one because none is due, or in the midst of it. */
export type Ending = 'answered' | 'ended' | 'gone'

export interface StreamRecord {
  /** The process that writes it. */
  readonly runner: string
  /** Opened for what is said unasked; else it ends with an answer. */
  readonly listening: boolean
  /** What is to be said in the place of the answer if that process goes before it. */
  readonly will?: string | undefined
  readonly over?: Ending | undefined
}

export function sessionKey(session: string): Promise<string> {
  return digestText(`streams ${session}`)
}

export const recordsOf = (sessionKey: string): string => `streams/${sessionKey}/`
export const recordKey = (sessionKey: string, stream: string): string => `${recordsOf(sessionKey)}${stream}`
/** A process puts a key here for each stream of that runner that it tells its own reader. */
export const followedBy = (runner: string): string => `followed/${runner}/`
export const followedKey = (runner: string, sessionKey: string, stream: string): string =>
  `${followedBy(runner)}${sessionKey}/${stream}`
export const chunksOfAll = (sessionKey: string): string => `streamed/${sessionKey}/`
export const chunksOf = (sessionKey: string, stream: string): string => `${chunksOfAll(sessionKey)}${stream}/`
export const chunkKey = (prefix: string, ordinal: number): string => `${prefix}${String(ordinal).padStart(12, '0')}`

export async function readRecord(store: Store, key: string): Promise<StreamRecord | undefined> {
  const entry = await store.get(key)
  return entry === undefined ? undefined : (JSON.parse(entry.value) as StreamRecord)
}

/** All that lies under a prefix, page by page. */
export async function* entriesUnder(store: Store, prefix: string, from?: string): AsyncGenerator<Entry> {
  for (let after = from; ; ) {
    const page = await store.scan(prefix, { limit: pageSize, ...(after === undefined ? {} : { after }) })
    yield* page
    after = page.at(-1)?.key
    if (page.length < pageSize) return
  }
}

const pageSize = 100
