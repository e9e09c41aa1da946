/**
 * Two connected ends within one process: the whole stack without a socket. Frames pass as text, in order, and always
 * later than they were sent, so that nothing works here that would not work over a wire.
 */
import type { Clock } from '../core/clock.ts'
import { type Caller, type Connection, ConnectionError, type Outgoing, type Sink } from '../jsonrpc/connection.ts'
import { Backlog, noRoom } from './framing/backlog.ts'
import { type CarrierLimits, serverCarrierLimits } from './framing/limits.ts'

interface MemoryOptions {
  /** The limits of both ends. An end that is not started counts as a slow reader. */
  readonly limits?: Partial<CarrierLimits>
  readonly clock?: Clock
}

/**
 * Two ends of one connection; what one sends the other hears, and the end of one is the end of both.
 *
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

class MemoryEnd implements Connection {
  readonly carrier = 'memory'
  readonly caller: Caller = { carrier: 'memory', connection: this }
  readonly #limits: CarrierLimits
  /** What we sent and the other end has not heard yet. */
  readonly #backlog: Backlog
  /** Its own, until the two are joined. */
  #peer: MemoryEnd = this
  #sink: Sink | undefined = undefined
  #scheduled = false
  /** Why frames can no longer be sent. */
  #refusal: ConnectionError | undefined = undefined
  #reason: Error | undefined = undefined
  #ended = false

  constructor(limits: CarrierLimits, clock: Clock | undefined) {
    this.#limits = limits
    this.#backlog = new Backlog({ full() {}, free() {}, stalled: reason => this.#fail(reason) }, limits, clock)
  }

  join(peer: MemoryEnd): void {
    this.#peer = peer
  }

  start(sink: Sink): void {
    this.#sink = sink
    this.#peer.#schedule()
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    const heard = this.#peer.#sink !== undefined
    // Only what waits for a slow reader is merged; an end that is started is none.
    if (this.#backlog.add(frame, heard ? undefined : outgoing?.merge)) {
      if (heard) this.#schedule()
      return undefined
    }
    const refusal = noRoom(this.#limits, outgoing?.id === undefined)
    if (outgoing?.id === undefined) this.#fail(refusal)
    return Promise.reject(refusal)
  }

  async close(): Promise<void> {
    this.#refuse(new ConnectionError('aborted', 'The connection was closed on this side'), undefined)
    this.#peer.#refuse(new ConnectionError('lost', 'The other end has closed the connection'), undefined)
    this.#schedule()
    await Promise.resolve()
  }

  /** The end without a farewell: what still waits is lost, and both ends hear why. */
  #fail(reason: ConnectionError): void {
    for (const end of [this, this.#peer]) {
      end.#backlog.clear()
      end.#refuse(reason, reason)
      end.#schedule()
    }
  }

  #refuse(refusal: ConnectionError, reason: Error | undefined): void {
    if (this.#refusal !== undefined) return
    this.#refusal = refusal
    this.#reason = reason
  }

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

  #end(): void {
    if (this.#ended || this.#sink === undefined) return
    this.#ended = true
    this.#sink.closed(this.#reason)
  }
}

/** A character takes at most three bytes, so that short frames need not be counted. */
function isLonger(frame: string, bytes: number): boolean {
  return frame.length * 3 > bytes && Buffer.byteLength(frame) > bytes
}

function tooLarge(limit: number) {
  const message = `The frame is longer than ${limit} bytes, which is this peer's limit (frameBytes). Send less, or in parts`
  return { kind: 'too-large', message } as const
}
