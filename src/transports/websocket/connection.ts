/**
 * A WebSocket as a connection, the same for client and server: each frame is one text message. Holds what does not depend on
 * who opened the socket: queues, pings, pauses and the closing handshake.
 */
import { isAscii } from 'node:buffer'
import type { Duplex } from 'node:stream'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import {
  type Caller,
  type Connection,
  ConnectionError,
  type FrameFault,
  type Outgoing,
  type Sink,
} from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Id } from '../../jsonrpc/message.ts'
import { noCapacity } from '../framing/backlog.ts'
import type { CarrierLimits } from '../framing/limits.ts'
import { FrameTurns } from '../framing/stream.ts'
import { Sender } from './sender.ts'
import type { Socket } from './ws.ts'

/** Timeouts of a WebSocket. */
export interface WebSocketSettings {
  /** Interval of pings. If none is answered until the next one, the connection is given up. Default 30 s; 0: never. */
  readonly pingMs?: number
  /** The longest wait at the end for the peer to read what was sent, and again for the closing handshake. Default 2 s. */
  readonly lingerMs?: number
  readonly clock?: Clock
}

/** What differs between client and server. */
interface WebSocketRole {
  readonly limits: CarrierLimits
  /** A serving end stops reading while too much waits to be written; a client end keeps reading. */
  readonly serving: boolean
  /** Who sends the messages, on a server. */
  readonly caller?: Caller
  /** Opens the socket in `start`, on a client. */
  readonly open?: (connection: WebSocketConnection) => Promise<void>
}

/** The subprotocol name of MCP (Sec-WebSocket-Protocol). */
export const subprotocol = 'mcp'

/** Frames that a client handles per turn of the event loop, since it may have connections to many servers. */
const perTurn = 16

/** Close codes of a regular end; 1005 stands for a close frame without a code. */
const normalCloseCodes: ReadonlySet<number> = new Set([1000, 1001, 1005])

/** A connection over one WebSocket. */
export class WebSocketConnection implements Connection {
  readonly carrier = 'websocket'
  readonly caller: Caller
  readonly #role: WebSocketRole
  readonly #clock: Clock
  readonly #pingMs: number
  readonly #lingerMs: number
  readonly #sender: Sender
  #socket: Socket | undefined = undefined
  #isOpen = false
  #sink: Sink | undefined = undefined
  /** Receives frames: the sink, or `FrameTurns` in front of it. */
  #taker: Pick<Sink, 'frame' | 'fault'> | undefined = undefined
  /** Messages received while paused. */
  readonly #held: (string | FrameFault)[] = []
  #paused = true
  /** The other end has sent something since the last ping. */
  #alive = true
  #cancelPing: Cancel | undefined = undefined
  /** Set while reading is suspended by `rest`. */
  #cancelRest: Cancel | undefined = undefined
  /** Why nothing can be sent any more. */
  #refusal: ConnectionError | undefined = undefined
  /** The error that ended the socket, reported when it closes. */
  #failure: Error | undefined = undefined
  #closing: Promise<void> | undefined = undefined
  /** Set when the connection has ended, with the reason that the sink is told. */
  #end: { readonly reason: Error | undefined } | undefined = undefined
  readonly #ended = Promise.withResolvers<void>()
  /** Requests sent before the socket is open. */
  #early: Id[] | undefined = undefined
  /** The handshake waits for credentials. */
  #waits = false

