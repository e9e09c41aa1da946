/** Where the streams of several processes lie on a store, and what is known of each. Under digests of session ids, because an id is all that a caller needs. */

import { digestText } from '../../core/digest.ts'
import type { Entry, Store } from '../../stores/store.ts'
import type { LoggedEvent } from './stream-log.ts'

/** How a stream came to its end: with its answer, without one because none is due, or in the midst of it. */
export type Ending = 'answered' | 'ended' | 'gone'

/** What the store keeps of one stream. */
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

// Events as a store keeps them: many short ones in one value, a long one in several, since values have a greatest length.

interface Chunk {
  /** A line that says which parts of which events follow, then their texts. */
  readonly text: string
  /** Events that begin in it. */
  readonly events: number
  /** The number of the last event in it. */
  readonly last: number
}

/** The number of an event, the length of what is here of it, the ordinal of this part, and whether another one follows. */
type Part = readonly [number: number, length: number, ordinal: number, more: 0 | 1]

/** Characters in one value. */
const mostChars = 256 * 1024

export function pack(events: readonly LoggedEvent[], most = mostChars): readonly Chunk[] {
  const chunks: Chunk[] = []
  let parts: Part[] = []
  let text = ''
  const flush = (): void => {
    const begun = parts.filter(([, , ordinal]) => ordinal === 0).length
    chunks.push({ text: `${JSON.stringify(parts)}\n${text}`, events: begun, last: parts.at(-1)?.[0] ?? 0 })
    parts = []
    text = ''
  }
  for (const { number, frame } of events) {
    for (let at = 0, ordinal = 0; at < frame.length || ordinal === 0; ordinal++) {
      // A pair of surrogates is not cut in two, so there must be room for one.
      if (text.length + 1 >= most) flush()
      const end = cut(frame, at + most - text.length)
      parts.push([number, end - at, ordinal, end < frame.length ? 1 : 0])
      text += frame.slice(at, end)
      at = end
    }
  }
  if (parts.length > 0) flush()
  return chunks
}

function cut(text: string, end: number): number {
  if (end >= text.length) return text.length
  const unit = text.charCodeAt(end - 1)
  return unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end
}

/** Reads chunks in their order. An event whose beginning was trimmed away is left out. */
export class Unpacker {
  #begun: { readonly number: number; readonly parts: number; readonly frame: string } | undefined = undefined

  take(chunk: string): readonly LoggedEvent[] {
    const line = chunk.indexOf('\n')
    const events: LoggedEvent[] = []
    let at = line + 1
    for (const [number, length, ordinal, more] of JSON.parse(chunk.slice(0, line)) as Part[]) {
      const text = chunk.slice(at, at + length)
      at += length
      const begun = this.#begun
      this.#begun = undefined
      if (ordinal > 0 && (begun?.number !== number || begun.parts !== ordinal)) continue
      const frame = ordinal === 0 ? text : `${begun?.frame}${text}`
      if (more === 1) this.#begun = { number, parts: ordinal + 1, frame }
      else events.push({ number, frame })
    }
    return events
  }
}
