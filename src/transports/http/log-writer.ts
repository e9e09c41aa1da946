/**
 * Writes the events of resumable streams to the shared store, and removes what exceeds the limits. One commit at a time, with
 * everything that was logged meanwhile, so that many streams cost no more commits than one.
 */

import type { Cancel, Clock } from '../../core/clock.ts'
import type { ProcessLeases } from '../../core/journal/process-leases.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import { byteLength } from './event.ts'
import type { HttpLimits } from './limits.ts'
import { type BoundedLog, LogBounds, type LogPart } from './log-bounds.ts'
import { type Ending, keys, pack, type StreamRecord, sessionKey } from './log-records.ts'
import type { LoggedEvent, StreamFacts } from './stream-log.ts'

/** The store, the limits, and which processes are alive. */
export interface StoreLogsOptions {
  readonly store: () => Promise<Store>
  /** The registry of processes that are alive. */
  readonly runners: () => Promise<ProcessLeases>
  readonly clock: Clock
  readonly limits: HttpLimits
  /** Reports failures of the store; operations are retried. */
  readonly failed: (error: unknown) => void
}

const againMs = 1_000
/** The most operations in one commit. */
const mostSteps = 400

/** The streams that this process writes: collects their changes and commits them. */
export class LogWriter {
  /** By session and id. */
  readonly sessions = new Map<string, Map<string, OwnStream>>()
  readonly #options: StoreLogsOptions
  /** Streams with something to write. */
  readonly #dirty = new Set<OwnStream>()
  /** Keys to remove. */
  readonly #toDelete: string[] = []
  /** What these streams have on the store. */
  readonly #bounds: LogBounds<StoredValue>
  #flushing: Promise<void> | undefined = undefined
  /** The retry after a failed commit. */
  #again: Cancel | undefined = undefined
  #closed = false

  constructor(options: StoreLogsOptions) {
    this.#options = options
    this.#bounds = new LogBounds(options.limits, ({ key }) => this.#toDelete.push(key))
  }

