/**
 * The event streams of one server: limits on open ones, resumable ones by session, and a single timer that sends keep-alive
 * comments and discards streams that were retained long enough.
 */
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { Occupancy, shareText, Tally } from '../../core/occupancy.ts'
import { isThenable } from '../../jsonrpc/message.ts'
import { type EventPosition, keepAliveText, parseEventId } from './event.ts'
import type { ResponseStream, StreamAccount } from './event-writer.ts'
import { type HttpLimits, httpLimits } from './limits.ts'
import type { Refusal } from './refusal.ts'
import type { Stream } from './stream.ts'
import { type LoggedEvent, MemoryStreamLogs, type SharedLogs, type StreamLogs } from './stream-log.ts'

/** Limits, where events are logged, and how streams are named. */
interface StreamsOptions {
  readonly limits?: Partial<HttpLimits>
  /** Where events of resumable streams are logged. Default: in memory. */
  readonly logs?: StreamLogs
  /** Used in place of `logs`: a log that several processes share, so that a reader can reconnect to any of them. */
  readonly shared?: (limits: HttpLimits) => SharedLogs
  readonly clock?: Clock
  /** Whether resumable streams start with an empty event, in revisions that have it. Default true. */
  readonly priming?: boolean
  /** A prefix for stream ids that no other process uses, since sessions may outlive this process. */
  readonly idPrefix?: string
}

/** Timer ticks per `keepAliveMs`. */
const sweepsPerSilence = 15
/** After this many silent ticks a stream gets a comment line, */
const dueAfter = 9
/** or in one of the following ticks: thousands of writes in one tick would delay everything else. */
const spreadOver = 5

/** All event streams of a server, with the limits per caller. */
export class Streams {
  readonly limits: HttpLimits
  readonly logs: StreamLogs
  readonly shared: SharedLogs | undefined
  readonly clock: Clock
  readonly priming: boolean
  /** Bytes that wait for all slow readers together. */
  waiting = 0
  /** Frames not sent because the caller does not accept event streams. */
  dropped = 0
  /** The server is shutting down: answers then close their connection. */
  closing = false
  /** Events that could not be logged. */
  unlogged = 0
  readonly #open = new Set<ResponseStream>()
  /** Open streams per tenant key. */
  readonly #tenants = new Tally<string>()
  readonly #places: Occupancy
  /** Resumable streams, by session and id. */
  readonly #stored = new Map<string, Map<string, Stream>>()
  /** Resumable streams that ended or lost their reader, oldest first. */
  readonly #retired = new Set<Stream>()
  readonly #idPrefix: string
  #lastId = 0
  #sweeping: Cancel | undefined = undefined

