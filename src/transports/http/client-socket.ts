/**
 * HTTP/1.1 requests on plain sockets of our own, kept alive: a third of the processor time of node:http, whose requests, answers and
 * agents are made for far more than one message and its answer. What is said in `client-node.ts` on repeating a request holds here.
 */

import { connect, type Socket } from 'node:net'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { unreached } from '../unreached.ts'
import { AnswerCutter, type AnswerHead, type CutterUser } from './client-cutter.ts'
import type { NodeWireOptions } from './client-node.ts'
import { type AnswerReader, asConnectionError, type HttpWire, Paced, type WireCall, type WireRequest } from './client-wire.ts'

/** After a pause this long, what happened on the idle sockets is taken in before one is used. */
const pauseMs = 100

/** A wire to the origin of an http: address. */
export function socketWire(url: URL, options: NodeWireOptions = {}): HttpWire {
  return new SocketWire(url, options)
}

/** A socket with the call that it serves now. */
interface Line {
  readonly socket: Socket
  /** It was open once: what fails before never reached the server. */
  opened: boolean
  /** It has served a call before. */
  reused: boolean
  call: SocketCall | undefined
  idleSince: number
  keepMs: number
}

class SocketWire implements HttpWire {
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

// One request on a socket, and what comes back for it, told to a reader in the words of `client-wire.ts`.

type Cause = NodeJS.ErrnoException | ConnectionError | undefined

class SocketCall implements WireCall, CutterUser {
  done = false
  readonly #wire: SocketWire
  readonly #request: WireRequest
  readonly #reader: AnswerReader
  #line: Line | undefined = undefined
  #cutter: AnswerCutter | undefined = undefined
  #paced: Paced | undefined = undefined
  #repeated = false

  constructor(wire: SocketWire, request: WireRequest, reader: AnswerReader) {
    this.#wire = wire
    this.#request = request
    this.#reader = reader
  }

  /** Has got a socket. */
  go(line: Line): void {
    this.#line = line
    this.#cutter = new AnswerCutter(this)
    try {
      write(line, this.#request, this.#wire.address.host)
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      const error = new ConnectionError('refused', `The request could not be made: ${clip(why)}`, { cause })
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

  /** The server says no more; where that is too early, the end of the socket tells. */
  ended(): void {
    const cutter = this.#cutter
    if (cutter?.begun !== true || cutter.paused) return
    try {
      cutter.close()
    } catch (error) {
      this.#give(asConnectionError(error))
    }
  }

  /** The socket is gone. */
  broken(line: Line, cause: Cause): void {
    this.#line = undefined
    if (this.done) return
    if (this.#cutter?.begun === true) {
      const lost = new ConnectionError('lost', `The connection broke while the answer came: ${reason(cause)}`, { cause })
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
        'The server compressed its answer though identity was asked for; turn that off for this path',
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

  /** A stream of events is handed on so much a turn: meanwhile its socket waits. */
  #pacing(): Paced {
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
    return new Paced({ pause, resume }, { take, fail, end: () => this.#over(), heard: () => this.#reader.heard ?? 0 })
  }

  #over(): void {
    if (this.done) return
    this.done = true
    this.#reader.end()
  }

  /** It failed, and its socket with it. */
  #give(error: ConnectionError): void {
    this.#letGo()
    this.#fail(error)
  }

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

/** One piece, one call of the system. Throws where a header could not be one. */
function write({ socket }: Line, { method, path, headers, body }: WireRequest, host: string): void {
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n`
  let plain = asciiText.test(path)
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = [headers[i] as string, headers[i + 1] as string]
    if (!names.test(name)) throw new TypeError(`${JSON.stringify(clip(name))} is no name of a header`)
    if (!asciiText.test(value)) {
      if (!byteText.test(value)) throw new TypeError(`The header ${name} has characters that no header may have`)
      plain = false
    }
    head += `${name}: ${value}\r\n`
  }
  if (body === undefined) head += '\r\n'
  else head += `content-length: ${Buffer.byteLength(body)}\r\n\r\n`
  if (plain) return void socket.write(body === undefined ? head : head + body)
  // Header values travel as bytes.
  socket.write(head, 'latin1')
  if (body !== undefined) socket.write(body)
}

function unanswered(address: URL, line: Line, cause: NodeJS.ErrnoException | undefined): ConnectionError {
  if (!line.opened) return unreached(address, cause?.code, reason(cause), cause)
  const words = `The connection broke before the answer (${reason(cause)}); whether the server acted is unknown`
  return new ConnectionError('lost', words, { cause })
}

/** Closed by the server, with a word or without. */
function isReset(cause: Cause): boolean {
  return cause === undefined || ('code' in cause && (cause.code === 'ECONNRESET' || cause.code === 'EPIPE'))
}

function reason(cause: Cause): string {
  if (cause === undefined) return 'the server closed it'
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : clip(cause.message)
}
