/**
 * The client side of the HTTP+SSE transport (2024-11-05 basic/transports, "HTTP with SSE"): one stream carries everything that
 * the server sends, and its first event names the address to which all messages are posted. POSTs use the exchange and the
 * wires of Streamable HTTP.
 */
import { createDeadlines, type Deadline, type Deadlines, LinkedSet } from '../../core/deadlines.ts'
import { type Connection, ConnectionError, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Id } from '../../jsonrpc/message.ts'
import { type HttpClientOptions, wireFor } from '../http/client.ts'
import { type ClientSettings, clientSettings, HeaderTemplate } from '../http/client-connection.ts'
import { HttpClientExchange } from '../http/client-exchange.ts'
import {
  type AnswerReader,
  asConnectionError,
  type HeaderView,
  type HttpWire,
  httpRefusal,
  httpUrl,
  maxUntaken,
  mediaType,
  type OpenHttpCall,
  redirection,
  tooManyUndelivered,
  type WireCall,
  type WirePort,
  wrongContent,
} from '../http/client-wire.ts'
import { SseParser } from './parse.ts'

/** The options of an HTTP client, and the time limit for the first event. */
interface SseClientOptions extends HttpClientOptions {
  /** Until the server has named the address to post to. Default 10 s. */
  readonly endpointTimeoutMs?: number
}

/** A connection to the 2024-11-05 server whose stream is at `url`. `start` resolves when the server has said where to post. */
export function sseClientConnection(url: string | URL, options: SseClientOptions = {}): Connection {
  const target = httpUrl(url)
  return new SseClientConnection(target, wireFor(target, options), clientSettings(options), options.endpointTimeoutMs ?? 10_000)
}

/** The connection: reader of the stream and, for each POST, the port of an `HttpClientExchange`. */
class SseClientConnection implements Connection, WirePort, AnswerReader {
  readonly carrier = 'sse'
  readonly settings: ClientSettings
  readonly deadlines: Deadlines
  readonly live = new LinkedSet<OpenHttpCall>()
  /** Events received so far; used to limit how many are handled per turn of the event loop. */
  heard = 0

  readonly #url: URL
  readonly #endpointTimeoutMs: number
  readonly #wire: HttpWire
  readonly #postHeaders: HeaderTemplate
  readonly #parser: SseParser
  readonly #opened = Promise.withResolvers<void>()
  #sink: Sink | undefined
  /** Notifications and responses that the server has not accepted yet. */
  #untaken = 0
  #stream: WireCall | undefined
  /** The server has answered the GET with an event stream. */
  #streaming = false
  /** Path and query to post to, once named. */
  #endpoint: string | undefined
  /** What the next message waits for: first the endpoint, later the delivery of notifications that it must not overtake. */
  #before: Promise<void> = this.#opened.promise
  /** Set when the connection has ended, with the error for later sends. */
  #ended: ConnectionError | undefined
  /** Ends the connection if no endpoint is named in time. */
  #late: Deadline | undefined

  constructor(url: URL, wire: HttpWire, settings: ClientSettings, endpointTimeoutMs: number) {
    this.#endpointTimeoutMs = endpointTimeoutMs
    this.settings = settings
    this.deadlines = createDeadlines({ clock: settings.clock })
    this.#url = url
    this.#wire = wire
    this.#postHeaders = new HeaderTemplate(
      { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      settings.headers,
    )
    this.#parser = new SseParser({ eventBytes: settings.limits.frameBytes }, (data, type) => this.#event(data, type))
    // `start` and `send` report the failure; this avoids an unhandled rejection if neither is waiting.
    this.#opened.promise.catch(() => undefined)
  }

