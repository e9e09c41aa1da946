/**
 * HTTP requests by node:http and node:https over kept-alive sockets: a third of the processor time of `fetch`.
 *
 * On repeating a request. When a kept-alive socket breaks before the first byte of an answer, either the server had
 * closed it while it was idle (the request was never read) or it died over the request (which may have run). The two
 * look alike from here: ECONNRESET on a reused socket. A tool must not run twice, so nothing is repeated by default.
 * Instead the first case is made rare: sockets are given up before servers usually do (and before the time a server
 * announces), and after a pause the event loop takes in what the server closed meanwhile before a socket is picked.
 * With `retryReset` the request is sent once more, on another socket; that is for servers whose calls are idempotent.
 */
import http from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { type Clock, realClock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { NodeCall, type RequestMaker } from './client-node-call.ts'
import type { AnswerReader, HttpWire, WireCall, WireRequest } from './client-wire.ts'

export interface NodeWireOptions {
  /** Until the socket is open and secured. Default 10 s. */
  readonly connectTimeoutMs?: number
  /** How long an idle socket is kept. Default 4 s: Node's own servers close after 5. */
  readonly keepAliveMs?: number
  /** Sockets at once, streams included; further requests wait. Default 256. */
  readonly maxSockets?: number
  /** Send a request once more when a reused socket broke before any answer. It may then run twice. Default false. */
  readonly retryReset?: boolean
  /** For https: a private authority (`ca`), a client certificate (`cert`, `key`), … */
  readonly tls?: ConnectionOptions
  readonly clock?: Clock
}

/** After a pause this long, what happened on the idle sockets is taken in before one is used. */
const pauseMs = 100

/** A wire to the origin of `url`. */
export function nodeWire(url: URL, options: NodeWireOptions = {}): HttpWire {
  return new NodeWire(url, options)
}

class NodeWire implements HttpWire, RequestMaker {
  readonly retryReset: boolean
  readonly address: URL
  readonly #clock: Clock
  readonly #secure: boolean
  readonly #agent: http.Agent
  readonly #host: string
  readonly #hostname: string
  readonly #port: number
  /** Sockets that were once open: what fails on others never reached the server. */
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
      // The second turn is the first that is sure to come after the loop has looked at its sockets.
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

  used(): void {
    this.#usedAt = this.#clock.now()
  }

  reached(socket: Duplex | null): boolean {
    return socket !== null && this.#opened.has(socket)
  }

  #hasIdle(): boolean {
    for (const _ in this.#agent.freeSockets) return true
    return false
  }

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