  constructor(role: WebSocketRole, { pingMs = 30_000, lingerMs = 2000, clock = realClock }: WebSocketSettings) {
    this.#role = role
    this.caller = role.caller ?? { carrier: 'websocket', connection: this }
    this.#clock = clock
    this.#pingMs = pingMs
    this.#lingerMs = lingerMs
    const owner = { full: () => this.#full(), free: () => this.#free(), stalled: (reason: Error) => this.fail(reason) }
    this.#sender = new Sender(owner, role.limits, clock)
  }

  start(sink: Sink): void | Promise<void> {
    this.#sink = sink
    this.#taker = this.#role.serving ? sink : this.#inTurns(sink)
    const end = this.#end
    if (end !== undefined) queueMicrotask(() => sink.closed(end.reason))
    this.#resume()
    return this.#role.open?.(this)
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    if (!this.#isOpen && outgoing?.id !== undefined) this.#sendEarly(outgoing.id)
    const answers = outgoing?.id === undefined
    if (this.#sender.send(frame, outgoing?.merge, answers, outgoing?.spare)) return undefined
    const refusal = noCapacity(this.#role.limits, answers)
    // The caller of a request is told. A response must not be lost silently, so the connection ends.
    if (answers) this.fail(refusal)
    return Promise.reject(refusal)
  }

  get blocked(): boolean {
    return this.#sender.blocked
  }

  onFree(fn: () => void): void {
    this.#sender.onFree(fn)
  }

  rest(ms: number): void {
    if (this.#role.serving || this.#cancelRest !== undefined || this.#end !== undefined) return
    this.#cancelRest = this.#clock.setTimeout(() => {
      this.#cancelRest = undefined
      this.#goOn()
    }, ms)
    this.#pause()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /**
   * Closes the connection of a client whose token is no longer valid (close code 3000, "Unauthorized"). It may reconnect with
   * another token.
   */
  expire(): void {
    this.#closing ??= this.#close(3000, 'The token is no longer valid')
  }

  /** Resolves when the connection has ended, for whatever reason. */
  get gone(): Promise<void> {
    return this.#ended.promise
  }

  /** Suspends the deadlines of requests that wait for the handshake, while credentials are obtained. */
  hold(held: boolean): void {
    this.#waits = held
    for (const id of this.#early ?? []) this.#sink?.hold?.(id, held)
  }

  /** Sets the socket, which need not be open yet. */
  attach(socket: Socket): void {
    this.#socket = socket
    // With its default setting the package delivers one Buffer per message.
    socket.on('message', (data, isBinary) => this.#message(data as Buffer, !isBinary))
    socket.on('pong', () => this.#sign())
    socket.on('ping', data => {
      this.#sign()
      this.#sender.pong(data)
    })
    if (this.#end !== undefined) socket.terminate()
  }

  /** The socket is open; `stream` is the TCP or TLS socket below it. */
  opened(stream: Duplex): void {
    const socket = this.#socket
    if (socket === undefined) return
    socket.on('error', error => this.#broken(error))
    socket.on('close', (code, reason) => this.#closed(code, reason.toString()))
    this.#isOpen = true
    this.#early = undefined
    if (this.#paused) socket.pause()
    this.#sender.open(socket, stream)
    this.#schedulePing()
  }

  /** Remembers a request that was sent before the socket is open. */
  #sendEarly(id: Id): void {
    this.#early ??= []
    this.#early.push(id)
    if (this.#waits) this.#sink?.hold?.(id, true)
  }

  /** Ends the connection at once, without a closing handshake. */
  fail(reason: Error): void {
    this.#failure ??= reason
    this.#refusal ??= new ConnectionError('lost', 'The connection has failed', { cause: reason })
    this.#socket?.terminate()
    if (!this.#isOpen) this.#finish(reason)
  }

  #message(data: Buffer, isText: boolean): void {
    this.#sign()
    if (this.#closing !== undefined) return
    // Decoding ASCII as latin1 is the fastest way.
    const item = isText ? data.toString(isAscii(data) ? 'latin1' : 'utf8') : notText
    if (this.#paused) this.#held.push(item)
    else this.#deliver(item)
  }

  /** The other end is alive. */
  #sign(): void {
    this.#alive = true
  }

  /** The open socket failed; its close event follows. */
  #broken(error: Error): void {
    this.#failure ??= broken(error, this.#role.limits.frameBytes)
    // `ws` has already sent the close frame. A peer that broke the protocol does not decide how long we wait for its answer.
    this.#clock.setTimeout(() => this.#socket?.terminate(), this.#lingerMs, true)
  }

  /** The open socket has closed. */
  #closed(code: number, reason: string): void {
    // Messages that arrived before the end are delivered before it.
    if (this.#closing === undefined && !this.#role.serving) for (const item of this.#held.splice(0)) this.#deliver(item)
    if (this.#closing !== undefined) this.#finish(undefined)
    else if (this.#failure === undefined && this.#role.serving && normalCloseCodes.has(code)) this.#finish(undefined)
    else this.#finish(this.#failure ?? leave(code, reason))
  }

  async #close(code = 1000, reason?: string): Promise<void> {
    this.#refusal ??= new ConnectionError('aborted', 'The connection was closed on this side')
    if (this.#isOpen) {
      this.#socket?.resume()
      await settlesWithin(this.#sender.emptied(), this.#lingerMs, this.#clock)
      this.#socket?.close(code, reason)
      await settlesWithin(this.#ended.promise, this.#lingerMs, this.#clock)
    }
    this.#socket?.terminate()
    this.#finish(undefined)
  }

  #deliver(item: string | FrameFault): void {
    if (typeof item === 'string') this.#taker?.frame(item)
    else this.#taker?.fault(item)
  }

  /** Limits the frames per turn of the event loop. */
  #inTurns(sink: Sink): FrameTurns {
    return new FrameTurns(
      sink,
      () => this.#pause(),
      () => this.#goOn(),
      perTurn,
    )
  }

  /** Stops reading, for this turn or for longer. */
  #pause(): void {
    this.#paused = true
    this.#socket?.pause()
  }

  /** Continues reading, unless the connection ends or rests. */
  #goOn(): void {
    if (this.#end === undefined && this.#closing === undefined && this.#cancelRest === undefined) this.#resume()
  }

  /** The output queue is full: a server stops reading. */
  #full(): void {
    if (this.#role.serving) this.#pause()
  }

  #free(): void {
    if (this.#role.serving && this.#sink !== undefined && this.#closing === undefined) this.#resume()
  }

  /** Delivers what was held, then reads on. Delivery may pause it again. */
  #resume(): void {
    this.#paused = false
    this.#alive = true
    while (!this.#paused) {
      const item = this.#held.shift()
      if (item === undefined) break
      this.#deliver(item)
    }
    if (!this.#paused) this.#socket?.resume()
  }

  #schedulePing(): void {
    if (this.#pingMs > 0) this.#cancelPing = this.#clock.setTimeout(() => this.#ping(), this.#pingMs, true)
  }

  #ping(): void {
    // While reading is paused, answers to pings are not seen either.
    if (!this.#alive && !this.#paused) {
      this.fail(new ConnectionError('lost', `The other side did not answer a ping within ${this.#pingMs} ms (pingMs)`))
      return
    }
    this.#alive = false
    this.#socket?.ping()
    this.#schedulePing()
  }

  /** Releases everything and tells the sink, once. */
  #finish(reason: Error | undefined): void {
    if (this.#end !== undefined) return
    this.#end = { reason }
    this.#refusal ??= new ConnectionError('lost', 'The connection has ended', { cause: reason })
    this.#cancelPing?.()
    this.#cancelRest?.()
    this.#sender.stop()
    this.#held.length = 0
    this.#ended.resolve()
    this.#sink?.closed(reason)
  }
}

const notText: FrameFault = {
  kind: 'not-text',
  message: 'The WebSocket message is binary. Send one JSON-RPC message as text in each WebSocket message',
}

/** Translates an error of `ws`. After a bad message RFC 6455 requires the connection to end, so there is no recovery. */
function broken(cause: Error, limit: number): ConnectionError {
  const code = 'code' in cause ? cause.code : undefined
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return new ConnectionError('too-large', `The other side sent a message of more than ${limit} bytes (frameBytes)`, { cause })
  }
  if (code === 'WS_ERR_INVALID_UTF8')
    return new ConnectionError('protocol', 'The other side sent a message that is not valid UTF-8', { cause })
  const kind = typeof code === 'string' && code.startsWith('WS_ERR_') ? 'protocol' : 'lost'
  return new ConnectionError(kind, `The WebSocket failed: ${clip(cause.message)}`, { cause })
}

/** The error for a socket that the other end closed, or that broke (1006). */
function leave(code: number, reason: string): ConnectionError {
  const why = reason === '' ? '' : `: ${clip(reason)}`
  const how = code === 1006 ? 'The connection broke' : `The other side closed the WebSocket with code ${code}`
  return new ConnectionError('lost', `${how}${why}`)
}
