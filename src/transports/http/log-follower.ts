/**
 * Follows a stream that another process writes to the shared store: reads the events since a given one, then new ones, until
 * the stream ends or its process is gone. Also holds the polling loop over a store that this and `store-logs.ts` use.
 */
import type { Clock } from '../../core/clock.ts'
import type { ProcessLeases } from '../../core/journal/process-leases.ts'
import { entriesUnder, put, remove, type Store } from '../../stores/store.ts'
import type { EventPosition } from './event.ts'
import { type Ending, keys, pages, readRecord, type StreamRecord, Unpacker } from './log-records.ts'
import type { LoggedEvent } from './stream-log.ts'

/** What a follower needs: the store, time, and which processes are alive. */
interface FollowerPort {
  readonly store: Store
  readonly clock: Clock
  readonly runners: ProcessLeases
}

/** Receives what is read. */
interface FollowerUser {
  event(event: LoggedEvent): void
  /** No more events follow. Called once, unless it was stopped before. */
  over(how: Ending): void
  /** Reading failed. */
  failed(): void
}

/** A stream of another process, for a reader that reconnected here. */
export interface RemoteStream extends EventPosition {
  readonly listening: boolean
  /** What to send in place of the answer if that process is gone. */
  readonly will: string | undefined
  /** Starts reading; returns a function that stops. */
  follow(user: FollowerUser): () => void
}

/** For this long the writer considers a stream followed, */
export const followMs = 15_000
/** unless the follower renews the mark, which it does this often. */
const tellEveryMs = 5_000

/** Makes the handle of a stream that another process writes. */
export function foreignStream(
  port: FollowerPort,
  session: string,
  place: EventPosition,
  { listening, will }: StreamRecord,
): RemoteStream {
  return {
    ...place,
    listening,
    will,
    follow: user => new Follower(port, session, place, user).run(),
  }
}

/** Reads one stream, and marks it as followed for its writer. */
class Follower {
  readonly #port: FollowerPort
  readonly #session: string
  readonly #stream: string
  readonly #user: FollowerUser
  readonly #stopping = new AbortController()
  readonly #unpacker = new Unpacker()
  /** The number of the last event passed on. */
  #seen: number
  /** The last key read. */
  #cursor: string | undefined = undefined
  /** When to renew the mark. */
  #tellAt = 0
  /** The key and version of the mark. */
  #told: readonly [key: string, version: number] | undefined = undefined

  constructor(port: FollowerPort, session: string, place: EventPosition, user: FollowerUser) {
    this.#port = port
    this.#session = session
    this.#stream = place.stream
    this.#seen = place.number
    this.#user = user
  }

