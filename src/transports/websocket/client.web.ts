/**
 * The client side of a WebSocket in browsers and Workers, over the platform's own `WebSocket`. Separate from `client.ts`,
 * because that class can neither send headers nor pause reading, and does not report when buffered data was sent.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import { type Caller, type Connection, ConnectionError, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type CarrierLimits, clientCarrierLimits } from '../framing/limits.ts'
import { unreachableError } from '../unreachable.ts'

/** The options of a client's WebSocket on this platform. */
interface WebSocketClientOptions {
  /** Not supported here: a connection with headers is refused. */
  readonly headers?: Readonly<Record<string, string>>
  readonly limits?: Partial<CarrierLimits>
  /** The longest wait for the server to answer the handshake. Default 10 s. */
  readonly handshakeMs?: number
  /** The longest wait at the end for the closing handshake. Default 2 s. */
  readonly lingerMs?: number
  /** Not supported here: a connection with an authorizer is refused. */
  readonly authorizer?: Credentials
  readonly clock?: Clock
}

/** The name under which MCP is offered on a WebSocket (Sec-WebSocket-Protocol). */
const subprotocol = 'mcp'

/** How often the send buffer is polled: the platform has no event for it. */
const lookMs = 20

/** Connects to a server at a `ws:` or `wss:` address. `start` opens the socket. */
export function webSocketClientConnection(url: string | URL, options: WebSocketClientOptions = {}): Connection {
  if (options.authorizer !== undefined || Object.keys(options.headers ?? {}).length > 0)
    throw new ConnectionError(
      'refused',
      'WebSockets of this platform cannot send headers, and therefore no credentials. Connect to the http(s):// address of the server instead',
    )
  return new WebSocketClient(new URL(url), options)
}

