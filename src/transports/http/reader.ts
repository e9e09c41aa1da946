/** One reader of a stream: an outlet, and in front of it a queue that is bounded in bytes and, when full, in time. */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { byteLength } from './event.ts'
import type { Streams } from './streams.ts'

export interface ReaderOwner {
  /** True if no answer is awaited on the stream, so that it may end whenever the server stops. */
  readonly listening: boolean
  /** The reader is gone or was let go. */
  readerGone(reader: HttpStreamReader): void
  /** All that waited for the reader was taken. */
  readerFree?(reader: HttpStreamReader): void
}

export class HttpStreamReader implements OutletOwner {
  readonly #table: Streams
  readonly #outlet: StreamOutlet
  readonly #owner: ReaderOwner
  /** Exists while the outlet takes nothing. */
  #queue: EventQueue | undefined = undefined
  #ending = false

  constructor(table: Streams, outlet: StreamOutlet, owner: ReaderOwner) {
    this.#table = table
    this.#outlet = outlet
    this.#owner = owner
    outlet.owner = this
    table.enter(outlet)
  }

  get listening(): boolean {
    return this.#owner.listening
  }

  get blocked(): boolean {
    return this.#queue !== undefined
  }

  /**
   * Writes, or queues. A reader whose queue is too full is cut, unless the text is one that it must get (`vital`) or can
   * do without (`spare`): the answer that follows a flood of log messages still reaches whoever reads.
   */
  write(text: string, vital: boolean, merge?: string, spare = false): void {
    const queue = this.#queue
    if (queue === undefined) {
      if (!this.#outlet.write(text)) this.#queue = new EventQueue()
    } else if (!vital && this.#overflows(queue, text)) {
      if (!spare) this.#outlet.cut()
    } else {
      const before = queue.bytes
      queue.add(text, merge)
      this.#table.waiting += queue.bytes - before
      if (queue.bytes > this.#table.limits.queueBytes) this.#outlet.watch(true)
    }
  }

  /** Lets the reader go after what waits and this text. */
  end(text?: string): void {
    if (this.#queue === undefined) this.#outlet.end(text)
    else {
      this.#ending = true
      if (text !== undefined) this.write(text, true)
      this.#outlet.watch(true)
    }
  }

  cut(): void {
    this.#outlet.cut()
  }

  drained(): void {
    const queue = this.#queue
    if (queue === undefined) return
    const before = queue.bytes
    let open = true
    for (let text = queue.shift(); text !== undefined; text = open ? queue.shift() : undefined) open = this.#outlet.write(text)
    this.#table.waiting += queue.bytes - before
    if (queue.bytes <= this.#table.limits.queueBytes && !this.#ending) this.#outlet.watch(false)
    if (queue.size > 0 || !open) return
    this.#queue = undefined
    if (this.#ending) this.#outlet.end()
    else this.#owner.readerFree?.(this)
  }

  gone(): void {
    this.#table.leave(this.#outlet)
    this.#table.waiting -= this.#queue?.bytes ?? 0
    this.#queue = undefined
    this.#owner.readerGone(this)
  }

  #overflows(queue: EventQueue, text: string): boolean {
    const { queueBytes, queueCeiling, queueTotal } = this.#table.limits
    if (queue.bytes <= queueBytes) return false
    return queue.bytes + byteLength(text) > queueCeiling || this.#table.waiting > queueTotal
  }
}

// Events that wait for a slow reader. One with a merge key replaces the one that waits under the same key, so that
// progress does not pile up; it moves to the end, so that event ids keep rising.

interface Item {
  readonly text: string
  readonly bytes: number
}

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

  /** Takes the oldest one out. */
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

// The open end of one event stream: a socket, or the body of a web Response. What both faces give to a stream.

export interface StreamOutlet {
  /** Takes text. False: the reader lags behind, and nothing more should be written before `drained`. */
  write(text: string): boolean
  /** Writes the last text and lets the reader go once it has read everything. */
  end(text?: string): void
  /** Severs the reader at once. */
  cut(): void
  /** While on, the reader is cut if it takes nothing for too long. `end` turns it on by itself. */
  watch(on: boolean): void
  /** True between a write that gave false and `drained`. */
  readonly blocked: boolean
  /** Who writes here now. */
  owner: OutletOwner | undefined
  /** In whose count of streams this one is. */
  readonly tenant: Tenant | undefined
  /** Sweeps since the last write: tells a silent stream without reading a clock at every write. */
  silence: number
}

/** Whose open streams are counted together: what one user listens to by GET and what answers its POSTs, apart. */
export interface Tenant {
  /** The user, or the network of whoever did not sign in. */
  readonly account: string
  readonly key: string
  /** The limit that holds for it. Undefined: it has a share of all. */
  readonly limit: 'streamsPerPrincipal' | 'answersPerPrincipal' | undefined
  /** When what proved who it is expires: its streams end soon after. */
  readonly expiresAt: number | undefined
  /** Whether what proved who it is still does: its streams end when it does not. Absent: nobody can tell. */
  holds?(): Awaitable<boolean>
}

export interface OutletOwner {
  /** True if no answer is awaited on it, so that it may end whenever the server stops. */
  readonly listening: boolean
  /** The outlet takes text again. */
  drained(): void
  /** The reader is gone or was let go: called exactly once. */
  gone(): void
}
