/** A WebSocket as a connection, the same at both ends: each frame is one text message. */
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
import { noRoom } from '../framing/backlog.ts'
import type { CarrierLimits } from '../framing/limits.ts'
import { FrameTurns } from '../framing/stream.ts'
import { Sender } from './sender.ts'
import type { Socket, SocketEvents } from './ws.ts'

/** Limits and waits of a WebSocket. */
export interface WebSocketSettings {
  /** How often the other end is asked for a sign of life; if there is none until the next time, it is given up. Default 30 s; 0: never. */
  readonly pingMs?: number
  /** The longest wait at the end for the other side to take what was sent, and again for its farewell. Default 2 s. */
  readonly lingerMs?: number
  readonly clock?: Clock
}

interface WebSocketRole {
  readonly limits: CarrierLimits
  /** The end that serves takes nothing in while too much waits to go out; the end that asks goes on reading. */
  readonly serving: boolean
  readonly caller?: Caller
  /** Opens the socket, where that is done by `start`. */
  readonly open?: (connection: WebSocketConnection) => Promise<void>
}

/** The name under which MCP is offered on a WebSocket (Sec-WebSocket-Protocol). */
export const subprotocol = 'mcp'

/** What the end that asks takes in one turn of the event loop: it has other servers to listen to. */
const perTurn = 16

/** Codes by which the other end takes leave in good order; 1005 stands for none. */
const farewells: ReadonlySet<number> = new Set([1000, 1001, 1005])

/** A connection over one WebSocket. */
export class WebSocketConnection implements Connection, SocketEvents {
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
  /** Where frames go: to the sink, so many in a turn. */
  #taker: Pick<Sink, 'frame' | 'fault'> | undefined = undefined
  /** What came while nothing is taken in. */
  readonly #held: (string | FrameFault)[] = []
  #paused = true
  #alive = true
  #cancelPing: Cancel | undefined = undefined
  /** Set while nothing is read for a time. */
  #cancelRest: Cancel | undefined = undefined
  /** Why frames can no longer be sent. */
  #refusal: ConnectionError | undefined = undefined
  #failure: Error | undefined = undefined
  #closing: Promise<void> | undefined = undefined
  /** Set when it has ended, with the reason that is told. */
  #end: { readonly reason: Error | undefined } | undefined = undefined
  readonly #ended = Promise.withResolvers<void>()
  /** Requests that were sent before the socket is open. */
  #early: Id[] | undefined = undefined
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
    const refusal = noRoom(this.#role.limits, answers)
    // Whoever asks hears that it could not be sent. But an answer must not just be missing: then the connection ends.
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

  /** Takes leave of a client whose token has expired; it may come back with another (close code 3000, "Unauthorized"). */
  expire(): void {
    this.#closing ??= this.#close(3000, 'The token is no longer valid')
  }

  /** Resolves when it has ended, however it did. */
  get gone(): Promise<void> {
    return this.#ended.promise
  }

  /** The opening waits for something on this side, and with it what is to be sent. */
  hold(held: boolean): void {
    this.#waits = held
    for (const id of this.#early ?? []) this.#sink?.hold?.(id, held)
  }

  /** The socket to be used; it need not be open yet. */
  attach(socket: Socket): void {
    this.#socket = socket
    if (this.#end !== undefined) socket.terminate()
  }

  /** The socket is open; `stream` is the one below it. */
  opened(stream: Duplex): void {
    if (this.#socket === undefined) return
    this.#isOpen = true
    this.#early = undefined
    if (this.#paused) this.#socket.pause()
    this.#sender.open(this.#socket, stream)
    this.#schedulePing()
  }

  #sendEarly(id: Id): void {
    this.#early ??= []
    this.#early.push(id)
    if (this.#waits) this.#sink?.hold?.(id, true)
  }

  /** Ends without a farewell, for this reason. */
  fail(reason: Error): void {
    this.#failure ??= reason
    this.#refusal ??= new ConnectionError('lost', 'The connection has failed', { cause: reason })
    this.#socket?.terminate()
    if (!this.#isOpen) this.#finish(reason)
  }

  message(data: Buffer, isText: boolean): void {
    this.#alive = true
    if (this.#closing !== undefined) return
    const item = isText ? data.toString(isAscii(data) ? 'latin1' : 'utf8') : notText
    if (this.#paused) this.#held.push(item)
    else this.#deliver(item)
  }

  sign(): void {
    this.#alive = true
  }

  pinged(data: Buffer): void {
    this.#alive = true
    this.#sender.pong(data)
  }

  error(error: Error): void {
    this.#failure ??= broken(error, this.#role.limits.frameBytes)
    // The farewell is already sent; whoever broke the rules does not decide how long we wait for the answer to it.
    this.#clock.setTimeout(() => this.#socket?.terminate(), this.#lingerMs, true)
  }

  ended(code: number, reason: string): void {
    // What came before the end is heard before it.
    if (this.#closing === undefined && !this.#role.serving) for (const item of this.#held.splice(0)) this.#deliver(item)
    if (this.#closing !== undefined) this.#finish(undefined)
    else if (this.#failure === undefined && this.#role.serving && farewells.has(code)) this.#finish(undefined)
    else this.#finish(this.#failure ?? leave(code, reason))
  }

  async #close(code?: number, reason?: string): Promise<void> {
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

  #inTurns(sink: Sink): FrameTurns {
    return new FrameTurns(
      sink,
      () => this.#pause(),
      () => this.#goOn(),
      perTurn,
    )
  }

  /** Enough for this turn, or for longer. */
  #pause(): void {
    this.#paused = true
    this.#socket?.pause()
  }

  #goOn(): void {
    if (this.#end === undefined && this.#closing === undefined && this.#cancelRest === undefined) this.#resume()
  }

  #full(): void {
    if (this.#role.serving) this.#pause()
  }

  #free(): void {
    if (this.#role.serving && this.#sink !== undefined && this.#closing === undefined) this.#resume()
  }

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
    // While nothing is taken in, signs of life are not seen either.
    if (!this.#alive && !this.#paused) {
      this.fail(new ConnectionError('lost', `The other end gave no sign of life for ${this.#pingMs} ms (pingMs)`))
      return
    }
    this.#alive = false
    this.#socket?.ping()
    this.#schedulePing()
  }

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

/** RFC 6455 has the connection end after such a message, so that there is no going on with the next. */
function broken(cause: Error, limit: number): ConnectionError {
  const code = 'code' in cause ? cause.code : undefined
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return new ConnectionError('too-large', `The other end sent a message of more than ${limit} bytes (frameBytes)`, { cause })
  }
  if (code === 'WS_ERR_INVALID_UTF8')
    return new ConnectionError('protocol', 'The other end sent a message that is not UTF-8', { cause })
  const kind = typeof code === 'string' && code.startsWith('WS_ERR_') ? 'protocol' : 'lost'
  return new ConnectionError(kind, `The WebSocket failed: ${clip(cause.message)}`, { cause })
}

function leave(code: number, reason: string): ConnectionError {
  const why = reason === '' ? '' : `: ${clip(reason)}`
  const how = code === 1006 ? 'The connection broke off' : `The other end closed the WebSocket with code ${code}`
  return new ConnectionError('lost', `${how}${why}`)
}
