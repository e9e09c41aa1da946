/**
 * HTTP/1.1 requests on plain sockets of our own, kept alive: a third of the processor time of node:http, whose requests, answers and
 * agents are made for far more than one message and its answer. What is said in `client-node.ts` on repeating a request holds here.
 */
import { connect, type Socket } from 'node:net'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import type { NodeWireOptions } from './client-node.ts'
import { SocketCall } from './client-socket-call.ts'
import type { AnswerReader, HttpWire, WireCall, WireRequest } from './client-wire.ts'

/** After a pause this long, what happened on the idle sockets is taken in before one is used. */
const pauseMs = 100

/** A wire to the origin of an http: address. */
export function socketWire(url: URL, options: NodeWireOptions = {}): HttpWire {
  return new SocketWire(url, options)
}

/** A socket with the call that it serves now. */
export interface Line {
  readonly socket: Socket
  /** It was open once: what fails before never reached the server. */
  opened: boolean
  /** It has served a call before. */
  reused: boolean
  call: SocketCall | undefined
  idleSince: number
  keepMs: number
}

export class SocketWire implements HttpWire {
  readonly retryReset: boolean
  readonly address: URL
  readonly #clock: Clock
  readonly #host: string
  readonly #port: number
  readonly #connectMs: number
  readonly #keepMs: number
  readonly #most: number
  readonly #lines = new Set<Line>()
  readonly #idle: Line[] = []
  readonly #waiting = new Set<SocketCall>()
  #usedAt = 0
  #sweep: Cancel | undefined = undefined
  #closed = false

  constructor(url: URL, options: NodeWireOptions) {
    const { connectTimeoutMs = 10_000, keepAliveMs = 4_000, maxSockets = 256, clock = realClock } = options
    this.retryReset = options.retryReset ?? false
    this.address = url
    this.#clock = clock
    this.#host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    this.#port = url.port === '' ? 80 : Number(url.port)
    this.#connectMs = connectTimeoutMs
    this.#keepMs = keepAliveMs
    this.#most = maxSockets
  }

  send(request: WireRequest, reader: AnswerReader): WireCall {
    const call = new SocketCall(this, request, reader)
    if (this.#idle.length > 0 && this.#clock.now() - this.#usedAt > pauseMs) {
      // The second turn is the first that is sure to come after the loop has looked at its sockets.
      setImmediate(() => setImmediate(() => this.place(call)))
    } else this.place(call)
    return call
  }

  /** Gives the call a socket, now or when one is free. */
  place(call: SocketCall): void {
    if (call.done) return
    const line = this.#take() ?? (this.#lines.size < this.#most ? this.#open() : undefined)
    if (line === undefined) this.#waiting.add(call)
    else this.#serve(line, call)
  }

  /** The call wants no socket any more. */
  leave(call: SocketCall): void {
    this.#waiting.delete(call)
  }

  /** The answer is whole; `keepMs`: for how long the server keeps the socket. */
  release(line: Line, keepMs: number | undefined): void {
    const now = this.#clock.now()
    this.#usedAt = now
    line.call = undefined
    if (this.#closed || keepMs === 0 || line.socket.destroyed || line.socket.readableEnded) return this.drop(line)
    line.keepMs = Math.min(keepMs ?? this.#keepMs, this.#keepMs)
    line.reused = true
    const next = this.#next()
    if (next !== undefined) return this.#serve(line, next)
    line.idleSince = now
    line.socket.unref()
    this.#idle.push(line)
    this.#sweep ??= this.#clock.setTimeout(() => this.#sweepIdle(), this.#keepMs, true)
  }

  /** The socket is of no more use. */
  drop(line: Line): void {
    line.call = undefined
    line.socket.destroy()
  }

  close(): void {
    this.#closed = true
    this.#sweep?.()
    this.#sweep = undefined
    for (const line of this.#idle.splice(0)) line.socket.destroy()
  }

  #serve(line: Line, call: SocketCall): void {
    line.call = call
    this.#usedAt = this.#clock.now()
    call.go(line)
  }

  #next(): SocketCall | undefined {
    for (const call of this.#waiting) {
      this.#waiting.delete(call)
      if (!call.done) return call
    }
    return undefined
  }

  /** The one that idles for the shortest time, if the server still has it. */
  #take(): Line | undefined {
    const now = this.#clock.now()
    for (let line = this.#idle.pop(); line !== undefined; line = this.#idle.pop()) {
      if (!line.socket.destroyed && now - line.idleSince < line.keepMs) {
        line.socket.ref()
        return line
      }
      line.socket.destroy()
    }
    return undefined
  }

  #sweepIdle(): void {
    this.#sweep = undefined
    const now = this.#clock.now()
    const kept = this.#idle.splice(0)
    for (const line of kept) {
      if (line.socket.destroyed || now - line.idleSince >= line.keepMs) line.socket.destroy()
      else this.#idle.push(line)
    }
    if (this.#idle.length > 0) this.#sweep = this.#clock.setTimeout(() => this.#sweepIdle(), this.#keepMs, true)
  }

  #open(): Line {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true })
    const line: Line = { socket, opened: false, reused: false, call: undefined, idleSince: 0, keepMs: this.#keepMs }
    this.#lines.add(line)
    let failed: NodeJS.ErrnoException | ConnectionError | undefined
    const giveUp = (): void => {
      failed = new ConnectionError(
        'refused',
        `No connection to ${this.address.origin} within ${this.#connectMs} ms; check the address, or raise connectTimeoutMs`,
      )
      socket.destroy()
    }
    const cancel = this.#clock.setTimeout(giveUp, this.#connectMs)
    socket.once('connect', () => {
      cancel()
      line.opened = true
    })
    socket.on('data', bytes => {
      // An answer to nothing: whoever sends it would answer the next call with it.
      if (line.call === undefined) socket.destroy()
      else line.call.received(bytes)
    })
    socket.on('end', () => line.call?.ended())
    socket.on('error', error => {
      failed ??= error
    })
    socket.on('close', () => {
      cancel()
      this.#gone(line, failed)
    })
    return line
  }

  #gone(line: Line, failed: NodeJS.ErrnoException | ConnectionError | undefined): void {
    this.#lines.delete(line)
    const { call } = line
    line.call = undefined
    call?.broken(line, failed)
    const next = this.#next()
    if (next !== undefined) this.place(next)
  }
}
