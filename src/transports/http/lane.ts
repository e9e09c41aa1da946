/**
 * The lane of one HTTP request: a JSON answer if the first frame is the final one, an event stream as soon as another frame
 * precedes it. One is created per request, so it is small, and the stream is created only when needed.
 */
import type { Lane, ResumeOutcome, SendHints } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { takesJson, takesStream } from './endpoint.ts'
import { eventId, eventText, finalEventNumber, parseEventId } from './event.ts'
import { EventStreamWriter, type ResponseStream } from './event-writer.ts'
import type { HttpExchange } from './exchange.ts'
import type { RemoteStream } from './log-follower.ts'
import { type Refusal, refusalFrame } from './refusal.ts'
import { Stream } from './stream.ts'
import type { Streams } from './streams.ts'

/** Answers one HTTP request, with a plain body or a stream. */
export class HttpLane implements Lane {
  readonly #exchange: HttpExchange
  readonly #streams: Streams
  readonly takes: number
  readonly #extra: readonly string[]
  readonly #listening: boolean
  #stream: Stream | undefined = undefined
  #session: string | undefined = undefined
  /** What other processes send in place of the answer if this process dies. */
  #will: string | undefined = undefined
  #ended = false
  #closers: (() => void)[] | undefined = undefined

  /** `takes`: bits of `endpoint.ts`; `extra`: headers of every answer; `listening`: a GET stream for server messages. */
  constructor(exchange: HttpExchange, streams: Streams, takes: number, extra: readonly string[], listening: boolean) {
    this.#exchange = exchange
    this.#streams = streams
    this.takes = takes
    this.#extra = extra
    this.#listening = listening
  }

