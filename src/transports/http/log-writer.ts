/**
 * Writes what this process says on kept streams to a store: one commit at a time, with all that was said meanwhile, so that many
 * streams cost no more writes than one. What a stream, a session or all together have too much of goes in the same commit.
 */

import type { Cancel, Clock } from '../../core/clock.ts'
import type { Runners } from '../../core/journal/runners.ts'
import { Tally } from '../../core/occupancy.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import { byteLength } from './event.ts'
import type { HttpLimits } from './limits.ts'
import { chunkKey, chunksOf, type Ending, pack, recordKey, type StreamRecord, sessionKey } from './log-records.ts'
import type { LoggedEvent, StreamFacts } from './stream-log.ts'

interface LogWriterOptions {
  readonly open: () => Promise<{ readonly store: Store; readonly runners: Runners }>
  readonly clock: Clock
  readonly limits: HttpLimits
  /** The streams of a session that are written here. */
  readonly streamsOf: (session: string) => Iterable<OwnStream>
  readonly all: () => Iterable<OwnStream>
  readonly failed: (error: unknown) => void
}

const againMs = 1_000
/** Steps of one commit. */
const mostSteps = 400

export class LogWriter {
  readonly #options: LogWriterOptions
  readonly #dirty = new Set<OwnStream>()
  /** Keys that are to go. */
  readonly #doomed: string[] = []
  #bytes = 0
  #flushing: Promise<void> | undefined = undefined
  #again: Cancel | undefined = undefined
  #closed = false

  constructor(options: LogWriterOptions) {
    this.#options = options
  }

