/**
 * Two connected ends within one process: the whole stack without a socket. Frames pass as text, in order, and always in a later
 * microtask than the send, so that code which works here also works over a network.
 */
import type { Clock } from '../core/clock.ts'
import { type Caller, type Connection, ConnectionError, type Outgoing, type Sink } from '../jsonrpc/connection.ts'
import { Backlog, noCapacity } from './framing/backlog.ts'
import { type CarrierLimits, serverCarrierLimits } from './framing/limits.ts'

/** Options of a connection in memory. */
interface MemoryOptions {
  /** Limits of both ends. Default: see the reference of limits. */
  readonly limits?: Partial<CarrierLimits>
  /** Measures how long a reader may stall. Default: the real clock. */
  readonly clock?: Clock
}

/**
 * Creates two connected ends of a connection: what one end sends, the other receives. When one end is closed, so is the other.
 * @example
 * const [client, server] = memoryPair()
 */
export function memoryPair(options: MemoryOptions = {}): [Connection, Connection] {
  const limits = serverCarrierLimits(options.limits)
  const left = new MemoryEnd(limits, options.clock)
  const right = new MemoryEnd(limits, options.clock)
  left.join(right)
  right.join(left)
  return [left, right]
}

/** One end of the pair. Frames wait in the backlog of their sender until the other end has started. */
class MemoryEnd implements Connection {
  readonly carrier = 'memory'
  readonly caller: Caller = { carrier: 'memory', connection: this }
  readonly #limits: CarrierLimits
  /** Frames that were sent here and not yet delivered to the other end. */
  readonly #backlog: Backlog
  /** The other end; this one itself until `join`. */
  #peer: MemoryEnd = this
  /** Receives the frames of the other end, once started. */
  #sink: Sink | undefined = undefined
  /** A microtask that delivers is already queued. */
  #scheduled = false
  /** Why frames can no longer be sent. */
  #refusal: ConnectionError | undefined = undefined
  /** What `closed` is told: undefined after a regular close. */
  #reason: Error | undefined = undefined
  /** The sink was told of the end. */
  #ended = false

  constructor(limits: CarrierLimits, clock: Clock | undefined) {
    this.#limits = limits
    this.#backlog = new Backlog({ full() {}, free() {}, stalled: reason => this.#fail(reason) }, limits, clock)
  }

  /** Sets the other end. Called once, right after construction. */
  join(peer: MemoryEnd): void {
    this.#peer = peer
  }

  start(sink: Sink): void {
    this.#sink = sink
    this.#peer.#schedule()
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    // Frames are merged only while they wait for a slow reader, and a started end reads at once.
    const heard = this.#peer.#sink !== undefined
    // Only what waits for a slow reader is merged; an end that is started is none.
    if (this.#backlog.add(frame, heard ? undefined : outgoing?.merge)) {
      if (heard) this.#schedule()
      return undefined
    }
    const refusal = noCapacity(this.#limits, outgoing?.id === undefined)
    // A refused request is reported to its caller. A response or notification has nobody to report to, so the connection ends.
    if (outgoing?.id === undefined) this.#fail(refusal)
    return Promise.reject(refusal)
  }

  async close(): Promise<void> {
    this.#refuse(new ConnectionError('aborted', 'The connection was closed on this side'), undefined)
    this.#peer.#refuse(new ConnectionError('lost', 'The other side has closed the connection'), undefined)
    this.#schedule()
    await Promise.resolve()
  }

  /** Ends both sides at once: waiting frames are discarded, and both sinks are told the reason. */
  #fail(reason: ConnectionError): void {
    for (const end of [this, this.#peer]) {
      end.#backlog.clear()
      end.#refuse(reason, reason)
      end.#schedule()
    }
  }

  /** From now on, sends are rejected with this error. Only the first call counts. */
  #refuse(refusal: ConnectionError, reason: Error | undefined): void {
    if (this.#refusal !== undefined) return
    this.#refusal = refusal
    this.#reason = reason
  }

  /** Delivers in a microtask, never synchronously within `send`. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    queueMicrotask(this.#pump)
  }

  readonly #pump = (): void => {
    this.#scheduled = false
    this.#deliver()
    if (this.#refusal === undefined) return
    this.#end()
    this.#peer.#end()
  }

  /** Hands all waiting frames to the sink of the other end. */
  #deliver(): void {
    const peer = this.#peer
    const sink = peer.#sink
    if (sink === undefined) return
    if (peer.#ended) this.#backlog.clear()
    for (let frame = this.#backlog.takeFrame(); frame !== undefined; frame = this.#backlog.takeFrame()) {
      if (isLonger(frame, this.#limits.frameBytes)) sink.fault(tooLarge(this.#limits.frameBytes))
      else sink.frame(frame)
    }
  }

  /** Tells the sink, once, that the connection has ended. */
  #end(): void {
    if (this.#ended || this.#sink === undefined) return
    this.#ended = true
    this.#sink.closed(this.#reason)
  }
}

/** A UTF-16 unit takes at most three bytes in UTF-8, so short frames need no exact count. */
function isLonger(frame: string, bytes: number): boolean {
  return frame.length * 3 > bytes && Buffer.byteLength(frame) > bytes
}

function tooLarge(limit: number) {
  const message = `The frame is longer than ${limit} bytes, which is this peer's limit (frameBytes). Send less, or in parts`
  return { kind: 'too-large', message } as const
}