  /** Resolves when the server has said where to post. */
  start(sink: Sink): Promise<void> {
    this.#sink = sink
    if (this.#ended !== undefined) return this.#opened.promise
    const { clock, headers } = this.settings
    const ms = this.#endpointTimeoutMs
    const late = this.deadlines.add(clock.now() + ms, () => this.#end(noEndpoint(`within ${ms} ms`)))
    this.#late = late
    const settled = (): void => this.deadlines.cancel(late)
    this.#opened.promise.then(settled, settled)
    const flat = new HeaderTemplate({ accept: 'text/event-stream' }, headers).with(undefined)
    this.#stream = this.#wire.send({ method: 'GET', path: this.#url.pathname + this.#url.search, headers: flat }, this)
    return this.#opened.promise
  }

  /** Resolves when the server has taken the message; its answer comes by the stream. */
  send(frame: string, outgoing: Outgoing = {}): Promise<void> {
    if (outgoing.id !== undefined) return this.#before.then(() => this.#deliver(frame, outgoing))
    if (this.#untaken >= maxUntaken) return Promise.reject(tooManyUndelivered)
    this.#untaken++
    const sent = this.#before.then(() => this.#deliver(frame, outgoing))
    const taken = (): void => void this.#untaken--
    // Each POST may use its own socket, and sockets can overtake each other. Requests may be reordered; messages after a
    // notification may not.
    this.#before = sent.then(taken, taken)
    return sent
  }

  async close(): Promise<void> {
    this.#end()
  }

  head(status: number, headers: HeaderView): void {
    if (status === 200 && mediaType(headers.get('content-type')) === 'text/event-stream') this.#streaming = true
    else if (status >= 200 && status < 300) this.#end(wrongContent(status, headers))
    else this.#end(status < 400 ? redirection(status, headers) : httpRefusal(status, headers, ''))
  }

  chunk(bytes: Uint8Array): void {
    if (this.#ended !== undefined || !this.#streaming) return
    try {
      this.#parser.push(bytes)
    } catch (thrown) {
      this.#end(asConnectionError(thrown))
    }
  }

  end(): void {
    this.#end(
      this.#endpoint === undefined
        ? noEndpoint('before its stream ended')
        : new ConnectionError('lost', 'The server ended its stream'),
    )
  }

  fail(error: ConnectionError): void {
    this.#end(error)
  }

  /** Suspends the endpoint deadline while credentials are obtained. */
  held(held: boolean): void {
    const { clock } = this.settings
    if (this.#late !== undefined) this.#late.at = held ? Number.POSITIVE_INFINITY : clock.now() + this.#endpointTimeoutMs
  }

  post(body: string, outgoing: Outgoing, _session: string | undefined, reader: AnswerReader): WireCall {
    return this.#wire.send(
      { method: 'POST', path: this.#endpoint ?? '', headers: this.#postHeaders.with(outgoing.headers), body },
      reader,
    )
  }

  frame(text: string, status: number): void {
    if (this.#ended === undefined) this.#sink?.frame(text, status)
  }

  hold(id: Id, held: boolean): void {
    this.#sink?.hold?.(id, held)
  }

  /** Posts one message. The request id is left out: the answer arrives on the stream, so the POST must not wait for it. */
  #deliver(frame: string, { headers, signal }: Outgoing): Promise<void> {
    if (this.#ended !== undefined) throw this.#ended
    if (signal?.aborted)
      throw new ConnectionError('aborted', 'The request was cancelled before it was sent', { cause: signal.reason })
    const post: Outgoing = { ...(headers === undefined ? {} : { headers }), ...(signal === undefined ? {} : { signal }) }
    return new Promise((resolve, reject) => new HttpClientExchange(this, post, resolve, reject).post(frame))
  }

  #event(data: string, type: string): void {
    this.heard++
    if (this.#ended !== undefined || data === '') return
    if (type === 'endpoint') this.#take(data)
    else if (type === '') this.frame(data, 200)
  }

  /** Accepts the endpoint. Later endpoint events are ignored: the protocol has no way to move a connection. */
  #take(address: string): void {
    if (this.#endpoint !== undefined) return
    const target = URL.parse(address, this.#url)
    if (target === null || target.origin !== this.#url.origin || target.username !== '' || target.password !== '') {
      this.#end(
        new ConnectionError(
          'protocol',
          `The server names ${clip(address)} as its message endpoint, which is not at ${this.#url.origin}; only the same origin is trusted`,
        ),
      )
      return
    }
    this.#endpoint = target.pathname + target.search
    this.#opened.resolve()
  }

  /** Ends the connection once, whichever side ended it, and settles everything that waits. */
  #end(error?: ConnectionError): void {
    if (this.#ended !== undefined) return
    const failed = error ?? closed()
    this.#ended = failed
    const began = this.#endpoint !== undefined
    this.#opened.reject(failed)
    this.#stream?.drop()
    for (const exchange of this.live.all()) exchange.abort(failed)
    this.#wire.close()
    // A connection that was never established is reported by the rejection of `start` alone.
    if (began || error === undefined) this.#sink?.closed(error)
  }
}

function closed(): ConnectionError {
  return new ConnectionError('aborted', 'The connection was closed by this side')
}

function noEndpoint(when: string): ConnectionError {
  return new ConnectionError(
    'protocol',
    `The server named no message endpoint ${when}; the stream of this transport must begin with an endpoint event`,
  )
}
