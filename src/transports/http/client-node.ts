/**
 * HTTP requests by node:http and node:https over kept-alive sockets, for https: addresses. Nothing is repeated by default:
 * ECONNRESET on a reused socket does not tell whether the server had closed it while idle or failed over the request, and a
 * tool must not run twice. To make that rare, idle sockets are closed before servers usually do, and after a pause the event
 * loop runs before a socket is used. `retryReset` sends the request once more, for servers whose calls are idempotent.
 */

import http from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { unreachableError } from '../unreachable.ts'
import { type AnswerReader, ChunkPacer, type HeaderView, type HttpWire, type WireCall, type WireRequest } from './client-wire.ts'

/** Options of the sockets on Node. */
export interface NodeWireOptions {
  /** Until the socket is connected and secured. Default 10 s. */
  readonly connectTimeoutMs?: number
  /** How long an idle socket is kept. Default 4 s: Node's servers close after 5 s. */
  readonly keepAliveMs?: number
  /** Sockets at once, streams included; further requests wait. Default 256. */
  readonly maxSockets?: number
  /** Repeat a request once when a reused socket broke before any answer. It may then run twice. Default false. */
  readonly retryReset?: boolean
  /** For https: a private authority (`ca`), a client certificate (`cert`, `key`), … */
  readonly tls?: ConnectionOptions
  readonly clock?: Clock
}

/** After an idle time this long, the event loop runs first, so that sockets which the server closed meanwhile are noticed. */
const pauseMs = 100

/** A wire to the origin of an address: the agent with its sockets. */
export class NodeWire implements HttpWire {
  readonly retryReset: boolean
  readonly address: URL
  readonly #clock: Clock
  readonly #secure: boolean
  readonly #agent: http.Agent
  readonly #host: string
  readonly #hostname: string
  readonly #port: number
  /** Sockets that were connected: failures on others never reached the server. */
  readonly #opened = new WeakSet<Duplex>()
  #usedAt = 0

  constructor(url: URL, options: NodeWireOptions) {
    const { connectTimeoutMs = 10_000, keepAliveMs = 4_000, maxSockets = 256, tls, clock = realClock } = options
    this.retryReset = options.retryReset ?? false
    this.address = url
    this.#clock = clock
    this.#secure = url.protocol === 'https:'
    this.#host = url.host
    this.#hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
    this.#port = url.port === '' ? (this.#secure ? 443 : 80) : Number(url.port)
    const pool = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets, timeout: keepAliveMs }
    const agent = this.#secure ? new https.Agent({ ...tls, ...pool }) : new http.Agent(pool)
    const open = agent.createConnection.bind(agent)
    agent.createConnection = (args, callback) => this.#watch(open(args, callback), connectTimeoutMs)
    this.#agent = agent
  }

  send(request: WireRequest, reader: AnswerReader): WireCall {
    const { headers, body } = request
    headers.push('host', this.#host, 'accept-encoding', 'identity')
    if (body !== undefined) headers.push('content-length', `${Buffer.byteLength(body)}`)
    const call = new NodeCall(this, request, reader)
    if (this.#clock.now() - this.#usedAt > pauseMs && this.#hasIdle()) {
      // Only in the second turn is it certain that the event loop has polled its sockets.
      setImmediate(() => setImmediate(() => call.go()))
    } else call.go()
    return call
  }

  close(): void {
    this.#agent.destroy()
  }

  request(request: WireRequest): http.ClientRequest {
    this.used()
    const make = this.#secure ? https.request : http.request
    return make({
      agent: this.#agent,
      host: this.#hostname,
      port: this.#port,
      method: request.method,
      path: request.path,
      headers: request.headers,
    })
  }

  /** A socket has just been used. */
  used(): void {
    this.#usedAt = this.#clock.now()
  }

  /** Whether this socket was ever connected. */
  reached(socket: Duplex | null): boolean {
    return socket !== null && this.#opened.has(socket)
  }

  #hasIdle(): boolean {
    for (const _ in this.#agent.freeSockets) return true
    return false
  }

  /** Applies the connect timeout to a new socket, and remembers when it is connected. */
  #watch(socket: Duplex | null | undefined, timeoutMs: number): Duplex | null | undefined {
    if (socket === null || socket === undefined) return socket
    const giveUp = (): void => {
      const error = new ConnectionError(
        'refused',
        `No connection to ${this.address.origin} within ${timeoutMs} ms; check the address, or raise connectTimeoutMs`,
      )
      socket.destroy(error)
    }
    const cancel = this.#clock.setTimeout(giveUp, timeoutMs)
    socket.once('close', cancel)
    socket.once(this.#secure ? 'secureConnect' : 'connect', () => {
      cancel()
      this.#opened.add(socket)
    })
    return socket
  }
}

