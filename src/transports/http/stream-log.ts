/**
 * What was said on kept streams, for readers that come back with a Last-Event-ID. An interface, so that a store can
 * stand behind it; in memory here, bounded in events, bytes and age.
 */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { byteLength, type StreamPlace } from './event.ts'
import { httpLimits } from './limits.ts'
import type { Foreign } from './log-follower.ts'

export interface LoggedEvent {
  /** The number of the event in its stream, from 1, rising. */
  readonly number: number
  readonly frame: string
}

/** A reader sees every append that came before its read, also where both take time. */
export interface StreamLogs {
  /** `account`: in whose share it counts; without one the session is an account of its own. */
  append(session: string, stream: string, event: LoggedEvent, account?: string): Awaitable<void>
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
  begin(session: string, stream: string, facts: StreamFacts, account?: string): void
  end(session: string, stream: string, answered: boolean): void
  /** Streams of other processes in this session; none where nobody knows any of these places. */
  find(session: string, places: readonly StreamPlace[]): Promise<readonly Foreign[]>
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
  readonly session: Session
  entries: Entry[]
  bytes: number
}

interface Session {
  readonly account: Account
  readonly streams: Map<string, Log>
  bytes: number
}

/** A user, or the network of callers who did not sign in: what all its sessions hold gives way together. */
interface Account {
  readonly name: string
  readonly sessions: Set<Session>
  bytes: number
}

/** Keeps the events of streams in the memory of this process. */
export function memoryStreamLogs(options: MemoryLogOptions = {}): StreamLogs {
  return new MemoryStreamLogs(options)
}

class MemoryStreamLogs implements StreamLogs {
  readonly #sessions = new Map<string, Session>()
  readonly #accounts = new Map<string, Account>()
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

  append(session: string, stream: string, { number, frame }: LoggedEvent, account = `session ${session}`): void {
    const log = this.#open(session, stream, account)
    const entry = { number, frame, bytes: byteLength(frame), at: this.#now() }
    log.entries.push(entry)
    this.#weigh(log, entry.bytes)
    // The newest event stays whatever its size: it may be the answer that someone comes back for.
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
   * Over the common bound the account that has the most gives way, and of its sessions the one that has the most: however many streams
   * grow at once, nobody loses what its readers may come back for because of somebody who holds more.
   */
  #makeRoom(spared: Log): void {
    for (let session = this.#largest(); session !== undefined; session = this.#largest()) {
      const before = session.bytes
      // The one that is being written last, and its newest event not at all.
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
