/**
 * The event stream: one ring of recent events, from which readers resume, and readers of which none may take much memory. Without readers
 * nothing is kept.
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Cancel, Clock } from '../core/clock.ts'
import type { ConsoleEventName, ConsoleEvents } from './contract/events.ts'
import { ConsoleFailure } from './failure.ts'

/** Events that readers can ask for. */
export type Topic = Exclude<ConsoleEventName, 'hello' | 'lost'>

/** All topics. */
export const topics: readonly Topic[] = [
  ...(['server', 'fault', 'approval', 'answered', 'audit', 'log', 'traffic', 'spent', 'job'] as const),
  ...(['turn', 'part', 'span', 'inbox', 'checkpoint', 'head'] as const),
]

/** Who reads, and what. */
export interface FeedReader {
  readonly session: string
  /** Whether it may see exact arguments and definitions. */
  readonly whole: boolean
  readonly topics: ReadonlySet<string>
  readonly lastEventId?: string | undefined
}

interface FeedParts {
  readonly clock: Clock
  /** The first event of each stream. */
  hello(session: string, oldest: string | undefined): ConsoleEvents['hello']
  /** Whether a session is still open. */
  alive(session: string): boolean
  /** Somebody began to read, or nobody does any more. */
  watched(watched: boolean): void
}

interface RingEntry {
  readonly n: number
  readonly topic: Topic
  readonly text: string
  /** What readers get that may not see payloads. */
  readonly reduced: string
}

interface Reader extends FeedReader {
  readonly response: ServerResponse
  /** The first event that it missed because it was slow. */
  lost: boolean
}

const ringLimit = 10_000
const mostBytes = 8 * 1024 * 1024
const mostReaders = 16
/** What may wait in the socket of a reader. */
const mostWaiting = 1024 * 1024
const beatMs = 15_000
/** How long events are kept for readers that were cut off. */
const lingerMs = 60_000

/** Publishes events to all readers, and lets them resume. */
export class Feed {
  /** New at each start; the first part of event ids. */
  readonly start = randomUUID()
  readonly #parts: FeedParts
  readonly #readers = new Set<Reader>()
  #ring: RingEntry[] = []
  #bytes = 0
  #last = 0
  #beat: Cancel | undefined
  #forget: Cancel | undefined
  #closed = false

  constructor(parts: FeedParts) {
    this.#parts = parts
  }

  /** Somebody reads, or did a moment ago. */
  get watched(): boolean {
    return this.#readers.size > 0 || this.#forget !== undefined
  }

  /** `reduced`: the payload for readers that may not see everything. */
  publish<Name extends Topic>(topic: Name, data: ConsoleEvents[Name], reduced: ConsoleEvents[Name] = data): void {
    if (!this.watched) return
    const n = ++this.#last
    const text = this.#frame(n, topic, data)
    const event = { n, topic, text, reduced: reduced === data ? text : this.#frame(n, topic, reduced) }
    this.#ring.push(event)
    this.#bytes += text.length
    while (this.#ring.length > ringLimit || this.#bytes > mostBytes) this.#bytes -= this.#ring.shift()?.text.length ?? 0
    for (const reader of this.#readers) this.#send(reader, event)
  }

  /** Answers a request with the stream. Throws where there are too many. */
  open(response: ServerResponse, reader: FeedReader, headers: Readonly<Record<string, string>>): void {
    if (this.#closed) throw new ConsoleFailure('UNAVAILABLE', 'The process is ending.', 'Start it again.')
    if (this.#readers.size >= mostReaders)
      throw new ConsoleFailure('TOO_MANY', `${mostReaders} streams are open already.`, 'Close other tabs of the console.', {
        retryAfter: beatMs,
      })
    this.#forget?.()
    this.#forget = undefined
    const one: Reader = { ...reader, response, lost: false }
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    const first = this.#readers.size === 0
    this.#readers.add(one)
    response.on('close', () => this.#gone(one))
    response.on('drain', () => this.#drained(one))
    // A reader that is gone is noticed by `close`; what was still written to it is nobody's loss.
    response.on('error', () => {})
    if (first) this.#parts.watched(true)
    response.write(named('hello', this.#parts.hello(reader.session, this.#oldest())))
    this.#resume(one)
    this.#beat ??= this.#parts.clock.setTimeout(() => this.#beats(), beatMs, true)
  }

  /** Ends the streams of a session. */
  end(session: string): void {
    for (const reader of this.#readers) if (reader.session === session) this.#end(reader)
  }

  /** Ends all streams. */
  close(): void {
    this.#closed = true
    this.#beat?.()
    this.#forget?.()
    const readers = [...this.#readers]
    this.#readers.clear()
    for (const { response } of readers) response.destroy()
  }

  #frame(n: number, topic: Topic, data: unknown): string {
    return `id: ${this.start}.${n}\nevent: ${topic}\ndata: ${JSON.stringify(data)}\n\n`
  }

  #oldest(): string | undefined {
    const [oldest] = this.#ring
    return oldest === undefined ? undefined : `${this.start}.${oldest.n}`
  }

  #resume(reader: Reader): void {
    const { lastEventId } = reader
    if (lastEventId === undefined || lastEventId === '') return
    const [start, number] = [lastEventId.slice(0, this.start.length), Number(lastEventId.slice(this.start.length + 1))]
    const oldest = this.#ring[0]?.n ?? this.#last + 1
    const known = start === this.start && Number.isSafeInteger(number) && number <= this.#last && number >= oldest - 1
    if (!known) return void reader.response.write(named('lost', this.#before()))
    for (const event of this.#ring.slice(Math.max(0, number + 1 - oldest))) this.#send(reader, event)
  }

  #before(): ConsoleEvents['lost'] {
    const before = this.#oldest()
    return before === undefined ? {} : { before }
  }

  #send(reader: Reader, { topic, text, reduced }: RingEntry): void {
    if (reader.lost || !reader.topics.has(topic)) return
    // Measured before: what does not fit is left out, never stored for this reader.
    if (reader.response.writableLength > mostWaiting) reader.lost = true
    else reader.response.write(reader.whole ? text : reduced)
  }

  #drained(reader: Reader): void {
    if (!reader.lost || !this.#readers.has(reader)) return
    reader.lost = false
    reader.response.write(named('lost', {}))
  }

  #beats(): void {
    this.#beat = this.#parts.clock.setTimeout(() => this.#beats(), beatMs, true)
    for (const reader of this.#readers) {
      if (!this.#parts.alive(reader.session)) this.#end(reader)
      else if (!reader.lost) reader.response.write(': \n\n')
    }
  }

  /** From here on nothing is written to it. */
  #end(reader: Reader): void {
    this.#gone(reader)
    reader.response.end()
  }

  #gone(reader: Reader): void {
    if (!this.#readers.delete(reader)) return
    if (this.#readers.size > 0 || this.#closed) return
    this.#forget?.()
    this.#forget = this.#parts.clock.setTimeout(() => this.#forgets(), lingerMs, true)
  }

  #forgets(): void {
    this.#forget = undefined
    this.#beat?.()
    this.#beat = undefined
    // What happens from now on is not numbered: the next reader that resumes must learn that it missed something.
    this.#last++
    this.#ring = []
    this.#bytes = 0
    this.#parts.watched(false)
  }
}

function named(event: 'hello' | 'lost', data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
