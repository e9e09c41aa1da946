/**
 * What was said on kept streams, for readers that come back with a Last-Event-ID. An interface, so that a store can
 * stand behind it; in memory here, bounded in events, bytes and age.
 */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { byteLength } from './event.ts'
import type { Place } from './event-ids.ts'
import { httpLimits } from './limits.ts'
import type { Foreign } from './log-follower.ts'

export interface LoggedEvent {
  /** The number of the event in its stream, from 1, rising. */
  readonly number: number
  readonly frame: string
}

/** A reader sees every append that came before its read, also where both take time. */
export interface StreamLogs {
  append(session: string, stream: string, event: LoggedEvent): Awaitable<void>
  /** The events after that number which are still there, in order. */
  read(session: string, stream: string, after: number): Awaitable<readonly LoggedEvent[]>
  drop(session: string, stream: string): Awaitable<void>
  /** `forAll`: the session is over wherever it is served, not only here. */
  dropSession(session: string, forAll?: boolean): Awaitable<void>
  /** Called now and then: time to let go of what is too old. */
  sweep?(): void
}

/** What must be known of a stream elsewhere. */
export interface StreamFacts {
  /** Opened for what is said unasked; else it ends with an answer. */
  readonly listening: boolean
  /** What is to be said in the place of the answer if this process goes before it. */
  readonly will?: string | undefined
}

/** Logs that other processes read, so that a reader may come back to any of them. */
export interface SharedLogs extends StreamLogs {
  begin(session: string, stream: string, facts: StreamFacts): void
  end(session: string, stream: string, answered: boolean): void
  /** Streams of other processes in this session; none where nobody knows any of these places. */
  find(session: string, places: readonly Place[]): Promise<readonly Foreign[]>
  /** Whether another process tells it to a reader of its own. */
  isFollowed(session: string, stream: string): boolean
  /** A reader is back here: whoever else had it lets it go. */
  recall(session: string, stream: string): void
  /** Calls back when a reader of a stream of ours has come to another process. */
  onFollowed(fn: (session: string, stream: string) => void): void
  /** Writes what is left. What has not ended is said to be gone. */
  close(): Promise<void>
}

export interface MemoryLogOptions {
  readonly events?: number
  readonly bytes?: number
  readonly totalBytes?: number
  readonly ageMs?: number
  readonly now?: () => number
}

interface Entry extends LoggedEvent {
  readonly bytes: number
  readonly at: number
}

interface Log {
  entries: Entry[]
  bytes: number
}

export function memoryStreamLogs(options: MemoryLogOptions = {}): StreamLogs {
  return new MemoryStreamLogs(options)
}

class MemoryStreamLogs implements StreamLogs {
  readonly #sessions = new Map<string, Map<string, Log>>()
  readonly #events: number
  readonly #bytes: number
  readonly #totalBytes: number
  readonly #ageMs: number
  readonly #now: () => number
  #total = 0

  constructor(options: MemoryLogOptions) {
    this.#events = options.events ?? httpLimits.logEvents
    this.#bytes = options.bytes ?? httpLimits.logBytes
    this.#totalBytes = options.totalBytes ?? httpLimits.logTotal
    this.#ageMs = options.ageMs ?? httpLimits.retainMs
    this.#now = options.now ?? Date.now
  }

  append(session: string, stream: string, { number, frame }: LoggedEvent): void {
    const log = this.#open(session, stream)
    const entry = { number, frame, bytes: byteLength(frame), at: this.#now() }
    log.entries.push(entry)
    log.bytes += entry.bytes
    this.#total += entry.bytes
    // The newest event stays whatever its size: it may be the answer that someone comes back for.
    while (log.entries.length > 1 && (log.entries.length > this.#events || log.bytes > this.#bytes)) this.#shift(log)
    if (this.#total > this.#totalBytes) this.#makeRoom(log)
  }

  read(session: string, stream: string, after: number): readonly LoggedEvent[] {
    return (
      this.#sessions
        .get(session)
        ?.get(stream)
        ?.entries.filter(entry => entry.number > after) ?? []
    )
  }

  drop(session: string, stream: string): void {
    const streams = this.#sessions.get(session)
    const log = streams?.get(stream)
    if (streams === undefined || log === undefined) return
    this.#total -= log.bytes
    streams.delete(stream)
    if (streams.size === 0) this.#sessions.delete(session)
  }

  dropSession(session: string): void {
    for (const log of this.#sessions.get(session)?.values() ?? []) this.#total -= log.bytes
    this.#sessions.delete(session)
  }

  sweep(): void {
    const oldest = this.#now() - this.#ageMs
    for (const streams of this.#sessions.values()) {
      for (const log of streams.values()) {
        while (log.entries[0] !== undefined && log.entries[0].at < oldest) this.#shift(log)
      }
    }
  }

  #open(session: string, stream: string): Log {
    let streams = this.#sessions.get(session)
    if (streams === undefined) {
      streams = new Map()
      this.#sessions.set(session, streams)
    }
    let log = streams.get(stream)
    if (log === undefined) {
      log = { entries: [], bytes: 0 }
      streams.set(stream, log)
    }
    return log
  }

  #shift(log: Log): void {
    const bytes = log.entries.shift()?.bytes ?? 0
    log.bytes -= bytes
    this.#total -= bytes
  }

  /** Over the common bound, the streams opened first give way, before the one that is being written. */
  #makeRoom(spared: Log): void {
    for (const streams of this.#sessions.values()) {
      for (const log of streams.values()) {
        while (log !== spared && log.entries.length > 0) {
          this.#shift(log)
          if (this.#total <= this.#totalBytes) return
        }
      }
    }
    while (this.#total > this.#totalBytes && spared.entries.length > 1) this.#shift(spared)
  }
}
