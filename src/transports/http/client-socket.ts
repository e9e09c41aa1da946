/**
 * HTTP/1.1 requests over plain sockets with keep-alive, for http: addresses. It takes a third of the processor time of
 * node:http, which does far more than one message and its answer need. The rules for repeating a request are those of
 * `client-node.ts`.
 */

import { connect, type Socket } from 'node:net'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { unreachableError } from '../unreachable.ts'
import type { NodeWireOptions } from './client-node.ts'
import { type AnswerHead, HttpResponseParser } from './client-parser.ts'
import {
  type AnswerReader,
  asConnectionError,
  ChunkPacer,
  type HttpWire,
  type WireCall,
  type WireRequest,
} from './client-wire.ts'

/** After an idle time this long, the event loop runs first, so that sockets which the server closed meanwhile are noticed. */
const pauseMs = 100

/** A socket, with the call that uses it now. */
interface Line {
  readonly socket: Socket
  /** The socket was connected: failures before that never reached the server. */
  opened: boolean
  /** It has served a call before. */
  reused: boolean
  call: SocketCall | undefined
  /** When it became idle, and how long it may stay so. */
  idleSince: number
  keepMs: number
}

/** A wire to the origin of an http: address: the pool of sockets, and the queue of calls that wait for one. */
export class SocketWire implements HttpWire {
  readonly retryReset: boolean
  readonly address: URL
  readonly #clock: Clock
  readonly #host: string
  readonly #port: number
  readonly #connectMs: number
  readonly #keepMs: number
  /** The most sockets at once. */
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
      // Only in the second turn is it certain that the event loop has polled its sockets.
      setImmediate(() => setImmediate(() => this.place(call)))
    } else this.place(call)
    return call
  }

  /** Gives the call a socket, now or when one becomes free. */
  place(call: SocketCall): void {
    if (call.done) return
    const line = this.#take() ?? (this.#lines.size < this.#most ? this.#open() : undefined)
    if (line === undefined) this.#waiting.add(call)
    else this.#serve(line, call)
  }

  /** The call no longer waits for a socket. */
  leave(call: SocketCall): void {
    this.#waiting.delete(call)
  }

  /** The answer is complete; `keepMs`: how long the server keeps the socket open, 0 if it does not. */
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

  /** Closes a socket that cannot be reused. */
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

  /** The most recently used idle socket that the server has not closed yet. */
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

  /** Closes sockets that were idle for too long. */
  #sweepIdle(): void {
    this.#sweep = undefined
    const now = this.#clock.now()
    const idleSockets = this.#idle.splice(0)
    for (const line of idleSockets) {
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
      // Data without a request: it would be taken for the answer to the next one.
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

  /** The socket has closed: its call fails, and a waiting call can have a new one. */
  #gone(line: Line, failed: NodeJS.ErrnoException | ConnectionError | undefined): void {
    this.#lines.delete(line)
    const { call } = line
    line.call = undefined
    call?.broken(line, failed)
    const next = this.#next()
    if (next !== undefined) this.place(next)
  }
}

// One request on a socket, and its answer.

type Cause = NodeJS.ErrnoException | ConnectionError | undefined

/** One call: writes its request, and passes the parts of the answer to its reader. */
class SocketCall implements WireCall {
  done = false
  readonly #wire: SocketWire
  readonly #request: WireRequest
  readonly #reader: AnswerReader
  #line: Line | undefined = undefined
  #cutter: HttpResponseParser | undefined = undefined
  #paced: ChunkPacer | undefined = undefined
  #repeated = false

  constructor(wire: SocketWire, request: WireRequest, reader: AnswerReader) {
    this.#wire = wire
    this.#request = request
    this.#reader = reader
  }

