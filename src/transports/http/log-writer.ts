/**
 * Writes what this process says on kept streams to a store: one commit at a time, with all that was said meanwhile, so that many
 * streams cost no more writes than one. What a stream, a session or all together have too much of goes in the same commit.
 */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Runners } from '../../core/journal/runners.ts'
import { Tally } from '../../core/occupancy.ts'
import { type Op, remove, type Store } from '../../stores/store.ts'
import type { HttpLimits } from './limits.ts'
import { recordKey, sessionKey } from './log-records.ts'
import type { CommitPlan, OwnStream } from './own-stream.ts'

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
