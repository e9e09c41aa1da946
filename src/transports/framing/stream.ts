/**
 * A connection over two byte streams, one frame per line: the base of both ends of stdio; it works over a socket as well. Also
 * holds `FrameTurns`, which limits how many frames are handled per turn of the event loop; the WebSocket carrier uses it too.
 */

import type { Readable, Writable } from 'node:stream'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import {
  type Caller,
  type Carrier,
  type Connection,
  ConnectionError,
  type Outgoing,
  type Sink,
} from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { noCapacity } from './backlog.ts'
import type { CarrierLimits } from './limits.ts'
import { Lines } from './lines.ts'
import { type StreamWrite, Writer } from './writer.ts'

/** The streams of a connection, its role and its limits. */
export interface StreamOptions {
  readonly carrier: Carrier
  readonly input: Readable
  readonly output: Writable
  /** Writes to `output` in place of `output.write`, where that is diverted (standard output). */
  readonly write?: StreamWrite
  readonly limits: CarrierLimits
  /**
   * A serving end stops reading while too much waits to be written, which bounds its answers. A client end keeps reading: if
   * both stopped, each would wait for the other.
   */
  readonly serving: boolean
  /** Called once, when the connection releases its streams. */
  readonly release: () => void
  readonly clock?: Clock | undefined
  /** The longest wait at the end for the peer to read what was sent, or to finish writing after it stopped reading. */
  readonly lingerMs?: number | undefined
}

const defaultLingerMs = 2000

/** A connection over a pair of byte streams, one message per line. */
export class StreamConnection implements Connection {
  readonly carrier: Carrier
  readonly caller: Caller
  readonly #options: StreamOptions
  readonly #clock: Clock
  readonly #lingerMs: number
  readonly #writer: Writer
  #lines: Lines | undefined = undefined
  #sink: Sink | undefined = undefined
  /** Why nothing can be sent any more. */
  #refusal: ConnectionError | undefined = undefined
  /** A regular end is in progress. */
  #ending: Promise<void> | undefined = undefined
  #ended = false
  /** Resolves when everything received was delivered and the connection has ended. */
  readonly over: Promise<void>
  readonly #resolveOver: () => void
  #reason: Error | undefined = undefined
  #cancelLinger: Cancel | undefined = undefined
  /** Set while reading is suspended by `rest`. */
  #cancelRest: Cancel | undefined = undefined

