/** The asking end of a WebSocket by the platform's own: it sends no headers of ours, and its reading cannot be paused. */
import { type Clock, realClock } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import { type Caller, type Connection, ConnectionError, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type CarrierLimits, clientCarrierLimits } from '../framing/limits.ts'
import { unreached } from '../unreached.ts'

/** What a WebSocket of a client can be told. */
export interface WebSocketClientOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly limits?: Partial<CarrierLimits>
  /** The longest wait for the server to answer the handshake. Default 10 s. */
  readonly handshakeMs?: number
  /** The longest wait at the end for the other side's farewell. Default 2 s. */
  readonly lingerMs?: number
  readonly authorizer?: Credentials
  readonly clock?: Clock
}

/** The name under which MCP is offered on a WebSocket (Sec-WebSocket-Protocol). */
const subprotocol = 'mcp'

/** How often it is looked whether the platform has sent what waits: it tells nobody. */
const lookMs = 20

/** Connects to a server at a `ws:` or `wss:` address. `start` opens the socket. */
export function webSocketClientConnection(url: string | URL, options: WebSocketClientOptions = {}): Connection {
  if (options.authorizer !== undefined || Object.keys(options.headers ?? {}).length > 0)
    throw new ConnectionError(
      'refused',
      'A WebSocket of this platform sends no headers, so that credentials cannot go with it. Connect to the http(s):// address of the server instead',
    )
  return new WebSocketClient(new URL(url), options)
}

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
  /** What is sent before the socket is open. */
  #early: string[] | undefined = []
  #earlyChars = 0
  /** What came while nothing is taken in. */
  #held: string[] | undefined = undefined
  #heldChars = 0
  #closing: Promise<void> | undefined = undefined
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
      // A browser gives up where a server knows no subprotocols, and does not say why it gave up.
      await this.#open([subprotocol]).catch(() => this.#open([]))
    } catch (error) {
      const reason = error instanceof ConnectionError ? error : unreached(this.#url, undefined, String(error), error)
      this.#finish(reason)
      throw reason
    }
  }

  #open(protocols: string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#over) throw new ConnectionError('aborted', 'The connection was closed before it was open')
      const socket = new WebSocket(this.#url, protocols)
      this.#socket = socket
      const fail = (why: string): void => {
        cancel()
        socket.onopen = null
        socket.close()
        reject(unreached(this.#url, undefined, why, undefined))
      }
      const cancel = this.#clock.setTimeout(() => fail(`no answer for ${this.#handshakeMs} ms`), this.#handshakeMs)
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
        `More than ${queueCeiling} bytes (queueCeiling) wait to be read by the other end`,
      )
      // Whoever asks hears of it; but an answer must not just be missing.
      if (outgoing?.id === undefined) this.#fail(refusal)
      throw refusal
    }
    if (this.#early === undefined) this.#socket?.send(frame)
    else {
      this.#early.push(frame)
      this.#earlyChars += frame.length
    }
  }

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

  #hear(data: unknown): void {
    if (this.#closing !== undefined || this.#over) return
    const { frameBytes, queueCeiling } = this.#limits
    if (typeof data !== 'string') return this.#sink?.fault(notText)
    if (data.length > frameBytes)
      return this.#fail(
        new ConnectionError('too-large', `The other end sent a message of more than ${frameBytes} bytes (frameBytes)`),
      )
    if (this.#held === undefined) return this.#sink?.frame(data)
    this.#held.push(data)
    this.#heldChars += data.length
    if (this.#heldChars > queueCeiling + frameBytes)
      this.#fail(new ConnectionError('too-large', 'The other end sends more than can be taken in, and does not wait'))
  }

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
    // What came before the end is heard before it.
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

function leave(code: number, reason: string): ConnectionError {
  const how = code === 1006 ? 'The connection broke off' : `The other end closed the WebSocket with code ${code}`
  return new ConnectionError('lost', `${how}${reason === '' ? '' : `: ${clip(reason)}`}`)
}