  /** Starts reading; returns a function that stops. */
  run(): () => void {
    const { store, clock } = this.#port
    const prefixes = [keys.record(this.#session, this.#stream), keys.chunks(this.#session, this.#stream)]
    const { signal } = this.#stopping
    pollStore({ store, clock, prefixes, signal, look: () => this.#look() }).catch(() => {
      if (!signal.aborted) this.#user.failed()
    })
    return () => {
      if (signal.aborted) return
      this.#stopping.abort()
      this.#stopWatching()
    }
  }

  async #look(): Promise<boolean> {
    // The record is read before the events: if it says that the stream ended, all of its events are there to be read.
    const record = await this.#record()
    const found = await this.#read()
    if (record === undefined || record.over !== undefined) return this.#end(record?.over ?? 'ended')
    if (found || (await this.#port.runners.isAlive(record.runner))) {
      await this.#tell(record)
      return found
    }
    // The stream may have ended regularly between the first read and the exit of its process.
    const last = await this.#record()
    await this.#read()
    return this.#end(last?.over ?? 'gone')
  }

  #record(): Promise<StreamRecord | undefined> {
    return readRecord(this.#port.store, keys.record(this.#session, this.#stream))
  }

  /** Passes on new events; true if there were any. */
  async #read(): Promise<boolean> {
    let found = false
    const from = this.#cursor === undefined ? pages : { ...pages, after: this.#cursor }
    for await (const { key, value } of entriesUnder(this.#port.store, keys.chunks(this.#session, this.#stream), from)) {
      this.#cursor = key
      for (const event of this.#unpacker.take(value)) {
        if (event.number <= this.#seen || this.#stopping.signal.aborted) continue
        this.#seen = event.number
        this.#user.event(event)
        found = true
      }
    }
    return found
  }

  /** Renews the mark, so that the writer retains the stream. Throws if another follower has taken over. */
  async #tell({ runner }: StreamRecord): Promise<void> {
    const { store, clock } = this.#port
    if (clock.now() < this.#tellAt) return
    this.#tellAt = clock.now() + tellEveryMs
    const unchanged = this.#told === undefined ? {} : { ifVersion: this.#told[1] }
    const key = keys.followed(runner, this.#session, this.#stream)
    const outcome = await store.commit([put(key, '', { ...unchanged, ttl: followMs })])
    if (!outcome.ok) throw new Error('Another reader has resumed the stream')
    this.#told = [key, outcome.results[0]?.version ?? 0]
    if (this.#stopping.signal.aborted) this.#stopWatching()
  }

  /** Removes the mark. If that fails, it expires. */
  #stopWatching(): void {
    const [key, version] = this.#told ?? []
    if (key !== undefined) this.#port.store.commit([remove(key, version)]).catch(() => {})
  }

  #end(how: Ending): boolean {
    if (this.#stopping.signal.aborted) return false
    this.#stopping.abort()
    this.#user.over(how)
    return false
  }
}

// Polls a store when it signals a change, and once a second without a signal: signals may concern other keys, and may get lost.

/** What to watch, and what to do at each change. */
interface StorePollOptions {
  readonly store: Store
  readonly clock: Clock
  readonly prefixes: readonly string[]
  readonly signal: AbortSignal
  /** Checks for news; true if there was something new. */
  readonly look: () => Promise<boolean>
}

const everyMs = 1_000
/**
 * After signals that brought nothing new the next check is delayed, longer each time: on a busy store most signals concern
 * other readers.
 */
const leastGapMs = 10
const mostGapMs = 200

/** Calls `look` at once and then repeatedly, until the signal aborts. Rejects when `look` does. */
export async function pollStore({ store, clock, prefixes, signal, look }: StorePollOptions): Promise<void> {
  const watching = new AbortController()
  const end = (): void => watching.abort()
  signal.addEventListener('abort', end)
  const hints = store.watch(prefixes, watching.signal)[Symbol.asyncIterator]()
  let hint = next(hints)
  let gapMs = 0
  try {
    while (!signal.aborted) {
      gapMs = (await look()) ? 0 : Math.min(Math.max(gapMs * 2, leastGapMs), mostGapMs)
      if (!(await within(clock, signal, everyMs, hint))) continue
      hint = next(hints)
      if (gapMs > leastGapMs) await within(clock, signal, gapMs)
    }
  } finally {
    signal.removeEventListener('abort', end)
    end()
  }
}

/** The next signal; never settles once the watch has ended. */
async function next(hints: AsyncIterator<void>): Promise<void> {
  if ((await hints.next()).done === true) await new Promise(() => {})
}

/** Whether `coming` settled in time; without it, a plain delay. */
function within(clock: Clock, signal: AbortSignal, ms: number, coming?: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const settle = (came: boolean): void => {
      cancel()
      signal.removeEventListener('abort', aborted)
      resolve(came)
    }
    const aborted = (): void => settle(false)
    const cancel = clock.setTimeout(() => settle(false), ms, true)
    signal.addEventListener('abort', aborted)
    coming?.then(() => settle(true), reject)
    if (signal.aborted) aborted()
  })
}
