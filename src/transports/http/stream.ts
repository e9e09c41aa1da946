/**
 * One logical event stream. Its reader may be released or lost, and may reconnect if the stream is resumable: then each event
 * has an id `<stream>-<number>` and stays in the log for a while (2025-11-25 basic/transports, "Resumability and Redelivery").
 */
import { isThenable } from '../../jsonrpc/message.ts'
import { type EventPosition, eventId, eventText, mostPlaces, primingText, retryText } from './event.ts'
import { EventStreamWriter, type ResponseStream } from './event-writer.ts'
import type { RemoteStream } from './log-follower.ts'
import type { LoggedEvent } from './stream-log.ts'
import type { Streams } from './streams.ts'

/** An event stream, independent of the connection that currently reads it. */
export class Stream {
  /** Unique in its session. Has no dash, which separates it from the event number. */
  readonly id: string
  readonly listening: boolean
  /** The account that its logged events are charged to. */
  readonly account: string | undefined
  /** The session in which it is resumable; undefined if it is not. */
  session: string | undefined = undefined
  /** When it ended or lost its reader. */
  idleSince = 0
  readonly #table: Streams
  #reader: EventStreamWriter | undefined
  /** The number of the last event. */
  #number = 0
  /** The number of the last event written to the reader. */
  #told = 0
  /** The reader's position in streams of other processes whose events it also receives; `#stops` ends following them. */
  #beside: Map<string, number> | undefined = undefined
  #stops: readonly (() => void)[] | undefined = undefined
  #primed = false
  #ended = false
  /** While the log is replayed to the reader, new events go to the log only. */
  #replaying = false
  #closers: (() => void)[] | undefined = undefined
  #onFree: (() => void)[] | undefined = undefined

  constructor(table: Streams, output: ResponseStream, listening: boolean) {
    this.#table = table
    this.id = table.nextId()
    this.listening = listening
    this.account = output.tenant?.account
    this.#reader = new EventStreamWriter(table, output, this)
  }

  get ended(): boolean {
    return this.#ended
  }

  /** True if nobody can receive anything any more, now or later. */
  get closed(): boolean {
    return this.#ended || (this.#reader === undefined && this.session === undefined)
  }

  /** True if somebody reads it now. */
  get attached(): boolean {
    return this.#reader !== undefined || this.#table.isFollowed(this)
  }

  /** True if the reader has not yet taken what was written. */
  get blocked(): boolean {
    return this.#reader?.blocked === true
  }

  /** Calls back once, when the reader accepts data again. */
  onFree(fn: () => void): void {
    if (this.closed) return
    this.#onFree ??= []
    this.#onFree.push(fn)
  }

  readerFree(reader: EventStreamWriter): void {
    if (reader === this.#reader) this.#free()
  }

  /** Wakes those who wait: the reader accepts data, has gone or is back. */
  #free(): void {
    for (const fn of this.#onFree?.splice(0) ?? []) fn()
  }

  /** The number of the last event. */
  get head(): number {
    return this.#number
  }

  /** Calls back once if the reader disconnects before the end; for a resumable stream only after `retainMs`. */
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

  /** Writes an event without a frame to the current reader. */
  announce(event: string): void {
    if (!this.#ended) this.#reader?.write(event, false)
  }

  /** Ends the stream without an answer. */
  end(): void {
    if (this.#ended) return
    this.#close(false)
    if (!this.#replaying) this.#reader?.end()
  }

  /** Makes it resumable. `will`: what other processes send in place of its answer if this process dies before it. */
  keep(session: string, will?: string): void {
    if (this.session !== undefined || this.closed) return
    this.session = session
    this.#table.keep(session, this, will)
  }

  /** Sends an event with only an id, so that the reader can reconnect before the first real event. */
  prime(): void {
    if (this.session === undefined || this.#ended || this.#primed || this.#number > 0) return
    this.#primed = true
    this.#reader?.write(primingText(this.#idOf(0)), false)
  }

  /** Disconnects the reader, which reconnects after `retryMs`. Events are logged meanwhile. */
  release(retryMs: number): void {
    if (this.session === undefined || this.#ended) return
    this.prime()
    this.#detach()?.end(retryText(retryMs))
    if (this.listening) this.#table.retire(this)
  }

  /** The reader has reconnected to another process. */
  letGo(): void {
    this.#detach()?.end()
    this.#free()
    if (this.listening && !this.#ended) this.#table.retire(this)
  }

  /**
   * The reader also has positions in streams of other processes; from now on each event id includes them. Returns a function
   * that starts following those that were found.
   */
  standsIn(places: readonly EventPosition[]): (found: readonly RemoteStream[]) => void {
    const reader = this.#reader
    const beside = new Map(places.slice(0, mostPlaces - 1).map(({ stream, number }) => [stream, number]))
    this.#beside = beside
    return found => {
      // A reader that connected meanwhile has positions of its own.
      if (reader !== undefined && reader === this.#reader && !this.#ended) this.#join(reader, beside, found)
    }
  }

  #join(reader: EventStreamWriter, beside: Map<string, number>, found: readonly RemoteStream[]): void {
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

  /** Attaches a reader that has seen the events up to `after`, in place of the current one. */
  resume(output: ResponseStream, after: number): void {
    this.#detach()?.end()
    if (!this.#ended) this.#table.recall(this)
    this.#told = after
    this.#reader = new EventStreamWriter(this.#table, output, this)
    this.#replay(this.#reader, after)
  }

  readerGone(reader: EventStreamWriter): void {
    if (reader !== this.#reader) return
    this.#detach()
    if (this.session === undefined) this.#lose()
    else if (this.listening && !this.#ended) this.#table.retire(this)
  }

  /** The time to reconnect is over. */
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

  #detach(): EventStreamWriter | undefined {
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

  /** The id of an event that is being written to the reader. */
  #idOf(number: number): string {
    this.#told = number
    return eventId(this.id, number, this.#beside)
  }

  /** Replays the log until the reader is up to date; events sent meanwhile are in the log too. */
  #replay(reader: EventStreamWriter, after: number): void {
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

  /** `head` is the last event when the read began; later ones may or may not be in what was read. */
  #replayed(reader: EventStreamWriter, events: readonly LoggedEvent[], after: number, head: number): void {
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
