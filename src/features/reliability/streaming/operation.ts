/**
 * One streaming call in the process that runs it: chunks are written to a feed, so that readers can disconnect and return. Without a
 * reader it continues for a while and a little ahead, then pauses, and finally stops. A slow reader slows it down.
 */
import type { Cancel } from '../../../core/clock.ts'
import type { Feed } from '../../../core/feed/feed.ts'
import type { Ticket } from '../../../core/journal/operation.ts'
import { problem } from '../../../core/problem.ts'
import { type Exchange, onCallerGone } from '../../../engine/exchange.ts'
import { given } from '../../../jsonrpc/message.ts'
import { type Op, trim } from '../../../stores/store.ts'
import { checkpointNotFound, type EndedOperation, waitForFreeSpace } from './chunk-store.ts'
import { streamingExtension, type WireChunk } from './messages.ts'
import type { StreamingParts } from './server.ts'

/** A chunk in the feed. */
export interface Chunk {
  readonly data?: unknown
  readonly final?: true
  /** There was no room to store it; it was delivered once and cannot be replayed. */
  readonly lost?: true
}

const lost: Chunk = { lost: true }

interface OperationParts extends Pick<StreamingParts, 'clock' | 'tell' | 'graceMs'> {
  readonly id: string
  /** The call that runs it. */
  readonly exchange: Exchange
  readonly feed: Feed
  readonly ticket: Ticket
  /** Limit of stored characters. */
  readonly length: number
  /** Counts stored characters; false if the account's share is used up. */
  readonly weigh: (length: number) => boolean
  /** The checkpoint after this many chunks. */
  readonly token: (next: number) => Promise<string>
}

interface Reader {
  readonly exchange: Exchange
  /** The sequence of its next chunk. */
  at: number
  /** It has caught up, and gets new chunks directly. */
  live: boolean
}

const page = 20

/** One streaming call and its reader. */
export class StreamOperation {
  readonly id: string
  readonly #parts: OperationParts
  readonly #over = Promise.withResolvers<EndedOperation>()
  #written: number
  /** The length of each stored chunk, and the sequence of the first. */
  readonly #lengths: number[] = []
  #first: number
  #length = 0
  #reader: Reader | undefined
  /** How far a reader in another process has come. */
  #distant = 0
  readonly #ending = new AbortController()
  /** Set while there is no reader: cancels the timeout. */
  #grace: Cancel | undefined = undefined
  #change = Promise.withResolvers<void>()
  #stopped = false
  #ended = false
  readonly #withdraw = (why: Error): void => this.stop(why.message)

