/**
 * Writes the events of resumable streams to the shared store, and removes what exceeds the limits. One commit at a time, with
 * everything that was logged meanwhile, so that many streams cost no more commits than one.
 */

import type { Cancel, Clock } from '../../core/clock.ts'
import type { ProcessLeases } from '../../core/journal/process-leases.ts'
import { Tally } from '../../core/occupancy.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import { byteLength } from './event.ts'
import type { HttpLimits } from './limits.ts'
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
  readonly #doomed: string[] = []
  /** Bytes on the store that count towards `logTotal`. */
  #bytes = 0
  #flushing: Promise<void> | undefined = undefined
  /** The retry after a failed commit. */
  #again: Cancel | undefined = undefined
  #closed = false

  constructor(options: StoreLogsOptions) {
    this.#options = options
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
    this.#bytes -= own.bytes
    this.#doomed.push(...own.shed(() => true, 0, true))
    if (own.key !== '') this.#doomed.push(keys.record(own.key, own.id))
    if (own.held) this.open().then(({ runners }) => runners.release(), this.#options.failed)
    own.held = false
    this.#wake()
  }

  /** The stream stays on the store until it expires, and no longer counts: this process cannot remove parts of it any more. */
  leave(own: OwnStream): void {
    own.left = true
    this.#bytes -= own.bytes
  }

  /** Removes these keys, whichever process wrote them. */
  doom(keys: readonly string[]): void {
    this.#doomed.push(...keys)
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
    if (this.#dirty.size > 0 || this.#doomed.length > 0) await this.#flush()
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
      while (this.#dirty.size > 0 || this.#doomed.length > 0) await this.#commit(store, runners)
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
      this.#makeRoom(plan)
    }
    const doomed = this.#doomed.slice(0, mostSteps)
    await store.commit([...ops, ...doomed.map(key => remove(key))])
    this.#doomed.splice(0, doomed.length)
    for (const plan of plans) this.#done(plan, runners)
  }

  /** Updates the counts after a commit. */
  #done(plan: CommitPlan, runners: ProcessLeases): void {
    const { own, bytes, over } = plan
    // The stream was dropped while the commit was running.
    if (own.dropped) return this.doom([keys.record(own.key, own.id), ...plan.added.map(({ key }) => key)])
    if (!own.left) this.#bytes += bytes
    own.dueAt = this.#options.clock.now() + this.#options.limits.retainMs / 2
    if (own.done(plan)) this.#dirty.delete(own)
    if (over === undefined || !own.held) return
    own.held = false
    runners.release()
  }

  /**
   * Enforces the limits. A stream first loses its own oldest events, then the session its oldest streams', then the account
   * that uses the most.
   */
  #makeRoom({ own, bytes, events }: CommitPlan): void {
    const { limits, clock } = this.#options
    const streams = this.sessions.get(own.session)
    const oldest = clock.now() - limits.retainMs
    const { logEvents, logBytes, logSessionEvents, logSessionBytes, logTotal } = limits
    this.#shed(own, (b, e) => b + bytes > logBytes || e + events > logEvents, oldest, bytes > 0)
    let [inSession, eventsInSession] = [bytes, events]
    for (const each of streams?.values() ?? []) {
      inSession += each.bytes
      eventsInSession += each.events
    }
    for (const each of streams?.values() ?? []) {
      if (inSession <= logSessionBytes && eventsInSession <= logSessionEvents) break
      const [others, otherEvents] = [inSession - each.bytes, eventsInSession - each.events]
      this.#shed(
        each,
        (b, e) => others + b > logSessionBytes || otherEvents + e > logSessionEvents,
        oldest,
        each === own && bytes > 0,
      )
      inSession = others + each.bytes
      eventsInSession = otherEvents + each.events
    }
    if (this.#bytes + bytes <= logTotal) return
    for (const each of largestFirst(this.all())) {
      const others = this.#bytes + bytes - each.bytes
      this.#shed(each, b => others + b > logTotal, oldest)
      if (this.#bytes + bytes <= logTotal) return
    }
  }

  /** Removes old events of a stream. `all`: including the newest, because a newer one is being written. */
  #shed(own: OwnStream, tooMuch: (bytes: number, events: number) => boolean, oldest: number, all = false): void {
    const before = own.bytes
    for (const key of own.shed(tooMuch, oldest, all)) this.#doomed.push(key)
    if (!own.left) this.#bytes -= before - own.bytes
  }
}

/** Orders streams: those of the account with the most bytes first, within it those of its largest session. */
function largestFirst(streams: Iterable<OwnStream>): readonly OwnStream[] {
  const all = [...streams]
  const sessions = new Tally<string>()
  const accounts = new Tally<string>()
  for (const { session, account, bytes } of all) {
    sessions.add(session, bytes)
    accounts.add(account, bytes)
  }
  return all.sort((a, b) => accounts.of(b.account) - accounts.of(a.account) || sessions.of(b.session) - sessions.of(a.session))
}

// The state of one stream that this process writes: events that wait, and the values of it on the store.

/** One value on the store. */
interface Written {
  readonly key: string
  readonly bytes: number
  /** Number of events that begin in it. */
  readonly events: number
  /** The number of the last event in it. */
  readonly last: number
  /** When it was written. */
  readonly at: number
}

/** What one commit writes of a stream. */
interface CommitPlan {
  readonly own: OwnStream
  readonly ops: readonly Op[]
  readonly added: readonly Written[]
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
  /** The account that its bytes are charged to. */
  readonly account: string
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
  /** Size of what is on the store. */
  bytes = 0
  events = 0
  /** Events that are not committed yet. */
  #waiting: LoggedEvent[] = []
  #waitingBytes = 0
  #written: Written[] = []
  /** The number of the next value. */
  #ordinal = 0

  constructor(session: string, id: string, facts: StreamFacts, account = `session ${session}`) {
    this.session = session
    this.account = account
    this.id = id
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
  done({ added, bytes, events, through, over }: CommitPlan): boolean {
    this.#waiting = this.#waiting.filter(({ number }) => number > through)
    this.#waitingBytes = this.#waiting.reduce((sum, { frame }) => sum + byteLength(frame), 0)
    this.#written.push(...added)
    this.#ordinal += added.length
    this.bytes += bytes
    this.events += events
    return this.#waiting.length === 0 && this.over === over
  }

  /**
   * Forgets the oldest values while there are too many or they are too old; returns their keys. The newest event stays: it may
   * be the answer.
   */
  shed(tooMuch: (bytes: number, events: number) => boolean, oldest: number, all = false): readonly string[] {
    const newest = all ? undefined : this.#written.at(-1)?.last
    let count = 0
    for (const { last, at, bytes, events } of this.#written) {
      if (last === newest || (at > oldest && !tooMuch(this.bytes, this.events))) break
      this.bytes -= bytes
      this.events -= events
      count++
    }
    return this.#written.splice(0, count).map(({ key }) => key)
  }
}