  constructor(options: StreamsOptions = {}) {
    this.limits = { ...httpLimits, ...options.limits }
    this.#places = new Occupancy(this.limits.streams)
    this.clock = options.clock ?? realClock
    this.priming = options.priming ?? true
    this.shared = options.shared?.(this.limits)
    this.shared?.onFollowed((session, stream) => this.#stored.get(session)?.get(stream)?.letGo())
    this.logs = this.shared ?? options.logs ?? new MemoryStreamLogs(this.limits, this.clock.now)
    this.#idPrefix = options.idPrefix ?? randomText(6)
  }

  /** Number of open streams. */
  get size(): number {
    return this.#open.size
  }

  /** A new stream id. In a shared log it is random, so that it cannot be guessed and two processes never use the same. */
  nextId(): string {
    if (this.shared !== undefined) return randomText(20)
    return `${this.#idPrefix}${(++this.#lastId).toString(36)}`
  }

  /** Why one more stream cannot be opened; undefined if it can. Without a tenant only the total is checked. */
  refusal(tenant: StreamAccount | undefined): Refusal | undefined {
    const { streams } = this.limits
    if (this.#open.size >= streams) return busy(`${streams} event streams are open, which is this server's limit (streams)`)
    if (tenant === undefined) return undefined
    if (this.#places.refusal(tenant.account) === 'share') return busy(`${shareText(`${streams} event streams`)} (streams)`)
    if (tenant.limit === undefined || this.#tenants.of(tenant.key) < this.limits[tenant.limit]) return undefined
    return busy(`You have ${this.limits[tenant.limit]} event streams open, which is this server's limit (${tenant.limit})`)
  }

  /** Counts a stream that was opened. */
  enter(output: ResponseStream): void {
    this.#open.add(output)
    this.#count(output, 1)
    this.#wake()
  }

  /** Counts a stream that was closed. */
  leave(output: ResponseStream): void {
    if (this.#open.delete(output)) this.#count(output, -1)
  }

  #count({ tenant }: ResponseStream, by: 1 | -1): void {
    if (tenant === undefined) return
    this.#tenants.add(tenant.key, by)
    if (by === 1) this.#places.enter(tenant.account)
    else this.#places.leave(tenant.account)
  }

  /** Makes a stream resumable in its session. Beyond `resumablePerSession` the oldest ended one is discarded. */
  keep(session: string, stream: Stream, will?: string): void {
    const facts = { listening: stream.listening, ...(will === undefined ? {} : { will }) }
    this.shared?.begin(session, stream.id, facts, stream.account)
    let streams = this.#stored.get(session)
    if (streams === undefined) {
      streams = new Map()
      this.#stored.set(session, streams)
    }
    streams.set(stream.id, stream)
    this.#wake()
    if (streams.size <= this.limits.resumablePerSession) return
    for (const old of streams.values()) {
      if (!old.ended) continue
      this.#drop(old)
      break
    }
  }

  /** The resumable stream of an event id, the number of that event, and the position in streams of other processes. */
  find(session: string, eventId: string): { stream: Stream; number: number; others: readonly EventPosition[] } | undefined {
    const streams = this.#stored.get(session)
    const places = streams === undefined ? [] : parseEventId(eventId)
    const own = places.find(place => streams?.has(place.stream))
    const stream = own && streams?.get(own.stream)
    if (stream === undefined || own === undefined || own.number > stream.head) return undefined
    return { stream, number: own.number, others: places.filter(place => place !== own) }
  }

  /** Logs an event for readers that reconnect. */
  log(session: string, { id, account }: Stream, event: LoggedEvent): void {
    const appended = this.logs.append(session, id, event, account)
    if (isThenable(appended)) appended.then(undefined, () => this.unlogged++)
  }

  /** A resumable stream has ended or has no reader: it can be resumed for `retainMs`. */
  retire(stream: Stream): void {
    stream.idleSince = this.clock.now()
    this.#retired.delete(stream)
    this.#retired.add(stream)
    this.#wake()
  }

  /** A resumable stream has ended, with or without its answer. */
  over(stream: Stream, session: string, answered: boolean): void {
    this.shared?.end(session, stream.id, answered)
    this.retire(stream)
  }

  /** The reader of the stream is back in this process. */
  recall(stream: Stream): void {
    this.#retired.delete(stream)
    if (stream.session !== undefined) this.shared?.recall(stream.session, stream.id)
  }

  /** Whether another process currently serves the reader of this stream. */
  isFollowed(stream: Stream): boolean {
    return stream.session !== undefined && this.shared?.isFollowed(stream.session, stream.id) === true
  }

  /** A session has ended: its streams end and cannot be replayed here. `forAll`: nor in any other process. */
  forget(session: string, forAll = false): void {
    this.#settle(this.logs.dropSession(session, forAll))
    for (const stream of this.#stored.get(session)?.values() ?? []) {
      stream.end()
      this.#retired.delete(stream)
      stream.session = undefined
    }
    this.#stored.delete(session)
  }

  /** The server shuts down: streams without a pending answer end now, the others when they are answered. */
  close(): void {
    this.closing = true
    for (const output of this.#open) if (output.owner?.listening === true) output.end()
  }

  /** One timer tick: keep-alive comments, expired tokens, and streams that were retained long enough. */
  #sweep(): void {
    let left = Math.ceil(this.#open.size / spreadOver)
    const expired = this.clock.now() - this.limits.expiredMs
    for (const output of this.#open) {
      const { tenant } = output
      if (tenant?.expiresAt !== undefined && tenant.expiresAt <= expired) {
        output.end()
        continue
      }
      this.#recheck(output)
      if (++output.silence < dueAfter || left === 0 || output.blocked) continue
      output.write(keepAliveText)
      left--
    }
    const oldest = this.clock.now() - this.limits.retainMs
    for (const stream of this.#retired) {
      if (stream.idleSince > oldest) break
      if (!stream.ended && this.isFollowed(stream)) this.retire(stream)
      else this.#drop(stream)
    }
    this.logs.sweep?.()
    this.#sweeping = undefined
    if (this.#open.size > 0 || this.#stored.size > 0) this.#wake()
  }

  /** Ends a stream whose token was revoked. A check that fails counts as valid. */
  #recheck(output: ResponseStream): void {
    const holds = output.tenant?.holds?.()
    if (isThenable(holds))
      holds.then(
        good => good || output.end(),
        () => {},
      )
    else if (holds === false) output.end()
  }

  #drop(stream: Stream): void {
    this.#retired.delete(stream)
    if (stream.session === undefined) return
    const streams = this.#stored.get(stream.session)
    streams?.delete(stream.id)
    if (streams?.size === 0) this.#stored.delete(stream.session)
    this.#settle(this.logs.drop(stream.session, stream.id))
    stream.abandon()
  }

  #settle(done: void | PromiseLike<void>): void {
    if (isThenable(done)) done.then(undefined, () => this.unlogged++)
  }

  /** One timer for all streams, and only while there are any. */
  #wake(): void {
    this.#sweeping ??= this.clock.setTimeout(() => this.#sweep(), this.limits.keepAliveMs / sweepsPerSilence, true)
  }
}

function busy(why: string): Refusal {
  return { status: 503, message: `${why}. Close one, or try again later`, headers: { 'retry-after': '5' } }
}

function randomText(length: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(length)), byte => (byte % 36).toString(36)).join('')
}