  constructor(options: StreamOptions) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.#resolveOver = resolve
    this.carrier = options.carrier
    this.caller = { carrier: options.carrier, connection: this }
    this.#options = options
    this.#clock = options.clock ?? realClock
    this.#lingerMs = options.lingerMs ?? defaultLingerMs
    const owner = { full: () => this.#full(), free: () => this.#free(), stalled: (reason: Error) => this.#end(reason) }
    this.#writer = new Writer({ ...options, owner })
    options.output.on('error', this.#writeFailed).on('close', this.#writeClosed)
  }

  start(sink: Sink): void {
    this.#sink = sink
    if (this.#ended) return queueMicrotask(() => sink.closed(this.#reason))
    const { input, serving } = this.#options
    const turns = serving
      ? sink
      : new FrameTurns(
          sink,
          () => this.#rest(),
          () => this.#goOn(),
        )
    this.#lines = new Lines(turns, this.#options.limits.frameBytes, !serving)
    input.on('data', this.#read).on('end', this.#readEnd).on('close', this.#readEnd).on('error', this.#readFailed)
    // A stream that ended earlier emits no event for it.
    if (input.readableEnded || input.destroyed) queueMicrotask(this.#readEnd)
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    const answers = outgoing?.id === undefined
    if (this.#writer.send(frame, outgoing?.merge, answers, outgoing?.spare)) return undefined
    const refusal = noCapacity(this.#options.limits, answers)
    // The caller of a request is told that it was not sent. A lost response would leave the peer waiting, so the connection
    // ends.
    if (answers) this.#end(refusal)
    return Promise.reject(refusal)
  }

  get blocked(): boolean {
    return this.#writer.blocked
  }

  onFree(fn: () => void): void {
    this.#writer.onFree(fn)
  }

  rest(ms: number): void {
    if (this.#options.serving || this.#cancelRest !== undefined || this.#ended) return
    this.#cancelRest = this.#clock.setTimeout(() => {
      this.#cancelRest = undefined
      this.#goOn()
    }, ms)
    this.#rest()
  }

  close(): Promise<void> {
    if (this.#ending === undefined && !this.#ended) {
      this.#refusal ??= new ConnectionError('aborted', 'The connection was closed on this side')
      this.#lines?.pause()
      // Keep reading without parsing: the peer may have to finish its own write before it reads ours.
      this.#options.input.off('data', this.#read).resume()
      this.#ending = this.#endWhenEmptied()
    }
    return this.#ending ?? Promise.resolve()
  }

  /** Requests received before the end of input are still answered, within `lingerMs`. */
  async #endWhenAnswered(): Promise<void> {
    await nextRound()
    await settlesWithin(this.#sink?.quiet?.() ?? Promise.resolve(), this.#lingerMs, this.#clock)
    await nextRound()
    await this.#endWhenEmptied()
  }

  async #endWhenEmptied(): Promise<void> {
    await settlesWithin(this.#writer.emptied(), this.#lingerMs, this.#clock)
    this.#end(undefined)
  }

  readonly #read = (chunk: Buffer | string): void => {
    const lines = this.#lines
    if (lines === undefined) return
    const before = lines.delivered
    this.#writer.hold()
    try {
      lines.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    } finally {
      this.#writer.release(lines.delivered - before)
    }
  }

  readonly #readEnd = (): void => {
    if (this.#ended || this.#ending !== undefined) return
    // What came before the end is read first.
    if (!this.#options.serving && this.#lines?.paused === true) return
    this.#lines?.end()
    // Who asks no more may still read: what this last round answers is sent.
    if (this.#options.serving && this.#refusal === undefined) this.#ending = this.#endWhenAnswered()
    else this.#end(this.#refusal)
  }

  readonly #readFailed = (cause: Error): void => this.#end(lost('Reading', cause.message, cause))
  readonly #writeFailed = (cause: Error): void => this.#writeEnd(lost('Writing', cause.message, cause))
  readonly #writeClosed = (): void => this.#writeEnd(lost('Writing', 'the stream is closed'))

  /** The peer no longer reads, but what it wrote before may still arrive. */
  #writeEnd(reason: ConnectionError): void {
    if (this.#ended || this.#cancelLinger !== undefined) return
    this.#refusal ??= reason
    this.#writer.stop()
    this.#cancelLinger = this.#clock.setTimeout(() => this.#end(reason), this.#lingerMs, true)
  }

  /** Stops reading, for this turn or for the time of `rest`. */
  #rest(): void {
    this.#lines?.pause()
    this.#options.input.pause()
  }

  /** Continues reading in a later turn. */
  #goOn(): void {
    if (this.#ended || this.#ending !== undefined || this.#cancelRest !== undefined) return
    const { input } = this.#options
    this.#writer.hold()
    this.#lines?.resume()
    this.#writer.release(0)
    if (this.#lines?.paused !== false) return
    input.resume()
    if (input.readableEnded || input.destroyed) this.#readEnd()
  }

  /** The output queue is full: a serving end stops reading. */
  #full(): void {
    if (!this.#options.serving) return
    this.#lines?.pause()
    this.#options.input.pause()
  }

  /** The output queue has room again. */
  #free(): void {
    if (!this.#options.serving || this.#ending !== undefined) return
    this.#lines?.resume()
    if (this.#lines?.paused === false) this.#options.input.resume()
  }

  /** Releases everything and tells the sink, once. */
  #end(reason: Error | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#reason = reason
    this.#refusal ??= new ConnectionError('lost', 'The connection has ended', reason === undefined ? {} : { cause: reason })
    this.#lines?.pause()
    this.#cancelLinger?.()
    this.#cancelRest?.()
    this.#writer.stop()
    const { input, output, release } = this.#options
    input.off('data', this.#read).off('end', this.#readEnd).off('close', this.#readEnd).off('error', this.#readFailed)
    output.off('error', this.#writeFailed).off('close', this.#writeClosed)
    // Later errors of the streams are of no interest, but an 'error' event without a listener would end the process.
    for (const stream of [input, output]) if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
    release()
    this.#sink?.closed(reason)
    this.#resolveOver()
  }
}

function ignore(): void {}

/** Lets frames and answers that are already scheduled be processed first. */
function nextRound(): Promise<void> {
  return new Promise(done => setImmediate(done))
}

function lost(doing: string, why: string, cause?: Error): ConnectionError {
  return new ConnectionError('lost', `${doing} failed: ${clip(why)}. The other side has disconnected`, { cause })
}

// Limits how many frames of one peer are handled per turn of the event loop. The system delivers up to two mebibytes at once,
// which may be tens of thousands of messages.

/** Units per turn by default; a short frame is about one unit. */
const usualPerTurn = 256
/** A frame counts one more unit for this many characters. */
const charsPerUnit = 4_096

/** Passes frames to a sink, and pauses the source when a turn has had enough of them. */
export class FrameTurns implements Pick<Sink, 'frame' | 'fault'> {
  readonly #sink: Pick<Sink, 'frame' | 'fault'>
  readonly #rest: () => void
  readonly #goOn: () => void
  readonly #perTurn: number
  #taken = 0
  #scheduled = false
  #resting = false

  /** `rest` is called when the turn has had enough, `goOn` in the next one. */
  constructor(sink: Pick<Sink, 'frame' | 'fault'>, rest: () => void, goOn: () => void, perTurn = usualPerTurn) {
    this.#sink = sink
    this.#rest = rest
    this.#goOn = goOn
    this.#perTurn = perTurn
  }

  readonly frame = (text: string): void => {
    this.#take(1 + text.length / charsPerUnit)
    this.#sink.frame(text)
  }

  readonly fault: Sink['fault'] = fault => {
    this.#take(1)
    this.#sink.fault(fault)
  }

  #take(units: number): void {
    this.#taken += units
    // Under low load no timer is needed: the count then spans several turns, which only makes it stricter.
    if (this.#taken < this.#perTurn / 2) return
    if (!this.#scheduled) {
      this.#scheduled = true
      setImmediate(this.#next)
    }
    if (this.#taken < this.#perTurn || this.#resting) return
    this.#resting = true
    this.#rest()
  }

  readonly #next = (): void => {
    this.#scheduled = false
    this.#taken = 0
    if (!this.#resting) return
    this.#resting = false
    this.#goOn()
  }
}
