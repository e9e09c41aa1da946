/**
 * The contract of the logs that replay events to readers which reconnect with a Last-Event-ID, and the implementation in
 * memory. `store-logs.ts` implements it on a shared store; `log-bounds.ts` says for both what is kept.
 */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { byteLength, type EventPosition } from './event.ts'
import { type HttpLimits, httpLimits } from './limits.ts'
import { LogBounds, type LogPart } from './log-bounds.ts'
import type { RemoteStream } from './log-follower.ts'

/** One event of a stream. */
export interface LoggedEvent {
  /** The number of the event in its stream, rising from 1. */
  readonly number: number
  readonly frame: string
}

/** Logs of resumable streams. A read sees every append that came before it, even if both are asynchronous. */
export interface StreamLogs {
  /** Adds an event. `account`: who its bytes are charged to; by default each session is an account of its own. */
  append(session: string, stream: string, event: LoggedEvent, account?: string): Awaitable<void>
  /** The retained events after that number, in order. */
  read(session: string, stream: string, after: number): Awaitable<readonly LoggedEvent[]>
  drop(session: string, stream: string): Awaitable<void>
  /** Forgets a session. `forAll`: in all processes, not only here. */
  dropSession(session: string, forAll?: boolean): Awaitable<void>
  /** Called periodically, to discard what is too old. */
  sweep?(): void
}

/** What other processes must know about a stream. */
export interface StreamFacts {
  /** True for a GET stream for server messages; others end with an answer. */
  readonly listening: boolean
  /** What to send in place of the answer if this process dies before it. */
  readonly will?: string | undefined
}

/** Logs that several processes share, so that a reader can reconnect to any of them. */
export interface SharedLogs extends StreamLogs {
  /** A stream has become resumable. */
  begin(session: string, stream: string, facts: StreamFacts, account?: string): void
  /** A stream has ended. */
  end(session: string, stream: string, answered: boolean): void
  /** Streams of other processes at these positions; empty if none is known. */
  find(session: string, places: readonly EventPosition[]): Promise<readonly RemoteStream[]>
  /** Whether another process serves its reader. */
  isFollowed(session: string, stream: string): boolean
  /** The reader is back here: any other process that served it stops. */
  recall(session: string, stream: string): void
  /** Calls back when a reader of our streams has moved to another process. */
  onFollowed(fn: (session: string, stream: string) => void): void
  /** Writes what is left. Streams that have not ended are marked as gone. */
  close(): Promise<void>
}

interface Entry extends LoggedEvent, LogPart {}

/** Logs in the memory of this process. */
export class MemoryStreamLogs implements StreamLogs {
  readonly #bounds: LogBounds<Entry>
  readonly #retainMs: number
  readonly #now: () => number

  constructor(limits: Partial<HttpLimits> = {}, now: () => number = Date.now) {
    const all = { ...httpLimits, ...limits }
    this.#bounds = new LogBounds(all)
    this.#retainMs = all.retainMs
    this.#now = now
  }

  append(session: string, stream: string, { number, frame }: LoggedEvent, account?: string): void {
    const log = this.#bounds.open(session, stream, account)
    const bytes = byteLength(frame)
    this.#bounds.freeCapacity(log, bytes, 1)
    this.#bounds.add(log, { number, frame, bytes, events: 1, last: number, at: this.#now() })
  }

  read(session: string, stream: string, after: number): readonly LoggedEvent[] {
    return this.#bounds.get(session, stream)?.parts.filter(({ number }) => number > after) ?? []
  }

  drop(session: string, stream: string): void {
    const log = this.#bounds.get(session, stream)
    if (log !== undefined) this.#bounds.drop(log)
  }

  dropSession(session: string): void {
    this.#bounds.dropSession(session)
  }

  sweep(): void {
    this.#bounds.expire(this.#now() - this.#retainMs)
  }
}
