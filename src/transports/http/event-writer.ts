/**
 * One reader of an event stream: an outlet (the response body) and a queue in front of it, bounded in bytes and in time. Also
 * holds the contract of outlets, which node:http and fetch implement.
 */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { byteLength } from './event.ts'
import type { Streams } from './streams.ts'

/** The stream that a reader belongs to. */
interface ReaderOwner {
  /** True if no answer is pending on the stream, so that it may end when the server shuts down. */
  readonly listening: boolean
  /** The reader has disconnected or was released. */
  readerGone(reader: EventStreamWriter): void
  /** The reader has taken everything that waited. */
  readerFree?(reader: EventStreamWriter): void
}

/** Writes events to an outlet, and queues them while the outlet is full. */
export class EventStreamWriter implements ResponseStreamOwner {
  readonly #table: Streams
  readonly #output: ResponseStream
  readonly #owner: ReaderOwner
  /** Exists only while the outlet is full. */
  #queue: EventQueue | undefined = undefined
  /** The stream ends after what is queued. */
  #ending = false

  constructor(table: Streams, output: ResponseStream, owner: ReaderOwner) {
    this.#table = table
    this.#output = output
    this.#owner = owner
    output.owner = this
    table.enter(output)
  }

  get listening(): boolean {
    return this.#owner.listening
  }

  get blocked(): boolean {
    return this.#queue !== undefined
  }

  /**
   * Writes or queues. If the queue is too full the reader is disconnected, unless the text is `vital` (always queued) or
   * `spare` (dropped): so the answer after a flood of log messages still arrives.
   */
  write(text: string, vital: boolean, merge?: string, spare = false): void {
    const queue = this.#queue
    if (queue === undefined) {
      if (!this.#output.write(text)) this.#queue = new EventQueue()
    } else if (!vital && this.#overflows(queue, text)) {
      if (!spare) this.#output.cut()
    } else {
      const before = queue.bytes
      queue.add(text, merge)
      this.#table.waiting += queue.bytes - before
      if (queue.bytes > this.#table.limits.queueBytes) this.#output.watch(true)
    }
  }

  /** Ends the response after what is queued and this text. */
  end(text?: string): void {
    if (this.#queue === undefined) this.#output.end(text)
    else {
      this.#ending = true
      if (text !== undefined) this.write(text, true)
      this.#output.watch(true)
    }
  }

  cut(): void {
    this.#output.cut()
  }

  drained(): void {
    const queue = this.#queue
    if (queue === undefined) return
    const before = queue.bytes
    let open = true
    for (let text = queue.shift(); text !== undefined; text = open ? queue.shift() : undefined) open = this.#output.write(text)
    this.#table.waiting += queue.bytes - before
    if (queue.bytes <= this.#table.limits.queueBytes && !this.#ending) this.#output.watch(false)
    if (queue.size > 0 || !open) return
    this.#queue = undefined
    if (this.#ending) this.#output.end()
    else this.#owner.readerFree?.(this)
  }

  gone(): void {
    this.#table.leave(this.#output)
    this.#table.waiting -= this.#queue?.bytes ?? 0
    this.#queue = undefined
    this.#owner.readerGone(this)
  }

  /** True if the text exceeds the limit of this reader or, when all readers together use too much, `queueBytes`. */
  #overflows(queue: EventQueue, text: string): boolean {
    const { queueBytes, queueCeiling, queueTotal } = this.#table.limits
    if (queue.bytes <= queueBytes) return false
    return queue.bytes + byteLength(text) > queueCeiling || this.#table.waiting > queueTotal
  }
}

// The queue. An event with a merge key replaces the waiting one with the same key, so that progress does not pile up. It moves
// to the end, so that event ids stay in order.

/** One event that waits. */
interface Item {
  readonly text: string
  readonly bytes: number
}

/** Events that wait for a slow reader, in order. */
export class EventQueue {
  /** Bytes that wait. */
  bytes = 0
  readonly #items = new Map<string | number, Item>()
  #next = 0

  get size(): number {
    return this.#items.size
  }

  add(text: string, merge: string | undefined): void {
    const key = merge ?? this.#next++
    this.#remove(key)
    const item = { text, bytes: byteLength(text) }
    this.#items.set(key, item)
    this.bytes += item.bytes
  }

  /** Removes the oldest event. */
  shift(): string | undefined {
    for (const [key, { text }] of this.#items) {
      this.#remove(key)
      return text
    }
    return undefined
  }

  #remove(key: string | number): void {
    this.bytes -= this.#items.get(key)?.bytes ?? 0
    this.#items.delete(key)
  }
}

// The contract of an outlet: a node:http response, or the body of a web Response.

/** The response body that an event stream is written to. */
export interface ResponseStream {
  /** Writes text. False: the reader is slow, and nothing more should be written before `drained`. */
  write(text: string): boolean
  /** Writes the last text, and ends the response once everything is read. */
  end(text?: string): void
  /** Disconnects the reader at once. */
  cut(): void
  /** While on, the reader is disconnected if it takes nothing for too long. `end` turns it on. */
  watch(on: boolean): void
  /** True between a write that returned false and `drained`. */
  readonly blocked: boolean
  /** Who currently writes here. */
  owner: ResponseStreamOwner | undefined
  /** Who this stream is counted for. */
  readonly tenant: StreamAccount | undefined
  /** Timer ticks since the last write, so that no clock must be read at every write. */
  silence: number
}

/** Who open streams are counted for. GET streams of a user are counted apart from those that answer its POSTs. */
export interface StreamAccount {
  /** The user, or the network of an anonymous caller. */
  readonly account: string
  /** What streams are counted by. */
  readonly key: string
  /** The limit that applies. Undefined: only a share of the total. */
  readonly limit: 'streamsPerPrincipal' | 'answersPerPrincipal' | undefined
  /** When the token expires; its streams end soon after. */
  readonly expiresAt: number | undefined
  /** Whether the token is still valid; its streams end when it is not. Absent: this cannot be checked. */
  holds?(): Awaitable<boolean>
}

/** Receives the events of an outlet. */
export interface ResponseStreamOwner {
  /** True if no answer is awaited on it, so that it may end whenever the server stops. */
  readonly listening: boolean
  /** The outlet accepts text again. */
  drained(): void
  /** The reader has disconnected or was released. Called exactly once. */
  gone(): void
}
