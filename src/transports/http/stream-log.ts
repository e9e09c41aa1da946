/**
 * The contract of the logs that replay events to readers which reconnect with a Last-Event-ID, and the implementation in
 * memory, bounded in events, bytes and age. `store-logs.ts` implements it on a shared store.
 */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { byteLength, type EventPosition } from './event.ts'
import { httpLimits } from './limits.ts'
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

/** The bounds of the log in memory. */
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
  readonly session: Session
  entries: Entry[]
  bytes: number
}

interface Session {
  readonly account: Account
  readonly streams: Map<string, Log>
  bytes: number
}

/** A user, or the network of anonymous callers. The limits apply to all of its sessions together. */
interface Account {
  readonly name: string
  readonly sessions: Set<Session>
  bytes: number
}

/** Logs in the memory of this process. */
export class MemoryStreamLogs implements StreamLogs {
  readonly #sessions = new Map<string, Session>()
  readonly #accounts = new Map<string, Account>()
  readonly #events: number
  readonly #bytes: number
  readonly #totalBytes: number
  readonly #ageMs: number
  readonly #now: () => number
  #total = 0

  constructor(options: MemoryLogOptions = {}) {
    this.#events = options.events ?? httpLimits.logEvents
    this.#bytes = options.bytes ?? httpLimits.logBytes
    this.#totalBytes = options.totalBytes ?? httpLimits.logTotal
    this.#ageMs = options.ageMs ?? httpLimits.retainMs
    this.#now = options.now ?? Date.now
  }

  append(session: string, stream: string, { number, frame }: LoggedEvent, account = `session ${session}`): void {
    const log = this.#open(session, stream, account)
    const entry = { number, frame, bytes: byteLength(frame), at: this.#now() }
    log.entries.push(entry)
    this.#weigh(log, entry.bytes)
    // The newest event stays, whatever its size: it may be the answer that the reader reconnects for.
    while (log.entries.length > 1 && (log.entries.length > this.#events || log.bytes > this.#bytes)) this.#shift(log)
    if (this.#total > this.#totalBytes) this.#makeRoom(log)
  }

  read(session: string, stream: string, after: number): readonly LoggedEvent[] {
    return (
      this.#sessions
        .get(session)
        ?.streams.get(stream)
        ?.entries.filter(entry => entry.number > after) ?? []
    )
  }

  drop(session: string, stream: string): void {
    const found = this.#sessions.get(session)
    const log = found?.streams.get(stream)
    if (found === undefined || log === undefined) return
    this.#weigh(log, -log.bytes)
    found.streams.delete(stream)
    if (found.streams.size === 0) this.dropSession(session)
  }

  dropSession(name: string): void {
    const session = this.#sessions.get(name)
    if (session === undefined) return
    const { account } = session
    this.#sessions.delete(name)
    account.sessions.delete(session)
    account.bytes -= session.bytes
    this.#total -= session.bytes
    if (account.sessions.size === 0) this.#accounts.delete(account.name)
  }

  sweep(): void {
    const oldest = this.#now() - this.#ageMs
    for (const { streams } of this.#sessions.values()) {
      for (const log of streams.values()) {
        while (log.entries[0] !== undefined && log.entries[0].at < oldest) this.#shift(log)
      }
    }
  }

  #open(name: string, stream: string, account: string): Log {
    const session = this.#sessions.get(name) ?? this.#begin(name, account)
    let log = session.streams.get(stream)
    if (log === undefined) {
      log = { session, entries: [], bytes: 0 }
      session.streams.set(stream, log)
    }
    return log
  }

  #begin(name: string, of: string): Session {
    const account = this.#accounts.get(of) ?? { name: of, sessions: new Set(), bytes: 0 }
    const session = { account, streams: new Map(), bytes: 0 }
    this.#accounts.set(of, account)
    this.#sessions.set(name, session)
    account.sessions.add(session)
    return session
  }

  #shift(log: Log): void {
    this.#weigh(log, -(log.entries.shift()?.bytes ?? 0))
  }

  #weigh(log: Log, bytes: number): void {
    log.bytes += bytes
    log.session.bytes += bytes
    log.session.account.bytes += bytes
    this.#total += bytes
  }

  /**
   * Above the total limit, the account with the most bytes loses events, first in its largest session. So nobody loses events
   * because of somebody who holds more.
   */
  #makeRoom(spared: Log): void {
    for (let session = this.#largest(); session !== undefined; session = this.#largest()) {
      const before = session.bytes
      // The stream being written comes last, and keeps its newest event.
      for (const log of session.streams.values()) if (log !== spared) this.#shed(log, 0)
      if (session === spared.session) this.#shed(spared, 1)
      if (this.#total <= this.#totalBytes || session.bytes === before) return
    }
  }

  #shed(log: Log, least: number): void {
    while (this.#total > this.#totalBytes && log.entries.length > least) this.#shift(log)
  }

  #largest(): Session | undefined {
    const account = most(this.#accounts.values())
    return account === undefined ? undefined : most(account.sessions)
  }
}

function most<T extends { readonly bytes: number }>(all: Iterable<T>): T | undefined {
  let found: T | undefined
  for (const each of all) if (each.bytes > (found?.bytes ?? 0)) found = each
  return found
}
