/**
 * Stream logs on a store that several processes share. Any process can serve a reader that reconnects: it replays what the
 * original process logged, follows what comes next, and reports if that process is gone. Stored as values with a time to live,
 * so that processes that die leave nothing behind.
 */
import { entriesUnder, remove, type Store } from '../../stores/store.ts'
import type { EventPosition } from './event.ts'
import { followMs, foreignStream, pollStore, type RemoteStream } from './log-follower.ts'
import { keys, pages, readRecord, sessionKey, Unpacker } from './log-records.ts'
import { LogWriter, type OwnStream, type StoreLogsOptions } from './log-writer.ts'
import type { LoggedEvent, SharedLogs, StreamFacts } from './stream-log.ts'

/** How long to look for an unknown event id: its stream may have started a moment ago in another process. */
const graceMs = 1_000
/** The delay before a failed watch is started again. */
const againMs = 1_000

/** Makes logs on a store. */
export function storeLogs(options: StoreLogsOptions): SharedLogs {
  return new StoreLogs(options)
}

/** The streams of this process, their writer, and the watch for other processes that follow them. */
class StoreLogs implements SharedLogs {
  readonly #options: StoreLogsOptions
  readonly #writer: LogWriter
  readonly #ending = new AbortController()
  /** The watch is running. */
  #watching = false
  /** Number of checks for followers so far. */
  #looks = 0
  /** Called when a reader of one of our streams has moved to another process. */
  #followed: (session: string, stream: string) => void = () => {}

  constructor(options: StoreLogsOptions) {
    this.#options = options
    this.#writer = new LogWriter(options)
  }

  begin(session: string, stream: string, facts: StreamFacts, account?: string): void {
    this.#writer.begin(session, stream, facts, account)
    if (!this.#watching) this.#watchFollowers()
  }

  append(session: string, stream: string, event: LoggedEvent): void {
    const own = this.#own(session, stream)
    if (own === undefined) return
    const lost = own.append(event, this.#options.limits)
    if (lost > 0) this.#options.failed(new Error(`${lost} events of a stream were not stored because the store is unavailable`))
    this.#writer.touch(own)
  }

  end(session: string, stream: string, answered: boolean): void {
    const own = this.#own(session, stream)
    if (own === undefined || own.over !== undefined) return
    own.over = answered ? 'answered' : 'ended'
    this.#writer.touch(own)
  }

  async read(session: string, stream: string, after: number): Promise<readonly LoggedEvent[]> {
    await this.#writer.settled()
    const { store } = await this.#writer.open()
    const unpacker = new Unpacker()
    const events: LoggedEvent[] = []
    for await (const { value } of entriesUnder(store, keys.chunks(await sessionKey(session), stream), pages))
      for (const event of unpacker.take(value)) if (event.number > after) events.push(event)
    return events
  }

  drop(session: string, stream: string): void {
    const streams = this.#writer.sessions.get(session)
    const own = streams?.get(stream)
    if (own === undefined) return
    streams?.delete(stream)
    if (streams?.size === 0) this.#writer.sessions.delete(session)
    this.#writer.drop(own)
  }

  async dropSession(session: string, forAll = false): Promise<void> {
    const owns = [...(this.#writer.sessions.get(session)?.values() ?? [])]
    this.#writer.sessions.delete(session)
    for (const own of owns) {
      if (forAll) this.#writer.drop(own)
      else {
        this.#leave(own)
        this.#writer.leave(own)
      }
    }
    if (!forAll) return
    await this.#writer.settled()
    const { store } = await this.#writer.open()
    const key = await sessionKey(session)
    const toDelete: string[] = []
    for (const prefix of [keys.records(key), keys.allChunks(key)])
      for await (const entry of entriesUnder(store, prefix, pages)) toDelete.push(entry.key)
    this.#writer.doom(toDelete)
  }

  sweep(): void {
    const now = this.#options.clock.now()
    this.#writer.expire()
    for (const own of this.#writer.all()) if (own.over === undefined && own.dueAt > 0 && own.dueAt <= now) this.#writer.touch(own)
  }

  async find(session: string, places: readonly EventPosition[]): Promise<readonly RemoteStream[]> {
    const { clock } = this.#options
    const { store, runners } = await this.#writer.open()
    const key = await sessionKey(session)
    const stop = new AbortController()
    const cancel = clock.setTimeout(() => stop.abort(), graceMs)
    const found: RemoteStream[] = []
    const look = async (): Promise<boolean> => {
      for (const place of places) {
        const record = await readRecord(store, keys.record(key, place.stream))
        if (record !== undefined) found.push(foreignStream({ store, clock, runners }, key, place, record))
      }
      if (found.length > 0) stop.abort()
      return false
    }
    try {
      await pollStore({ store, clock, prefixes: [keys.records(key)], signal: stop.signal, look })
    } finally {
      cancel()
    }
    return found
  }

  isFollowed(session: string, stream: string): boolean {
    return (this.#own(session, stream)?.followedUntil ?? 0) > this.#options.clock.now()
  }

  recall(session: string, stream: string): void {
    const own = this.#own(session, stream)
    if (own === undefined || own.key === '') return
    own.followedUntil = 0
    own.recalledIn = Number.POSITIVE_INFINITY
    this.#writer
      .open()
      .then(({ store, runners }) => store.commit([remove(keys.followed(runners.id, own.key, stream))]))
      .catch(this.#options.failed)
      .finally(() => {
        own.recalledIn = this.#looks
      })
  }

  onFollowed(fn: (session: string, stream: string) => void): void {
    this.#followed = fn
  }

  async close(): Promise<void> {
    this.#ending.abort()
    for (const own of this.#writer.all()) this.#leave(own)
    await this.#writer.close()
  }

  /** The stream is not continued by this process. */
  #leave(own: OwnStream): void {
    if (own.over !== undefined) return
    own.over = 'gone'
    this.#writer.touch(own)
  }

  #own(session: string, stream: string): OwnStream | undefined {
    return this.#writer.sessions.get(session)?.get(stream)
  }

  /** Watches which of our streams other processes follow. */
  #watchFollowers(): void {
    const { clock, failed } = this.#options
    const { signal } = this.#ending
    this.#watching = true
    const again = (error: unknown): void => {
      if (signal.aborted) return
      failed(error)
      clock.setTimeout(() => this.#watchFollowers(), againMs, true)
    }
    this.#writer
      .open()
      .then(({ store, runners }) => {
        const prefix = keys.allFollowed(runners.id)
        return pollStore({ store, clock, prefixes: [prefix], signal, look: () => this.#lookWhoFollows(store, prefix) })
      })
      .catch(again)
  }

  /** One check for marks of followers; true if there was a new one. */
  async #lookWhoFollows(store: Store, prefix: string): Promise<boolean> {
    if (this.#writer.sessions.size === 0) return false
    const look = ++this.#looks
    const now = this.#options.clock.now()
    const versions = new Map<string, number>()
    for await (const { key, version } of entriesUnder(store, prefix, pages)) versions.set(key.slice(prefix.length), version)
    let found = false
    for (const own of versions.size === 0 ? [] : this.#writer.all()) {
      const version = versions.get(`${own.key}/${own.id}`)
      if (version === undefined || version === own.followedVersion || own.recalledIn >= look) continue
      const anew = own.followedUntil <= now
      own.followedVersion = version
      own.followedUntil = now + followMs
      found = true
      if (anew) this.#followed(own.session, own.id)
    }
    return found
  }
}