  /** `written`: chunks delivered before the call asked a question. */
  constructor(parts: OperationParts, written: number) {
    this.#parts = parts
    this.id = parts.id
    this.#written = written
    this.#first = written
    const { exchange } = parts
    this.#reader = this.#reads({ exchange, at: written, live: true })
    const { detached } = exchange.engine.inFlight
    // A task stops everything that is done for it.
    if (!detached.has(exchange)) detached.set(exchange, this.#withdraw)
  }

  /** Who receives messages now. */
  get reader(): Exchange | undefined {
    return this.#reader?.exchange
  }

  /** Whether nobody reads it here now. */
  get isUnread(): boolean {
    return this.#reader === undefined || this.#reader.exchange.aside?.attached === false
  }

  /** Aborts when it ends. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Characters that are kept. */
  get length(): number {
    return this.#length
  }

  get written(): number {
    return this.#written
  }

  /** Stores and delivers a chunk; resolves when there is room for another. */
  async tell(chunk: Chunk, length: number): Promise<void> {
    this.#goOn()
    const sequence = this.#written
    const { feed, token } = this.#parts
    const trimmed = this.#trimmed(length)
    const remembered = length === 0 || this.#lengths.at(-1) !== 0
    const [checkpoint] = await Promise.all([
      token(sequence + 1),
      feed.publish({ name: 'chunk', data: remembered ? chunk : lost }, trimmed),
    ])
    this.#written = sequence + 1
    const reader = this.#reader
    if (reader?.live === true && reader.at === sequence) this.#deliver(reader, chunk, checkpoint)
    await this.#capacity()
  }

  /** Lets a reader continue at a sequence, replacing the current one; resolves with the outcome. */
  async follow(exchange: Exchange, from: number): Promise<EndedOperation> {
    if (from > this.#written) throw checkpointNotFound()
    const before = this.#reader
    const reader = this.#reads({ exchange, at: from, live: false })
    this.#back()
    this.#reader = reader
    this.#changed()
    if (before !== undefined) leaveTo(before.exchange)
    if (exchange.signal.aborted) this.stop('The caller cancelled the operation')
    try {
      await this.#catchUp(reader)
    } catch (error) {
      this.#gone(reader)
      throw error
    }
    return this.#over.promise
  }

  /** Ends the operation with an outcome. */
  async settle(ended: EndedOperation, also: readonly Op[]): Promise<void> {
    this.#end()
    try {
      await this.#parts.ticket.settle(ended.status, ended, [this.#parts.feed.publishing({ name: 'end' }), ...also])
    } finally {
      this.#over.resolve(ended)
    }
  }

  /** The call asked its caller something; the answer continues it. */
  async pause(ms: number): Promise<void> {
    this.#end()
    await this.#parts.ticket.pause(ms).finally(() => this.#lose())
  }

  /** Readers are told that the checkpoint no longer exists. */
  #lose(): void {
    this.#over.promise.catch(() => undefined)
    this.#over.reject(checkpointNotFound())
  }

  /** Ends the operation without an outcome. */
  async drop(also: readonly Op[]): Promise<void> {
    this.#end()
    await this.#parts.ticket.release(also).finally(() => this.#lose())
  }

  /** Resolves when it is over, one way or the other. */
  get over(): Promise<unknown> {
    return this.#over.promise.catch(() => undefined)
  }

  stop(reason: string): void {
    this.#stopped = true
    this.#parts.exchange.stop(reason)
    this.#changed()
  }

  #reads(reader: Reader): Reader {
    const { exchange } = reader
    exchange.set(onCallerGone, () => this.#gone(reader))
    const cancelled = (): void => {
      if (this.#reader === reader) this.stop('The caller cancelled the operation')
    }
    exchange.signal.addEventListener('abort', cancelled, { once: true })
    return reader
  }

  /** Removes old chunks that exceed the limits. */
  #trimmed(length: number): readonly Op[] {
    const before = this.#first
    this.#lengths.push(length)
    let fits = this.#weigh(length) || length === 0
    while ((this.#length > this.#parts.length || !fits) && this.#lengths.length > 1) {
      fits = this.#weigh(-(this.#lengths.shift() ?? 0))
      this.#first++
    }
    if (!fits) this.#weigh(-(this.#lengths.splice(0, 1, 0)[0] ?? 0))
    return this.#first === before ? [] : [trim(this.#parts.feed.log, this.#first + 1)]
  }

  #weigh(by: number): boolean {
    this.#length += by
    return this.#parts.weigh(by)
  }

  async #catchUp(reader: Reader): Promise<void> {
    const { feed, token } = this.#parts
    while (this.#reader === reader && reader.at < this.#written) {
      const { occurrences, truncated } = await feed.read(reader.at, { limit: page })
      if (truncated) throw checkpointNotFound()
      for (const { data } of occurrences.filter(({ name }) => name === 'chunk')) {
        if ((data as Chunk).lost === true) throw checkpointNotFound()
        const checkpoint = await token(reader.at + 1)
        if (this.#reader !== reader) return
        this.#deliver(reader, data as Chunk, checkpoint)
        while (this.#reader === reader && !(await this.#taken(reader)));
      }
    }
    if (this.#reader !== reader) return
    reader.live = true
    this.#changed()
  }

  #deliver(reader: Reader, { data, final }: Chunk, checkpoint: string): void {
    const { exchange } = reader
    const { tell } = this.#parts
    const sequence = reader.at++
    if (!tell.asked(exchange)) return
    const chunk: WireChunk = {
      type: 'stream_chunk',
      operation_id: this.id,
      sequence,
      ...given({ data, is_final: final }),
      checkpoint_token: checkpoint,
    }
    if (tell.along(exchange, { _meta: { [streamingExtension]: chunk } })) return
    reader.at = sequence
    this.#gone(reader)
  }

  /** Waits until the reader is ready, or the stream may run ahead. */
  async #capacity(): Promise<void> {
    for (;;) {
      this.#goOn()
      const reader = this.#reader
      if (reader?.live === true) {
        if ((await this.#taken(reader)) && this.#reader === reader) return
      } else if (this.#ahead(reader?.at ?? this.#distant) <= this.#parts.length / 4) return
      else await this.#change.promise
    }
  }

  /** True when there was nothing to wait for. */
  async #taken(reader: Reader): Promise<boolean> {
    const waiting = waitForFreeSpace(reader.exchange)
    if (waiting === undefined) {
      if (reader.exchange.aside?.closed !== false) this.#gone(reader)
      return true
    }
    await Promise.race([waiting, this.#change.promise])
    return false
  }

  /** Characters after a chunk that nobody has read. */
  #ahead(at: number): number {
    let length = 0
    for (let i = this.#lengths.length - 1; i >= 0 && this.#first + i >= at; i--) length += this.#lengths[i] ?? 0
    return length
  }

  #gone(reader: Reader): void {
    if (this.#reader !== reader || this.#ended) return
    if (!reader.exchange.answered) reader.exchange.abandon()
    this.#reader = undefined
    this.#distant = reader.at
    this.#wait()
    this.#changed()
  }

  /** A reader in another process takes over. */
  readElsewhere(at: number | 'cancelled'): void {
    if (this.#ended) return
    if (at === 'cancelled') return this.stop('The caller cancelled the operation')
    const here = this.#reader
    if (here !== undefined) {
      leaveTo(here.exchange)
      this.#gone(here)
    }
    this.#distant = at
    this.#wait()
    this.#changed()
  }

  /** Starts the timeout until a reader comes. */
  #wait(): void {
    const { clock, graceMs } = this.#parts
    this.#grace?.()
    this.#grace = clock.setTimeout(() => this.stop('No caller resumed the operation in time'), graceMs, true)
  }

  #end(): void {
    this.#ended = true
    const { exchange } = this.#parts
    const { detached } = exchange.engine.inFlight
    if (detached.get(exchange) === this.#withdraw) detached.delete(exchange)
    this.#back()
    this.#ending.abort()
  }

  #back(): void {
    this.#grace?.()
    this.#grace = undefined
  }

  #goOn(): void {
    const { exchange } = this.#parts
    if (this.#stopped || exchange.cancelled) exchange.signal.throwIfAborted()
  }

  #changed(): void {
    this.#change.resolve()
    this.#change = Promise.withResolvers()
  }
}

/** One operation has one reader; the previous one is told to stop. */
function leaveTo(exchange: Exchange): void {
  if (exchange.answered) return
  exchange.engine.fail(
    exchange,
    problem('CHECKPOINT_NOT_FOUND', 'Another call has already resumed this operation', {
      suggestion: 'Read the remaining chunks from that call',
    }),
  )
}