// One request by node:http, and its answer.

/** One call: sends its request, and passes the parts of the answer to its reader. */
class NodeCall implements WireCall {
  readonly #wire: NodeWire
  readonly #request: WireRequest
  readonly #reader: AnswerReader
  #current: http.ClientRequest | undefined
  #answered = false
  /** The request was sent a second time (`retryReset`). */
  #repeated = false
  #done = false

  constructor(wire: NodeWire, request: WireRequest, reader: AnswerReader) {
    this.#wire = wire
    this.#request = request
    this.#reader = reader
  }

  go(): void {
    if (this.#done) return
    try {
      const current = this.#wire.request(this.#request)
      this.#current = current
      current.on('response', response => this.#answer(response))
      current.on('error', error => this.#failed(current, error))
      current.on('close', () => this.#closed(current))
      current.end(this.#request.body)
    } catch (cause) {
      const error = new ConnectionError('refused', `The request could not be sent: ${reason(cause)}`, { cause })
      queueMicrotask(() => this.#fail(error))
    }
  }

  drop(): void {
    if (this.#done) return
    this.#done = true
    this.#current?.destroy()
  }

  #answer(response: http.IncomingMessage): void {
    if (this.#done) return
    this.#answered = true
    const encoding = response.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      this.#current?.destroy()
      this.#fail(
        new ConnectionError(
          'protocol',
          'The server compressed the response although the request accepts only identity; disable compression for this path',
        ),
      )
      return
    }
    const take = (chunk: Uint8Array): void => {
      if (!this.#done) this.#reader.chunk(chunk)
    }
    const end = (): void => this.#end()
    const fail = (cause: Error): void =>
      this.#fail(new ConnectionError('lost', `The connection broke during the response: ${reason(cause)}`, { cause }))
    const heard = (): number => this.#reader.heard ?? 0
    if (response.headers['content-type']?.startsWith('text/event-stream') === true) {
      const paced = new ChunkPacer(response, { take, end, fail, heard })
      response.on('data', chunk => paced.take(chunk))
      response.on('end', () => paced.end())
      response.on('error', cause => paced.fail(cause))
    } else response.on('data', take).on('end', end).on('error', fail)
    this.#reader.head(response.statusCode ?? 0, new NodeHeaders(response.headers))
  }

  #end(): void {
    if (this.#done) return
    this.#done = true
    this.#wire.used()
    this.#reader.end()
  }

  #failed(request: http.ClientRequest, error: NodeJS.ErrnoException): void {
    if (this.#done) return
    if (this.#wire.retryReset && !this.#repeated && request.reusedSocket && error.code === 'ECONNRESET' && !this.#answered) {
      this.#repeated = true
      this.go()
      return
    }
    this.#fail(
      error instanceof ConnectionError ? error : translate(error, this.#wire.reached(request.socket), this.#wire.address),
    )
  }

  /** A protocol switch closes the request without a response or an error. */
  #closed(request: http.ClientRequest): void {
    if (this.#done || this.#answered || this.#current !== request) return
    this.#fail(
      new ConnectionError('lost', 'The connection ended without a response; it is unknown whether the server ran the request'),
    )
  }

  #fail(error: ConnectionError): void {
    if (this.#done) return
    this.#done = true
    this.#reader.fail(error)
  }
}

/** The headers of node:http as a `HeaderView`. */
class NodeHeaders implements HeaderView {
  readonly #headers: http.IncomingHttpHeaders

  constructor(headers: http.IncomingHttpHeaders) {
    this.#headers = headers
  }

  get(name: string): string | undefined {
    const value = this.#headers[name]
    return typeof value === 'object' ? value.join(', ') : value
  }

  forEach(fn: (value: string, name: string) => void): void {
    for (const name of Object.keys(this.#headers)) fn(this.get(name) ?? '', name)
  }
}

/** Converts an error of node:http. `reached`: the request may have been sent. */
function translate(cause: NodeJS.ErrnoException, reached: boolean, address: URL): ConnectionError {
  const { code } = cause
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ConnectionError('too-large', 'The headers of the response are longer than 16 KiB', { cause })
  if (code?.startsWith('HPE_'))
    return new ConnectionError('protocol', `The response is not valid HTTP (${reason(cause)})`, { cause })
  return reached
    ? new ConnectionError(
        'lost',
        `The connection broke before the response (${reason(cause)}); it is unknown whether the server ran the request`,
        { cause },
      )
    : unreachableError(address, code, reason(cause), cause)
}

function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return clip(String(cause))
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : clip(cause.message)
}
