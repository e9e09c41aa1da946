/**
 * The layout of stream logs on a shared store: keys, records, and how events are packed into values. Keys contain digests of
 * session ids, because the id of a session is enough to use it.
 */

import { digestText } from '../../core/digest.ts'
import type { Store } from '../../stores/store.ts'
import type { LoggedEvent } from './stream-log.ts'

/** How a stream ended: with its answer, without one because none was due, or because its process died. */
export type Ending = 'answered' | 'ended' | 'gone'

/** What the store keeps about one stream. */
export interface StreamRecord {
  /** The id of the process that writes it. */
  readonly runner: string
  /** True for a GET stream for server messages; others end with an answer. */
  readonly listening: boolean
  /** What to send in place of the answer if that process dies before it. */
  readonly will?: string | undefined
  /** How it ended; absent while it is open. */
  readonly over?: Ending | undefined
}

/** The digest of a session id. */
export function sessionKey(session: string): Promise<string> {
  return digestText(`streams ${session}`)
}

/** The keys and prefixes of keys. `session` is the digest of a session id, `runner` the id of a process. */
export const keys = {
  /** Prefix of the records of a session. */
  records: (session: string) => `streams/${session}/`,
  /** The record of a stream. */
  record: (session: string, stream: string) => `streams/${session}/${stream}`,
  /** Prefix of the marks for streams of that process which other processes follow. */
  allFollowed: (runner: string) => `followed/${runner}/`,
  /** The mark for one followed stream. */
  followed: (runner: string, session: string, stream: string) => `followed/${runner}/${session}/${stream}`,
  /** Prefix of the events of a session. */
  allChunks: (session: string) => `streamed/${session}/`,
  /** Prefix of the events of a stream. */
  chunks: (session: string, stream: string) => `streamed/${session}/${stream}/`,
  /** One value of events; padded, so that keys sort by number. */
  chunk: (session: string, stream: string, ordinal: number) =>
    `streamed/${session}/${stream}/${String(ordinal).padStart(12, '0')}`,
}

/** Reads the record of a stream; undefined if there is none. */
export async function readRecord(store: Store, key: string): Promise<StreamRecord | undefined> {
  const entry = await store.get(key)
  return entry === undefined ? undefined : (JSON.parse(entry.value) as StreamRecord)
}

/** How many values are read at once: they may be long. */
export const pages = { limit: 100 }

// Events as values of a store: many short ones in one value, a long one in several, since the length of values is limited.

/** One value. */
interface Chunk {
  /** A line of JSON that lists the parts of events, then their texts. */
  readonly text: string
  /** Events that begin in it. */
  readonly events: number
  /** The number of the last event in it. */
  readonly last: number
}

/** The number of an event, the length of this part, its ordinal, and whether another part follows. */
type Part = readonly [number: number, length: number, ordinal: number, more: 0 | 1]

/** Characters in one value. */
const mostChars = 256 * 1024

/** Packs events into values. */
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
      // A surrogate pair is never split, so there must be room for two units.
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

/** Unpacks values in order. An event whose beginning was removed is left out. */
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