  /** There is something to write of it: with all else that comes in this turn. */
  touch(own: OwnStream): void {
    if (this.#closed) return
    this.#dirty.add(own)
    this.#wake()
  }

  /** Nothing of it is to be kept. */
  drop(own: OwnStream): void {
    own.dropped = true
    this.#dirty.delete(own)
    this.#bytes -= own.bytes
    this.#doomed.push(...own.shed(() => true, 0, true))
    if (own.key !== '') this.#doomed.push(recordKey(own.key, own.id))
    if (own.held) this.#options.open().then(({ runners }) => runners.release(), this.#options.failed)
    own.held = false
    this.#wake()
  }

  /** It stays until its time is over, and counts no more: it could not give way to anything here. */
  leave(own: OwnStream): void {
    own.left = true
    this.#bytes -= own.bytes
  }

  /** These keys are to go, whoever wrote them. */
  doom(keys: readonly string[]): void {
    this.#doomed.push(...keys)
    this.#wake()
  }

  /** Settles when what was said before is written, or could not be. */
  async settled(): Promise<void> {
    await this.#flushing
  }

  /** Writes what is left, and no more. */
  async close(): Promise<void> {
    this.#again?.()
    await this.#flushing
    if (this.#dirty.size > 0 || this.#doomed.length > 0) await this.#flush()
    this.#closed = true
    this.#again?.()
  }

  #wake(): void {
    if (this.#again === undefined && !this.#closed) this.#flushing ??= Promise.resolve().then(() => this.#flush())
  }

  async #flush(): Promise<void> {
    try {
      const { store, runners } = await this.#options.open()
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

  async #commit(store: Store, runners: Runners): Promise<void> {
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

  #done(plan: CommitPlan, runners: Runners): void {
    const { own, bytes, over } = plan
    // Dropped while it was being written.
    if (own.dropped) return this.doom([recordKey(own.key, own.id), ...plan.added.map(({ key }) => key)])
    if (!own.left) this.#bytes += bytes
    own.dueAt = this.#options.clock.now() + this.#options.limits.retainMs / 2
    if (own.done(plan)) this.#dirty.delete(own)
    if (over === undefined || !own.held) return
    own.held = false
    runners.release()
  }

  /** A stream gives of its own first; then the streams of its session that were opened first; then those of the account that has the most. */
  #makeRoom({ own, bytes, events }: CommitPlan): void {
    const { limits, streamsOf, all, clock } = this.#options
    const oldest = clock.now() - limits.retainMs
    const { logEvents, logBytes, logSessionEvents, logSessionBytes, logTotal } = limits
    this.#shed(own, (b, e) => b + bytes > logBytes || e + events > logEvents, oldest, bytes > 0)
    let [inSession, eventsInSession] = [bytes, events]
    for (const each of streamsOf(own.session)) {
      inSession += each.bytes
      eventsInSession += each.events
    }
    for (const each of streamsOf(own.session)) {
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
    for (const each of largestFirst(all())) {
      const others = this.#bytes + bytes - each.bytes
      this.#shed(each, b => others + b > logTotal, oldest)
      if (this.#bytes + bytes <= logTotal) return
    }
  }

  /** `all`: what is newest is only now being written. */
  #shed(own: OwnStream, tooMuch: (bytes: number, events: number) => boolean, oldest: number, all = false): void {
    const before = own.bytes
    for (const key of own.shed(tooMuch, oldest, all)) this.#doomed.push(key)
    if (!own.left) this.#bytes -= before - own.bytes
  }
}

/** The streams of the account that has the most come first, of its largest session before others, each session's as they were opened. */
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

// A stream that this process writes to a store: what waits to be written, and which values of it lie there.

interface Written {
  readonly key: string
  readonly bytes: number
  /** Events that begin in it. */
  readonly events: number
  /** The number of the last event in it. */
  readonly last: number
  readonly at: number
}

/** What one commit writes of a stream, and what then holds. */
export interface CommitPlan {
  readonly own: OwnStream
  readonly ops: readonly Op[]
  readonly added: readonly Written[]
  readonly bytes: number
  readonly events: number
  readonly through: number
  readonly over: Ending | undefined
}

export class OwnStream {
  readonly session: string
  readonly id: string
  readonly facts: StreamFacts
  /** In whose share it counts. */
  readonly account: string
  /** The digest of its session, known from the first commit on. */
  key = ''
  over: Ending | undefined = undefined
  /** Nothing of it is to be kept. */
  dropped = false
  /** Its session is no more served here. */
  left = false
  /** Until when another process is known to tell it to a reader of its own. */
  followedUntil = 0
  followedVersion = 0
  /** Its reader has come back here: who followed it up to this look does so no more. */
  recalledIn = 0
  /** Whether this process is held to be alive for it. */
  held = false
  /** When its record must be written anew, so that it stays. */
  dueAt = 0
  /** Of what lies on the store. */
  bytes = 0
  events = 0
  #waiting: LoggedEvent[] = []
  #waitingBytes = 0
  #written: Written[] = []
  #ordinal = 0

  constructor(session: string, id: string, facts: StreamFacts, account = `session ${session}`) {
    this.session = session
    this.account = account
    this.id = id
    this.facts = facts
  }

  /** Gives how many events had to go: where the store takes nothing for a while, the oldest do, as they would in the log. */
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

  plan(runner: string, now: number, ttl: number): CommitPlan {
    const prefix = chunksOf(this.key, this.id)
    const chunks = pack(this.#waiting)
    const added = chunks.map(({ text, events, last }, index) => {
      return { key: chunkKey(prefix, this.#ordinal + index), bytes: byteLength(text), events, last, at: now }
    })
    const { over, facts } = this
    const record: StreamRecord = { runner, ...facts, ...(over === undefined ? {} : { over }) }
    const ops = [put(recordKey(this.key, this.id), JSON.stringify(record), { ttl })]
    for (const [index, { text }] of chunks.entries()) ops.push(put(added[index]?.key ?? '', text, { ttl }))
    const bytes = added.reduce((sum, chunk) => sum + chunk.bytes, 0)
    return { own: this, ops, added, bytes, events: this.#waiting.length, through: this.#waiting.at(-1)?.number ?? 0, over }
  }

  /** Whether nothing has come since. */
  done({ added, bytes, events, through, over }: CommitPlan): boolean {
    this.#waiting = this.#waiting.filter(({ number }) => number > through)
    this.#waitingBytes = this.#waiting.reduce((sum, { frame }) => sum + byteLength(frame), 0)
    this.#written.push(...added)
    this.#ordinal += added.length
    this.bytes += bytes
    this.events += events
    return this.#waiting.length === 0 && this.over === over
  }

  /** Lets go of the oldest values while there is too much, or they are too old; gives their keys. The newest stays: it may be the answer. */
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