/** The connection over the platform's socket. */
class WebSocketClient implements Connection {
  readonly carrier = 'websocket'
  readonly caller: Caller = { carrier: 'websocket', connection: this }
  readonly #url: URL
  readonly #limits: CarrierLimits
  readonly #handshakeMs: number
  readonly #lingerMs: number
  readonly #clock: Clock
  #sink: Sink | undefined = undefined
  #socket: WebSocket | undefined = undefined
  /** Frames sent before the socket is open; undefined afterwards. */
  #early: string[] | undefined = []
  #earlyChars = 0
  /** Frames received while reading is suspended by `rest`. */
  #held: string[] | undefined = undefined
  #heldChars = 0
  #closing: Promise<void> | undefined = undefined
  /** Why the connection failed; the cause of later rejections. */
  #failure: ConnectionError | undefined = undefined
  #over = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(url: URL, { limits, handshakeMs = 10_000, lingerMs = 2_000, clock = realClock }: WebSocketClientOptions) {
    this.#url = url
    this.#limits = clientCarrierLimits(limits)
    this.#handshakeMs = handshakeMs
    this.#lingerMs = lingerMs
    this.#clock = clock
  }

  async start(sink: Sink): Promise<void> {
    this.#sink = sink
    try {
      // A browser closes the socket if the server does not select the subprotocol, without saying so. So every failure is
      // retried once without it.
      await this.#open([subprotocol]).catch(() => this.#open([]))
    } catch (error) {
      const reason = error instanceof ConnectionError ? error : unreachableError(this.#url, undefined, String(error), error)
      this.#finish(reason)
      throw reason
    }
  }

  /** One attempt to open the socket. */
  #open(protocols: string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#over) throw new ConnectionError('aborted', 'The connection was closed before it was open')
      const socket = new WebSocket(this.#url, protocols)
      this.#socket = socket
      const fail = (why: string): void => {
        cancel()
        socket.onopen = null
        socket.close()
        reject(unreachableError(this.#url, undefined, why, undefined))
      }
      const cancel = this.#clock.setTimeout(() => fail(`no response within ${this.#handshakeMs} ms`), this.#handshakeMs)
      socket.onopen = () => {
        cancel()
        socket.onmessage = ({ data }) => this.#hear(data)
        socket.onclose = ({ code, reason }) => this.#finish(this.#closing === undefined ? leave(code, reason) : undefined)
        resolve()
        for (const frame of this.#early ?? []) socket.send(frame)
        this.#early = undefined
      }
      socket.onclose = ({ code }) => fail(`the WebSocket was refused (${code})`)
    })
  }

  async send(frame: string, outgoing?: Outgoing): Promise<void> {
    if (this.#over || this.#closing !== undefined)
      throw new ConnectionError('lost', 'The connection has ended', { cause: this.#failure })
    const waiting = this.#waiting
    const { queueCeiling, spareCeiling } = this.#limits
    if (outgoing?.spare === true && waiting > 0 && waiting + frame.length > spareCeiling) return
    if (waiting > 0 && waiting + frame.length > queueCeiling) {
      const refusal = new ConnectionError(
        'too-large',
        `More than ${queueCeiling} bytes (queueCeiling) are queued for the other side`,
      )
      // The caller of a request is told. A response must not be lost silently, so the connection ends.
      if (outgoing?.id === undefined) this.#fail(refusal)
      throw refusal
    }
    if (this.#early === undefined) this.#socket?.send(frame)
    else {
      this.#early.push(frame)
      this.#earlyChars += frame.length
    }
  }

  /** Data that was sent and has not left yet. */
  get #waiting(): number {
    return this.#early === undefined ? (this.#socket?.bufferedAmount ?? 0) : this.#earlyChars
  }

  get blocked(): boolean {
    return this.#waiting > this.#limits.queueBytes
  }

  onFree(fn: () => void): void {
    if (this.#over) return
    if (this.blocked) this.#clock.setTimeout(() => this.onFree(fn), lookMs)
    else queueMicrotask(fn)
  }

  rest(ms: number): void {
    if (this.#held !== undefined || this.#over) return
    this.#held = []
    this.#clock.setTimeout(() => this.#goOn(), ms)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#socket?.close(1000)
    if (!this.#over && this.#early === undefined) await settlesWithin(this.#ended.promise, this.#lingerMs, this.#clock)
    this.#finish(undefined)
  }

  /** Handles one message: checks its type and size, delivers it or holds it. */
  #hear(data: unknown): void {
    if (this.#closing !== undefined || this.#over) return
    const { frameBytes, queueCeiling } = this.#limits
    if (typeof data !== 'string') return this.#sink?.fault(notText)
    if (data.length > frameBytes)
      return this.#fail(
        new ConnectionError('too-large', `The other side sent a message of more than ${frameBytes} bytes (frameBytes)`),
      )
    if (this.#held === undefined) return this.#sink?.frame(data)
    this.#held.push(data)
    this.#heldChars += data.length
    if (this.#heldChars > queueCeiling + frameBytes)
      this.#fail(new ConnectionError('too-large', 'The other side sends faster than messages can be processed'))
  }

  /** Delivers what was held while reading was suspended. */
  #goOn(): void {
    const held = this.#held ?? []
    this.#held = undefined
    this.#heldChars = 0
    for (const frame of held) this.#hear(frame)
  }

  #fail(reason: ConnectionError): void {
    this.#failure ??= reason
    this.#socket?.close()
    this.#finish(reason)
  }

  #finish(reason: ConnectionError | undefined): void {
    if (this.#over) return
    // Messages that arrived before the end are delivered before it.
    if (this.#closing === undefined && this.#failure === undefined) this.#goOn()
    this.#over = true
    this.#failure ??= reason
    this.#ended.resolve()
    this.#sink?.closed(reason)
  }
}

const notText = {
  kind: 'not-text',
  message: 'The WebSocket message is binary. Send one JSON-RPC message as text in each WebSocket message',
} as const

/** The error for a socket that the other end closed, or that broke (1006). */
function leave(code: number, reason: string): ConnectionError {
  const how = code === 1006 ? 'The connection broke' : `The other side closed the WebSocket with code ${code}`
  return new ConnectionError('lost', `${how}${reason === '' ? '' : `: ${clip(reason)}`}`)
}
