/**
 * One logical event stream. A reader is attached to it, may be let go or lost, and may come back if the stream is
 * kept: then each event has an id `<stream>-<number>` and stays in the log for a while (2025-11-25 basic/transports,
 * "Resumability and Redelivery").
 */
import { isThenable } from '../../jsonrpc/message.ts'
import { eventId, eventText, mostPlaces, primingText, retryText, type StreamPlace } from './event.ts'
import type { Foreign } from './log-follower.ts'
import { HttpStreamReader, type ReaderOwner, type StreamOutlet } from './reader.ts'
import type { LoggedEvent } from './stream-log.ts'
import type { Streams } from './streams.ts'

export class Stream implements ReaderOwner {
  /** Unique in its session; without a dash, which separates it from the event's number. */
  readonly id: string
  readonly listening: boolean
  /** In whose share what is kept of it counts. */
  readonly account: string | undefined
  /** The session in which it is kept; undefined while it is not. */
  session: string | undefined = undefined
  /** When it ended or lost its reader, by the table's clock. */
  idleSince = 0
  readonly #table: Streams
  #reader: HttpStreamReader | undefined
  #number = 0
  /** The number of the last event that was written to the reader. */
  #told = 0
  /** What other processes say in the session is told here too: where the reader stands in their streams, and how to stop. */
  #beside: Map<string, number> | undefined = undefined
  #stops: readonly (() => void)[] | undefined = undefined
  #primed = false
  #ended = false
  /** While the reader is given the log, what is said goes only there. */
  #replaying = false
  #closers: (() => void)[] | undefined = undefined
  #onFree: (() => void)[] | undefined = undefined

  constructor(table: Streams, outlet: StreamOutlet, listening: boolean) {
    this.#table = table
    this.id = table.nextId()
    this.listening = listening
    this.account = outlet.tenant?.account
    this.#reader = new HttpStreamReader(table, outlet, this)
  }

  get ended(): boolean {
    return this.#ended
  }

  /** True when nobody can receive any more, now or later. */
  get closed(): boolean {
    return this.#ended || (this.#reader === undefined && this.session === undefined)
  }

  /** Whether somebody reads it now. */
  get attached(): boolean {
    return this.#reader !== undefined || this.#table.isFollowed(this)
  }

  /** Whether a reader is there, and has yet to take what was written for it. */
  get blocked(): boolean {
    return this.#reader?.blocked === true
  }

  /** Called once, when the reader takes again. */
  onFree(fn: () => void): void {
    if (this.closed) return
    this.#onFree ??= []
    this.#onFree.push(fn)
  }

