/** A connection over two byte streams, one frame a line: what both ends of stdio are made of. It runs over a socket as well. */

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
import { noRoom } from './backlog.ts'
import type { CarrierLimits } from './limits.ts'
import { Lines } from './lines.ts'
import { type StreamWrite, Writer } from './writer.ts'

/** What a connection over byte streams can be told. */
export interface StreamOptions {
  readonly carrier: Carrier
  readonly input: Readable
  readonly output: Writable
  /** Writes to `output`, where its own `write` is not to be used. */
  readonly write?: StreamWrite
  readonly limits: CarrierLimits
  /**
   * The end that serves takes nothing in while too much waits to go out: so its answers are bounded by what it takes in.
   * The end that asks goes on reading. If both did as the first, each would wait for the other.
   */
  readonly serving: boolean
  /** Called once, when the connection lets go of its streams. */
  readonly release: () => void
  readonly clock?: Clock | undefined
  /** The longest wait for the other end to take what was sent before the end, or to finish once it takes no more. */
  readonly lingerMs?: number | undefined
}

const defaultLingerMs = 2000

/** A connection over a pair of byte streams, one message a line. */
export class StreamConnection implements Connection {
  readonly carrier: Carrier
  readonly caller: Caller
  readonly #options: StreamOptions
  readonly #clock: Clock
  readonly #lingerMs: number
  readonly #writer: Writer
  #lines: Lines | undefined = undefined
  #sink: Sink | undefined = undefined
  /** Why frames can no longer be sent. */
  #refusal: ConnectionError | undefined = undefined
  #ending: Promise<void> | undefined = undefined
  #ended = false
  /** Resolves when all that came was heard, and the connection has ended. */
  readonly over: Promise<void>
  readonly #resolveOver: () => void
  #reason: Error | undefined = undefined
  #cancelLinger: Cancel | undefined = undefined
  /** Set while nothing is read for a time. */
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
    // A stream that was over before has no events left to tell it.
    if (input.readableEnded || input.destroyed) queueMicrotask(this.#readEnd)
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    const answers = outgoing?.id === undefined
    if (this.#writer.send(frame, outgoing?.merge, answers, outgoing?.spare)) return undefined
    const refusal = noRoom(this.#options.limits, answers)
    // Whoever asks hears that it could not be sent. But an answer must not just be missing: then the connection ends.
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
      // Read on without looking: the other end may have to be rid of its own before it takes ours.
      this.#options.input.off('data', this.#read).resume()
      this.#ending = this.#endWhenEmptied()
    }
    return this.#ending ?? Promise.resolve()
  }

  /** What was asked before the end is still answered, if that does not take too long. */
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

  /** The other end takes nothing more, but what it said before may still be on its way. */
  #writeEnd(reason: ConnectionError): void {
    if (this.#ended || this.#cancelLinger !== undefined) return
    this.#refusal ??= reason
    this.#writer.stop()
    this.#cancelLinger = this.#clock.setTimeout(() => this.#end(reason), this.#lingerMs, true)
  }

  /** Enough for this turn. */
  #rest(): void {
    this.#lines?.pause()
    this.#options.input.pause()
  }

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

  #full(): void {
    if (!this.#options.serving) return
    this.#lines?.pause()
    this.#options.input.pause()
  }

  #free(): void {
    if (!this.#options.serving || this.#ending !== undefined) return
    this.#lines?.resume()
    if (this.#lines?.paused === false) this.#options.input.resume()
  }

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
    // What the streams may still complain of concerns nobody, but unheard it would end the process.
    for (const stream of [input, output]) if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
    release()
    this.#sink?.closed(reason)
    this.#resolveOver()
  }
}

function ignore(): void {}

function nextRound(): Promise<void> {
  return new Promise(done => setImmediate(done))
}

function lost(doing: string, why: string, cause?: Error): ConnectionError {
  return new ConnectionError('lost', `${doing} failed: ${clip(why)}. The other end is gone`, { cause })
}

// Frames from an end that may send any number of them: so many are taken in one turn of the event loop, the rest in the next
// ones. The system gives us up to two mebibytes at once, and those may be tens of thousands of messages.

/** What may be taken in one turn, unless told otherwise. */
const usualPerTurn = 256
/** A frame counts by its length too. */
const charsPerUnit = 4_096

export class FrameTurns implements Pick<Sink, 'frame' | 'fault'> {
  readonly #sink: Pick<Sink, 'frame' | 'fault'>
  readonly #rest: () => void
  readonly #goOn: () => void
  readonly #perTurn: number
  #taken = 0
  #scheduled = false
  #resting = false

  /** `rest` is called when it is enough for this turn, `goOn` in the next. */
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
    // Where little comes, no turn is counted.
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
