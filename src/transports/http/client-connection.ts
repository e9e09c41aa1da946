/**
 * The client's end of Streamable HTTP over any wire: one POST per message, one stream for what the server says
 * unasked, and the session header, which is all that this carrier knows of the protocol.
 */

import { createDeadlines, type Deadlines } from '../../core/deadlines.ts'
import { LinkedSet } from '../../core/linked-set.ts'
import { type Connection, ConnectionError, type ListenUser, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import type { Id } from '../../jsonrpc/message.ts'
import { HttpClientExchange } from './client-exchange.ts'
import { sessionGone, untaken } from './client-refusal.ts'
import { type ClientSettings, type HeaderRecord, HeaderTemplate } from './client-settings.ts'
import { HttpEventStream } from './client-stream.ts'
import {
  type AnswerReader,
  type HttpWire,
  maxUntaken,
  type OpenHttpCall,
  type StreamablePort,
  type WireCall,
  type WirePort,
} from './client-wire.ts'

const nothing: Outgoing = {}

export class HttpClientConnection implements Connection, WirePort, StreamablePort {
  readonly carrier = 'http'
  readonly settings: ClientSettings
  readonly deadlines: Deadlines
  readonly live = new LinkedSet<OpenHttpCall>()
  readonly streamable: StreamablePort = this

  readonly #wire: HttpWire
  readonly #path: string
  readonly #postHeaders: HeaderTemplate
  readonly #getHeaders: HeaderTemplate
  readonly #deleteHeaders: HeaderTemplate
  #sink: Sink | undefined
  #untaken = 0
  #session: string | undefined
  /** Headers of the last message in the session: its farewell goes out under the same. */
  #sessionHeaders: HeaderRecord | undefined
  #listener: HttpEventStream | undefined
  #closing: Promise<void> | undefined

  constructor(url: URL, wire: HttpWire, settings: ClientSettings) {
    this.settings = settings
    this.deadlines = createDeadlines({ clock: settings.clock })
    this.#wire = wire
    this.#path = url.pathname + url.search
    const { headers } = settings
    this.#postHeaders = new HeaderTemplate(
      { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      headers,
    )
    this.#getHeaders = new HeaderTemplate({ accept: 'text/event-stream' }, headers)
    this.#deleteHeaders = new HeaderTemplate({}, headers)
  }

  start(sink: Sink): void {
    this.#sink = sink
  }

  send(frame: string, outgoing: Outgoing = nothing): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(closed())
    if (outgoing.signal?.aborted) {
      return Promise.reject(
        new ConnectionError('aborted', 'The request was given up before it was sent', { cause: outgoing.signal.reason }),
      )
    }
    if (outgoing.id === undefined) return this.#deliver(frame, outgoing)
    return new Promise((resolve, reject) => new HttpClientExchange(this, outgoing, resolve, reject).post(frame))
  }

  /** Answers and notifications: a server that asks without end and takes no answers must not make them pile up here. */
  #deliver(frame: string, outgoing: Outgoing): Promise<void> {
    if (this.#untaken >= maxUntaken) return Promise.reject(untaken)
    this.#untaken++
    return new Promise<void>((resolve, reject) => new HttpClientExchange(this, outgoing, resolve, reject).post(frame)).finally(
      () => {
        this.#untaken--
      },
    )
  }

  /** A second call replaces the stream of the first: there is one per session. */
  listen(outgoing: Outgoing, user?: ListenUser): void {
    if (this.#closing !== undefined || outgoing.signal?.aborted) return
    this.#listener?.close()
    const session = outgoing.session === true ? this.#session : undefined
    let open = false
    const stream = new HttpEventStream(
      this,
      outgoing,
      {
        opened: continued => {
          open = true
          user?.opened(continued)
        },
        event: text => this.frame(text, 200),
        fault: error =>
          this.#sink?.fault({ kind: error.kind === 'too-large' ? 'too-large' : 'not-utf8', message: error.message }),
        // A server may offer no such stream (405, and 404 by those who do not know better). But what was there in this
        // session and is no more went with the session.
        gone: error => {
          if (error.status !== 404 || session === undefined) return
          if (!open) return user?.absent()
          this.loseSession(session)
          user?.lost(sessionGone(404))
        },
      },
      { tries: Number.POSITIVE_INFINITY, restarts: true },
    )
    this.#listener = stream
    outgoing.signal?.addEventListener('abort', () => stream.close(), { once: true })
    stream.open()
  }

  /** Looked for only then: requests are given up far less often than they are sent. */
  drop(id: Id, reason: unknown): void {
    const error = new ConnectionError('aborted', 'The request was given up', { cause: reason })
    for (const exchange of this.live.all()) if (exchange.id === id) exchange.abort(error)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  sessionFor(outgoing: Outgoing): string | undefined {
    if (outgoing.session !== true) return undefined
    this.#sessionHeaders = outgoing.headers
    return this.#session
  }

  takeSession(id: string): void {
    if (!/^[\x21-\x7e]{1,1024}$/.test(id)) {
      throw new ConnectionError(
        'protocol',
        'The server named a session by something else than 1 to 1024 visible ASCII characters',
      )
    }
    this.#session = id
  }

  loseSession(id: string): void {
    if (this.#session === id) this.#session = undefined
  }

  post(body: string, outgoing: Outgoing, session: string | undefined, reader: AnswerReader): WireCall {
    const headers = this.#postHeaders.with(outgoing.headers)
    if (session !== undefined) headers.push('mcp-session-id', session)
    return this.#wire.send({ method: 'POST', path: this.#path, headers, body }, reader)
  }

  get(outgoing: Outgoing, lastId: string | undefined, reader: AnswerReader): WireCall {
    const headers = this.#getHeaders.with(outgoing.headers)
    const session = this.sessionFor(outgoing)
    if (session !== undefined) headers.push('mcp-session-id', session)
    if (lastId !== undefined) headers.push('last-event-id', headerBytes(lastId))
    return this.#wire.send({ method: 'GET', path: this.#path, headers }, reader)
  }

  frame(text: string, status: number, within?: Id): void {
    this.#sink?.frame(text, status, within)
  }

  released(id: Id, retryMs: number | undefined): void {
    this.#sink?.released?.(id, retryMs)
  }

  hold(id: Id, held: boolean): void {
    this.#sink?.hold?.(id, held)
  }

  async #close(): Promise<void> {
    this.#listener?.close()
    for (const exchange of this.live.all()) exchange.abort(closed())
    if (this.#session !== undefined) await this.#leave(this.#session)
    this.#wire.close()
    this.#sink?.closed()
  }

  /** Tells the server that the session is over; whatever it says to that, we go. */
  #leave(session: string): Promise<void> {
    const headers = this.#deleteHeaders.with(this.#sessionHeaders)
    headers.push('mcp-session-id', session)
    return new Promise(resolve => {
      const done = (): void => {
        this.deadlines.cancel(deadline)
        call.drop()
        resolve()
      }
      const deadline = this.deadlines.add(this.settings.clock.now() + this.settings.closeTimeoutMs, done)
      const reader = { head: done, chunk: () => undefined, end: done, fail: done }
      const call = this.#wire.send({ method: 'DELETE', path: this.#path, headers }, reader)
    })
  }
}

function closed(): ConnectionError {
  return new ConnectionError('aborted', 'The connection was closed by this side')
}

/** Header values travel as bytes: an id beyond ASCII goes out as the UTF-8 it came in. */
function headerBytes(id: string): string {
  return /^[\x20-\x7e]*$/.test(id) ? id : String.fromCharCode(...new TextEncoder().encode(id))
}