  readerFree(reader: HttpStreamReader): void {
    if (reader === this.#reader) this.#free()
  }

  /** Something is different for those who wait: its reader takes again, has gone, or has come back. */
  #free(): void {
    for (const fn of this.#onFree?.splice(0) ?? []) fn()
  }

  /** The number of the last event. */
  get head(): number {
    return this.#number
  }

  /** Called once if the reader goes away before the end; on a kept stream, whose reader may return, not at once. */
  onClose(fn: () => void): void {
    if (this.#ended) return
    if (this.closed) queueMicrotask(fn)
    else {
      this.#closers ??= []
      this.#closers.push(fn)
    }
  }

  send(frame: string, final: boolean, merge?: string, spare?: boolean): void {
    if (this.#ended) return
    const { session } = this
    if (session !== undefined) this.#table.log(session, this, { number: ++this.#number, frame })
    if (final) this.#close(true)
    if (this.#reader === undefined || this.#replaying) return
    const id = session === undefined ? undefined : this.#idOf(this.#number)
    if (final) this.#reader.end(eventText(frame, id))
    else this.#reader.write(eventText(frame, id), false, merge, spare)
  }

  /** Says something that is no frame, to whoever reads now. */
  announce(event: string): void {
    if (!this.#ended) this.#reader?.write(event, false)
  }

  /** Ends without a word. */
  end(): void {
    if (this.#ended) return
    this.#close(false)
    if (!this.#replaying) this.#reader?.end()
  }

  /** `will`: what others say in the place of its answer if this process goes before it. */
  keep(session: string, will?: string): void {
    if (this.session !== undefined || this.closed) return
    this.session = session
    this.#table.keep(session, this, will)
  }

  /** Gives the reader an id to come back with, before there is any event. */
  prime(): void {
    if (this.session === undefined || this.#ended || this.#primed || this.#number > 0) return
    this.#primed = true
    this.#reader?.write(primingText(this.#idOf(0)), false)
  }

  /** Lets the reader go; it returns by itself. What is said meanwhile goes to the log. */
  release(retryMs: number): void {
    if (this.session === undefined || this.#ended) return
    this.prime()
    this.#detach()?.end(retryText(retryMs))
    if (this.listening) this.#table.retire(this)
  }

  /** Its reader has come back to another process. */
  letGo(): void {
    this.#detach()?.end()
    this.#free()
    if (this.listening && !this.#ended) this.#table.retire(this)
  }

  /**
   * Its reader stands in streams of other processes too: from now on each id says where. Gives a function that tells it also what
   * those say; of those that are not found any more, nothing.
   */
  standsIn(places: readonly StreamPlace[]): (found: readonly Foreign[]) => void {
    const reader = this.#reader
    const beside = new Map(places.slice(0, mostPlaces - 1).map(({ stream, number }) => [stream, number]))
    this.#beside = beside
    return found => {
      // Its next reader has its own.
      if (reader !== undefined && reader === this.#reader && !this.#ended) this.#join(reader, beside, found)
    }
  }

  #join(reader: HttpStreamReader, beside: Map<string, number>, found: readonly Foreign[]): void {
    const others = found.filter(({ stream }) => beside.has(stream))
    for (const stream of [...beside.keys()]) if (others.every(other => other.stream !== stream)) beside.delete(stream)
    this.#stops = others.map(({ stream, follow }) =>
      follow({
        event: ({ number, frame }) => {
          beside.set(stream, number)
          if (reader === this.#reader) reader.write(eventText(frame, this.#idOf(this.#told)), true)
        },
        over: () => beside.delete(stream),
        failed: () => reader.cut(),
      }),
    )
  }

  /** Attaches a reader that has seen the events up to `after`, in place of the one there may be. */
  resume(outlet: StreamOutlet, after: number): void {
    this.#detach()?.end()
    if (!this.#ended) this.#table.recall(this)
    this.#told = after
    this.#reader = new HttpStreamReader(this.#table, outlet, this)
    this.#replay(this.#reader, after)
  }

  readerGone(reader: HttpStreamReader): void {
    if (reader !== this.#reader) return
    this.#detach()
    if (this.session === undefined) this.#lose()
    else if (this.listening && !this.#ended) this.#table.retire(this)
  }

  /** Its time without a reader is over: nobody will come back. */
  abandon(): void {
    this.session = undefined
    this.#detach()?.end()
    this.#free()
    this.#lose()
  }

  #lose(): void {
    const closers = this.#closers
    this.#closers = undefined
    for (const fn of closers ?? []) fn()
  }

  #detach(): HttpStreamReader | undefined {
    const reader = this.#reader
    this.#reader = undefined
    this.#replaying = false
    if (this.#onFree !== undefined) queueMicrotask(() => this.#free())
    for (const stop of this.#stops ?? []) stop()
    this.#stops = undefined
    this.#beside = undefined
    return reader
  }

  #close(answered: boolean): void {
    this.#ended = true
    this.#closers = undefined
    if (this.session !== undefined) this.#table.over(this, this.session, answered)
  }

  /** The id of an event of this stream, which its reader has seen then. */
  #idOf(number: number): string {
    this.#told = number
    return eventId(this.id, number, this.#beside)
  }

  /** Reads on until level with the stream; what is said meanwhile is in the log, too. */
  #replay(reader: HttpStreamReader, after: number): void {
    const { session } = this
    if (session === undefined) return
    this.#replaying = true
    const head = this.#number
    const events = this.#table.logs.read(session, this.id, after)
    if (isThenable(events)) {
      const lost = () => reader.cut()
      events.then(found => this.#replayed(reader, found, after, head), lost)
    } else this.#replayed(reader, events, after, head)
  }

  /** `head`: the last event when the read began; those after it may or may not be in what was read. */
  #replayed(reader: HttpStreamReader, events: readonly LoggedEvent[], after: number, head: number): void {
    if (reader !== this.#reader) return
    for (const { number, frame } of events) reader.write(eventText(frame, this.#idOf(number)), true)
    const last = events.at(-1)?.number ?? after
    if (last < this.#number && head < this.#number) this.#replay(reader, last)
    else {
      this.#replaying = false
      this.#free()
      if (this.#ended) reader.end()
    }
  }
}
