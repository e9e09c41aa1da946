/** Reads what another process says on a stream of its own: what was said since, what follows, and how it ends. */
import type { Clock } from '../../core/clock.ts'
import type { Runners } from '../../core/journal/runners.ts'
import { put, remove, type Store } from '../../stores/store.ts'
import type { StreamPlace } from './event.ts'
import {
  chunksOf,
  type Ending,
  entriesUnder,
  followedKey,
  readRecord,
  recordKey,
  type StreamRecord,
  Unpacker,
} from './log-records.ts'
import type { LoggedEvent } from './stream-log.ts'

interface FollowerPort {
  readonly store: Store
  readonly clock: Clock
  readonly runners: Runners
}

/** Hears what is read. */
interface FollowerUser {
  event(event: LoggedEvent): void
  /** Nothing more will come. Called once, unless it was stopped before. */
  over(how: Ending): void
  /** It could not be read on. */
  failed(): void
}

/** A stream of another process that a reader has come back to. */
export interface Foreign extends StreamPlace {
  readonly listening: boolean
  readonly will: string | undefined
  /** Gives a function that stops. */
  follow(user: FollowerUser): () => void
}

/** For so long its writer takes a stream for followed, */
export const followMs = 15_000
/** unless it is told again. */
const tellEveryMs = 5_000

export function foreignStream(
  port: FollowerPort,
  session: string,
  place: StreamPlace,
  { listening, will }: StreamRecord,
): Foreign {
  return {
    ...place,
    listening,
    will,
    follow: user => {
      const follower = new Follower(port, session, place, user)
      follower.run()
      return () => follower.stop()
    },
  }
}

class Follower {
  readonly #port: FollowerPort
  readonly #session: string
  readonly #stream: string
  readonly #user: FollowerUser
  readonly #stopping = new AbortController()
  readonly #unpacker = new Unpacker()
  /** The last event that was passed on, */
  #seen: number
  /** and the last key that was read. */
  #cursor: string | undefined = undefined
  #tellAt = 0
  /** The key under which its writer was told, and the version of that. */
  #told: readonly [key: string, version: number] | undefined = undefined

  constructor(port: FollowerPort, session: string, place: StreamPlace, user: FollowerUser) {
    this.#port = port
    this.#session = session
    this.#stream = place.stream
    this.#seen = place.number
    this.#user = user
  }

  run(): void {
    const { store, clock } = this.#port
    const prefixes = [recordKey(this.#session, this.#stream), chunksOf(this.#session, this.#stream)]
    const { signal } = this.#stopping
    pollStore({ store, clock, prefixes, signal, look: () => this.#look() }).catch(() => {
      if (!signal.aborted) this.#user.failed()
    })
  }

  stop(): void {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort()
    this.#untell()
  }

  async #look(): Promise<boolean> {
    // The record first: what was written before an end that it tells of is then there to be read.
    const record = await this.#record()
    const found = await this.#read()
    if (record === undefined || record.over !== undefined) return this.#end(record?.over ?? 'ended')
    if (found || (await this.#port.runners.isAlive(record.runner))) {
      await this.#tell(record)
      return found
    }
    // It may have ended in good order after it was looked at, and before it went.
    const last = await this.#record()
    await this.#read()
    return this.#end(last?.over ?? 'gone')
  }

  #record(): Promise<StreamRecord | undefined> {
    return readRecord(this.#port.store, recordKey(this.#session, this.#stream))
  }

  async #read(): Promise<boolean> {
    let found = false
    for await (const { key, value } of entriesUnder(this.#port.store, chunksOf(this.#session, this.#stream), this.#cursor)) {
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

  /** Whoever writes it keeps it while somebody hears it; where another has become its reader since, this one is let go. */
  async #tell({ runner }: StreamRecord): Promise<void> {
    const { store, clock } = this.#port
    if (clock.now() < this.#tellAt) return
    this.#tellAt = clock.now() + tellEveryMs
    const unchanged = this.#told === undefined ? {} : { ifVersion: this.#told[1] }
    const key = followedKey(runner, this.#session, this.#stream)
    const outcome = await store.commit([put(key, '', { ...unchanged, ttl: followMs })])
    if (!outcome.ok) throw new Error('Another reader has taken the stream up')
    this.#told = [key, outcome.results[0]?.version ?? 0]
    if (this.#stopping.signal.aborted) this.#untell()
  }

  /** Else it would be taken for followed for a while; if this fails, it is. */
  #untell(): void {
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

// Looking again whenever a store hints at a change, and now and then without a hint: hints may be for others, and may get lost.

interface StorePollOptions {
  readonly store: Store
  readonly clock: Clock
  readonly prefixes: readonly string[]
  readonly signal: AbortSignal
  /** True when there was something new. */
  readonly look: () => Promise<boolean>
}

const everyMs = 1_000
/** After hints that brought nothing the next one waits, longer each time: where many write, most hints are for others. */
const leastGapMs = 10
const mostGapMs = 200

/** Looks at once and then again and again, until the signal. Rejects when a look does. */
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

/** Never, once there are no more. */
async function next(hints: AsyncIterator<void>): Promise<void> {
  if ((await hints.next()).done === true) await new Promise(() => {})
}

/** Whether it came in time; without it, just the time. */
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