  /** A socket is available. */
  go(line: Line): void {
    this.#line = line
    this.#cutter = new HttpResponseParser(this)
    try {
      write(line, this.#request, this.#wire.address.host)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      const error = new ConnectionError('refused', `The request could not be sent: ${clip(why)}`, { cause })
      queueMicrotask(() => this.#give(error))
    }
  }

  drop(): void {
    if (this.done) return
    this.done = true
    this.#wire.leave(this)
    this.#letGo()
  }

  received(bytes: Buffer): void {
    try {
      this.#cutter?.push(bytes)
    } catch (error) {
      this.#give(asConnectionError(error))
    }
  }

  /** The server has finished sending. If that is too early, the close event of the socket reports it. */
  ended(): void {
    const cutter = this.#cutter
    if (cutter?.begun !== true || cutter.paused) return
    try {
      cutter.close()
    } catch (error) {
      this.#give(asConnectionError(error))
    }
  }

  /** The socket has closed before the answer was complete. */
  broken(line: Line, cause: Cause): void {
    this.#line = undefined
    if (this.done) return
    if (this.#cutter?.begun === true) {
      const lost = new ConnectionError('lost', `The connection broke during the response: ${reason(cause)}`, { cause })
      if (this.#paced === undefined) this.#fail(lost)
      else this.#paced.fail(lost)
    } else if (this.#wire.retryReset && !this.#repeated && line.reused && isReset(cause) && this.#cutter?.holds === false) {
      this.#repeated = true
      this.#wire.place(this)
    } else this.#fail(cause instanceof ConnectionError ? cause : unanswered(this.#wire.address, line, cause))
  }

  head({ status, headers }: AnswerHead): void {
    const encoding = headers.get('content-encoding') ?? 'identity'
    if (encoding !== 'identity')
      throw new ConnectionError(
        'protocol',
        'The server compressed the response although the request accepts only identity; disable compression for this path',
      )
    if (headers.get('content-type')?.startsWith('text/event-stream') === true) this.#paced = this.#pacing()
    this.#reader.head(status, headers)
  }

  data(bytes: Buffer): void {
    if (this.done) return
    if (this.#paced === undefined) this.#reader.chunk(bytes)
    else this.#paced.take(bytes)
  }

  end({ keepMs }: AnswerHead): void {
    const line = this.#line
    this.#line = undefined
    if (line !== undefined) {
      if (line.socket.isPaused()) line.socket.resume()
      this.#wire.release(line, this.#cutter?.holds === true ? 0 : keepMs)
    }
    if (this.#paced === undefined) this.#over()
    else this.#paced.end()
  }

  /** Limits how much of an event stream is handled per turn; meanwhile the socket is paused. */
  #pacing(): ChunkPacer {
    const cutter = this.#cutter
    const pause = (): void => {
      if (cutter !== undefined) cutter.paused = true
      this.#line?.socket.pause()
    }
    const resume = (): void => {
      if (cutter === undefined) return
      cutter.paused = false
      this.#line?.socket.resume()
      try {
        cutter.run()
      } catch (error) {
        this.#give(asConnectionError(error))
      }
    }
    const take = (bytes: Uint8Array): void => {
      if (!this.done) this.#reader.chunk(bytes)
    }
    const fail = (error: Error): void => this.#fail(asConnectionError(error))
    return new ChunkPacer({ pause, resume }, { take, fail, end: () => this.#over(), heard: () => this.#reader.heard ?? 0 })
  }

  #over(): void {
    if (this.done) return
    this.done = true
    this.#reader.end()
  }

  /** Fails the call and closes its socket. */
  #give(error: ConnectionError): void {
    this.#letGo()
    this.#fail(error)
  }

  /** Closes the socket of this call. */
  #letGo(): void {
    const line = this.#line
    this.#line = undefined
    if (this.#cutter !== undefined) this.#cutter.paused = true
    if (line !== undefined) this.#wire.drop(line)
  }

  #fail(error: ConnectionError): void {
    if (this.done) return
    this.done = true
    this.#reader.fail(error)
  }
}

const names = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const asciiText = /^[\t\x20-\x7e]*$/
const byteText = /^[\t\x20-\x7e\x80-\xff]*$/

/** Writes the request in one system call where possible. Throws if a header is invalid. */
function write({ socket }: Line, { method, path, headers, body }: WireRequest, host: string): void {
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n`
  let plain = asciiText.test(path)
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i] as string, headers[i + 1] as string]
    if (!names.test(name)) throw new TypeError(`${JSON.stringify(clip(name))} is not a valid header name`)
    if (!asciiText.test(value)) {
      if (!byteText.test(value)) throw new TypeError(`The header ${name} contains characters that headers must not contain`)
      plain = false
    }
    head += `${name}: ${value}\r\n`
  }
  if (body === undefined) head += '\r\n'
  else head += `content-length: ${Buffer.byteLength(body)}\r\n\r\n`
  if (plain) return void socket.write(body === undefined ? head : head + body)
  // Header values are bytes, not UTF-8 text.
  socket.write(head, 'latin1')
  if (body !== undefined) socket.write(body)
}

function unanswered(address: URL, line: Line, cause: NodeJS.ErrnoException | undefined): ConnectionError {
  if (!line.opened) return unreachableError(address, cause?.code, reason(cause), cause)
  const words = `The connection broke before the response (${reason(cause)}); it is unknown whether the server ran the request`
  return new ConnectionError('lost', words, { cause })
}

/** The server closed the socket, with or without an error. */
function isReset(cause: Cause): boolean {
  return cause === undefined || ('code' in cause && (cause.code === 'ECONNRESET' || cause.code === 'EPIPE'))
}

function reason(cause: Cause): string {
  if (cause === undefined) return 'the server closed it'
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : clip(cause.message)
}