  /** Takes up a stream. */
  begin(session: string, stream: string, facts: StreamFacts, account?: string): void {
    const own = new OwnStream(this.#bounds.open(session, stream, account), facts)
    const streams = this.sessions.get(session) ?? new Map<string, OwnStream>()
    this.sessions.set(session, streams.set(stream, own))
    this.touch(own)
  }

  *all(): Generator<OwnStream> {
    for (const streams of this.sessions.values()) yield* streams.values()
  }

  async open(): Promise<{ readonly store: Store; readonly runners: ProcessLeases }> {
    const [store, runners] = await Promise.all([this.#options.store(), this.#options.runners()])
    return { store, runners }
  }

  /** Schedules a stream for the next commit. */
  touch(own: OwnStream): void {
    if (this.#closed) return
    this.#dirty.add(own)
    this.#wake()
  }

  /** Removes everything of a stream from the store. */
  drop(own: OwnStream): void {
    own.dropped = true
    this.#dirty.delete(own)
    this.#toDelete.push(...own.log.parts.map(({ key }) => key))
    this.#bounds.drop(own.log)
    if (own.key !== '') this.#toDelete.push(keys.record(own.key, own.id))
    if (own.held) this.open().then(({ runners }) => runners.release(), this.#options.failed)
    own.held = false
    this.#wake()
  }

  /** The stream stays on the store until it expires, and no longer counts: this process cannot remove parts of it any more. */
  leave(own: OwnStream): void {
    own.left = true
    this.#bounds.drop(own.log)
  }

  /** Counts no more what has expired. The store removes it by itself. */
  expire(): void {
    this.#bounds.expire(this.#options.clock.now() - this.#options.limits.retainMs)
  }

  /** Removes these keys, whichever process wrote them. */
  doom(keys: readonly string[]): void {
    this.#toDelete.push(...keys)
    this.#wake()
  }

  /** Resolves when everything logged before is committed, or its commit has failed. */
  async settled(): Promise<void> {
    await this.#flushing
  }

  /** Commits what is left, then accepts nothing more. */
  async close(): Promise<void> {
    this.#again?.()
    await this.#flushing
    if (this.#dirty.size > 0 || this.#toDelete.length > 0) await this.#flush()
    this.#closed = true
    this.#again?.()
  }

  /** Starts a commit in a microtask, unless one is running or waits for a retry. */
  #wake(): void {
    if (this.#again === undefined && !this.#closed) this.#flushing ??= Promise.resolve().then(() => this.#flush())
  }

  async #flush(): Promise<void> {
    try {
      const { store, runners } = await this.open()
      while (this.#dirty.size > 0 || this.#toDelete.length > 0) await this.#commit(store, runners)
    } catch (error) {
      this.#options.failed(error)
      this.#again = this.#options.clock.setTimeout(() => this.#retry(), againMs, true)
    } finally {
      this.#flushing = undefined
    }
  }

  #retry(): void {
    this.#again = undefined
    this.#wake()
  }

  /** One commit: new events of as many streams as fit, and removals. */
  async #commit(store: Store, runners: ProcessLeases): Promise<void> {
    const { clock, limits } = this.#options
    const ops: Op[] = []
    const plans: CommitPlan[] = []
    for (const own of [...this.#dirty]) {
      if (own.key === '') own.key = await sessionKey(own.session)
      if (!own.held && own.over === undefined) {
        own.held = true
        await runners.hold()
      }
      const plan = own.plan(runners.id, clock.now(), limits.retainMs)
      if (ops.length > 0 && ops.length + plan.ops.length > mostSteps) break
      ops.push(...plan.ops)
      plans.push(plan)
      if (plan.added.length > 0 && !own.left) this.#bounds.freeCapacity(own.log, plan.bytes, plan.events)
    }
    const toDelete = this.#toDelete.slice(0, mostSteps)
    await store.commit([...ops, ...toDelete.map(key => remove(key))])
    this.#toDelete.splice(0, toDelete.length)
    for (const plan of plans) this.#done(plan, runners)
  }

  /** Updates the counts after a commit. */
  #done(plan: CommitPlan, runners: ProcessLeases): void {
    const { own, over } = plan
    // The stream was dropped while the commit was running.
    if (own.dropped) return this.doom([keys.record(own.key, own.id), ...plan.added.map(({ key }) => key)])
    if (!own.left) for (const part of plan.added) this.#bounds.add(own.log, part)
    own.dueAt = this.#options.clock.now() + this.#options.limits.retainMs / 2
    if (own.done(plan)) this.#dirty.delete(own)
    if (over === undefined || !own.held) return
    own.held = false
    runners.release()
  }
}

// The state of one stream that this process writes: events that wait, and the values of it on the store.

/** One value on the store. */
interface StoredValue extends LogPart {
  readonly key: string
}

/** What one commit writes of a stream. */
interface CommitPlan {
  readonly own: OwnStream
  readonly ops: readonly Op[]
  readonly added: readonly StoredValue[]
  readonly bytes: number
  readonly events: number
  /** The number of the last event that it writes. */
  readonly through: number
  readonly over: Ending | undefined
}

/** A stream that this process writes. */
export class OwnStream {
  readonly session: string
  readonly id: string
  readonly facts: StreamFacts
  /** What of it is on the store. */
  readonly log: BoundedLog<StoredValue>
  /** The digest of its session, known from the first commit on. */
  key = ''
  /** How it ended; undefined while it is open. */
  over: Ending | undefined = undefined
  /** Nothing of it is kept any more. */
  dropped = false
  /** This process no longer serves its session. */
  left = false
  /** Until when another process is known to serve its reader. */
  followedUntil = 0
  /** The version of the mark that said so. */
  followedVersion = 0
  /** Its reader came back to this process: marks seen up to this check are outdated. */
  recalledIn = 0
  /** This process is registered as alive on its behalf. */
  held = false
  /** When its record must be renewed, so that it does not expire. */
  dueAt = 0
  /** Events that are not committed yet. */
  #waiting: LoggedEvent[] = []
  #waitingBytes = 0
  /** The number of the next value. */
  #ordinal = 0

  constructor(log: BoundedLog<StoredValue>, facts: StreamFacts) {
    this.log = log
    this.session = log.session.name
    this.id = log.stream
    this.facts = facts
  }

  /** Adds an event; returns how many old ones were lost because the store has accepted nothing for too long. */
  append(event: LoggedEvent, { logEvents, logBytes }: HttpLimits): number {
    this.#waiting.push(event)
    this.#waitingBytes += byteLength(event.frame)
    let lost = 0
    while (this.#waiting.length > 1 && (this.#waiting.length > logEvents || this.#waitingBytes > logBytes)) {
      this.#waitingBytes -= byteLength(this.#waiting.shift()?.frame ?? '')
      lost++
    }
    return lost
  }

  /** The operations that write the waiting events and the record. */
  plan(runner: string, now: number, ttl: number): CommitPlan {
    const chunks = pack(this.#waiting)
    const added = chunks.map(({ text, events, last }, index) => {
      return { key: keys.chunk(this.key, this.id, this.#ordinal + index), bytes: byteLength(text), events, last, at: now }
    })
    const { over, facts } = this
    const record: StreamRecord = { runner, ...facts, ...(over === undefined ? {} : { over }) }
    const ops = [put(keys.record(this.key, this.id), JSON.stringify(record), { ttl })]
    for (const [index, { text }] of chunks.entries()) ops.push(put(added[index]?.key ?? '', text, { ttl }))
    const bytes = added.reduce((sum, chunk) => sum + chunk.bytes, 0)
    return { own: this, ops, added, bytes, events: this.#waiting.length, through: this.#waiting.at(-1)?.number ?? 0, over }
  }

  /** The plan is committed. True if nothing was added since. */
  done({ added, through, over }: CommitPlan): boolean {
    this.#waiting = this.#waiting.filter(({ number }) => number > through)
    this.#waitingBytes = this.#waiting.reduce((sum, { frame }) => sum + byteLength(frame), 0)
    this.#ordinal += added.length
    return this.#waiting.length === 0 && this.over === over
  }
}