  send(frame: string, hints?: SendHints): void {
    if (this.#stream !== undefined) this.#stream.send(frame, hints?.final === true, hints?.merge, hints?.spare)
    else if (this.#ended) return
    else if (hints?.final === true) this.#answer(frame, hints)
    // Without an event stream only the answer itself can be sent.
    else if ((this.takes & takesStream) === 0) this.#streams.dropped++
    else this.#open(hints)?.send(frame, false, hints?.merge, hints?.spare)
  }

  end(hints?: SendHints): void {
    if (this.#stream !== undefined) this.#stream.end()
    else if (!this.#ended) {
      this.#finish()
      this.#exchange.reply(hints?.status ?? 202, this.#headers(undefined, hints), '')
    }
  }

  get answerOnly(): boolean {
    return (this.takes & takesStream) === 0
  }

  get attached(): boolean {
    return this.#stream === undefined || this.#stream.attached
  }

  get blocked(): boolean {
    return this.#stream?.blocked === true
  }

  onFree(fn: () => void): void {
    this.#stream?.onFree(fn)
  }

  get closed(): boolean {
    return this.#stream === undefined ? this.#ended || this.#exchange.gone : this.#stream.closed
  }

  onClose(fn: () => void): void {
    if (this.#stream !== undefined) this.#stream.onClose(fn)
    else if (this.#ended) return
    else if (this.#exchange.gone) queueMicrotask(fn)
    else if (this.#closers !== undefined) this.#closers.push(fn)
    else {
      this.#closers = [fn]
      this.#exchange.onGone(() => this.#lost())
    }
  }

  keep(session: string, prime: boolean, will?: string): void {
    if (this.#ended || (this.takes & takesStream) === 0) return
    this.#session = session
    this.#will = will
    const primes = prime && this.#streams.priming
    const stream = this.#stream ?? (primes ? this.#open(undefined) : undefined)
    stream?.keep(session, will)
    if (primes) stream?.prime()
  }

  release(retryMs: number): void {
    if (this.#session === undefined || this.#ended) return
    const stream = this.#stream ?? this.#open(undefined)
    stream?.release(retryMs)
  }

  resume(session: string, lastEventId: string): Awaitable<ResumeOutcome> {
    if (!this.#listening || this.#stream !== undefined || this.#ended || this.#exchange.gone) return false
    const { shared } = this.#streams
    const found = this.#streams.find(session, lastEventId)
    if (found === undefined) {
      const places = shared === undefined ? [] : parseEventId(lastEventId)
      return places.length > 0 && shared !== undefined && shared.find(session, places).then(others => this.#goOn(session, others))
    }
    const { stream, number, others } = found
    this.#stream = stream
    this.#closers = undefined
    stream.resume(this.#exchange.open(this.#headers(eventStream, undefined)), number)
    if (others.length > 0) shared?.find(session, others).then(stream.standsIn(others), () => stream.letGo())
    return true
  }

  /** Writes an event without a frame. */
  announce(event: string): void {
    const stream = this.#stream ?? this.#open(undefined)
    stream?.announce(event)
  }

  /** Starts the event stream now, before there is anything to send. */
  open(): void {
    if (!this.#ended && this.#stream === undefined) this.#open(undefined)
  }

  /** Refuses with an HTTP status; the lane is finished. */
  refuse(refusal: Refusal): void {
    if (this.#stream !== undefined) this.#stream.end()
    else if (!this.#ended) {
      this.#finish()
      this.#exchange.reply(refusal.status, this.#headers(json, refusal), refusalFrame(this.#exchange.explained(refusal)))
    }
  }

  /** Continues streams of other processes: one that awaits an answer until that comes, others beside a new stream here. */
  #goOn(session: string, others: readonly RemoteStream[]): ResumeOutcome {
    const [first] = others
    if (first === undefined) return false
    if (this.#ended || this.#exchange.gone) return true
    if (first.listening) {
      const stream = this.#open(undefined)
      stream?.keep(session)
      stream?.standsIn(others)(others.filter(({ listening }) => listening))
      return stream === undefined || 'anew'
    }
    const refusal = this.#streams.refusal(this.#exchange.tenant)
    if (refusal !== undefined) this.refuse(refusal)
    else {
      this.#finish()
      new RemoteReader(this.#streams, this.#exchange.open(this.#headers(eventStream, undefined)), first)
    }
    return true
  }

  #answer(frame: string, hints: SendHints): void {
    this.#finish()
    const status = hints.status ?? 200
    // An error body is JSON whatever the caller accepts: a 406 in its place would tell it less.
    if ((this.takes & takesJson) === 0 && status === 200) {
      this.#exchange.reply(status, this.#headers(eventStream, hints), eventText(frame))
    } else this.#exchange.reply(status, this.#headers(json, hints), frame)
  }

  /** Starts the stream, unless a limit is reached. */
  #open(hints: SendHints | undefined): Stream | undefined {
    if (this.#exchange.gone) return undefined
    const refusal = this.#streams.refusal(this.#exchange.tenant)
    if (refusal !== undefined) {
      const closers = this.#closers
      this.refuse(refusal)
      for (const fn of closers ?? []) fn()
      return undefined
    }
    const stream = new Stream(this.#streams, this.#exchange.open(this.#headers(eventStream, hints)), this.#listening)
    this.#stream = stream
    if (this.#session !== undefined) stream.keep(this.#session, this.#will)
    for (const fn of this.#closers ?? []) stream.onClose(fn)
    this.#closers = undefined
    return stream
  }

  /** The caller disconnected before anything was sent. Once there is a stream, the stream handles it. */
  #lost(): void {
    const closers = this.#closers
    this.#closers = undefined
    for (const fn of closers ?? []) fn()
  }

  #finish(): void {
    this.#ended = true
    this.#closers = undefined
  }

  #headers(type: string | undefined, hints: Pick<SendHints, 'headers'> | undefined): string[] {
    const headers = type === undefined ? [] : type === json ? ['content-type', json] : [...streamHeaders]
    for (let at = 0; at < this.#extra.length; at++) headers.push(this.#extra[at] ?? '')
    if (hints?.headers !== undefined) {
      for (const [name, value] of Object.entries(hints.headers)) headers.push(name, value)
    }
    return headers
  }
}

const json = 'application/json'
const eventStream = 'text/event-stream'
/** Keeps caches and proxies from delaying events by compressing or buffering. */
const streamHeaders = ['content-type', eventStream, 'cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no']

/** A reader that reconnected here for the answer to a call that another process runs. */
class RemoteReader {
  /** When this process stops, the reader can get the answer from another one. */
  readonly listening = true
  readonly #stop: () => void

  constructor(streams: Streams, output: ResponseStream, { stream, number, will, follow }: RemoteStream) {
    const reader = new EventStreamWriter(streams, output, this)
    let last = number
    this.#stop = follow({
      event: event => {
        last = event.number
        reader.write(eventText(event.frame, eventId(stream, last)), true)
      },
      // The replacement is sent once: a reader that has its id has received it.
      over: how => reader.end(how === 'gone' && last !== finalEventNumber ? words(stream, will) : undefined),
      failed: () => reader.cut(),
    })
  }

  readerGone(): void {
    this.#stop()
  }
}

/** The event that replaces an answer which will not come. */
function words(stream: string, will: string | undefined): string | undefined {
  return will === undefined ? undefined : eventText(will, eventId(stream, finalEventNumber))
}
