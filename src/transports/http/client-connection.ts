/**
 * The client side of Streamable HTTP over any wire: one POST per message, one GET stream for messages that the server sends
 * unasked, and the session header. Also holds the settings and request headers that HTTP+SSE shares.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { createDeadlines, type Deadlines, LinkedSet } from '../../core/deadlines.ts'
import { type Connection, ConnectionError, type ListenUser, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import { clientFrameLimits, type FrameLimits } from '../../jsonrpc/limits.ts'
import type { Id } from '../../jsonrpc/message.ts'
import { HttpClientExchange, HttpEventStream } from './client-exchange.ts'
import {
  type AnswerReader,
  type HttpWire,
  maxUntaken,
  type OpenHttpCall,
  sessionGone,
  tooManyUndelivered,
  type WireCall,
  type WirePort,
} from './client-wire.ts'

const nothing: Outgoing = {}

/** The connection; also the port through which its exchanges and streams use it. */
export class HttpClientConnection implements Connection, WirePort {
  readonly carrier = 'http'
  readonly settings: ClientSettings
  readonly deadlines: Deadlines
  readonly live = new LinkedSet<OpenHttpCall>()
  readonly streamable = this

  readonly #wire: HttpWire
  readonly #path: string
  readonly #postHeaders: HeaderTemplate
  readonly #getHeaders: HeaderTemplate
  readonly #deleteHeaders: HeaderTemplate
  #sink: Sink | undefined
  /** Notifications and responses that the server has not accepted yet. */
  #untaken = 0
  #session: string | undefined
  /** Headers of the last message in the session; the final DELETE uses the same. */
  #sessionHeaders: HeaderRecord | undefined
  /** The stream for messages that the server sends unasked. */
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
        new ConnectionError('aborted', 'The request was cancelled before it was sent', { cause: outgoing.signal.reason }),
      )
    }
    if (outgoing.id === undefined) return this.#deliver(frame, outgoing)
    return new Promise((resolve, reject) => new HttpClientExchange(this, outgoing, resolve, reject).post(frame))
  }

  /** Sends responses and notifications, limited in number: a server that asks without end must not make them pile up. */
  #deliver(frame: string, outgoing: Outgoing): Promise<void> {
    if (this.#untaken >= maxUntaken) return Promise.reject(tooManyUndelivered)
    this.#untaken++
    return new Promise<void>((resolve, reject) => new HttpClientExchange(this, outgoing, resolve, reject).post(frame)).finally(
      () => {
        this.#untaken--
      },
    )
  }

  /** Opens the GET stream. A second call replaces the first: there is one per session. */
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
        // A server need not offer this stream (405; some answer 404). But a 404 after it was open means that the session is
        // gone.
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

  /** Aborts a request. It searches all, since requests are aborted far less often than sent. */
  drop(id: Id, reason: unknown): void {
    const error = new ConnectionError('aborted', 'The request was cancelled', { cause: reason })
    for (const exchange of this.live.all()) if (exchange.id === id) exchange.abort(error)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** The session to send a message in; undefined if there is none or the message belongs to none. */
  sessionFor(outgoing: Outgoing): string | undefined {
    if (outgoing.session !== true) return undefined
    this.#sessionHeaders = outgoing.headers
    return this.#session
  }

  /** The server has named a session. Throws ConnectionError if the id is invalid. */
  takeSession(id: string): void {
    if (!/^[\x21-\x7e]{1,1024}$/.test(id)) {
      throw new ConnectionError('protocol', 'The session id of the server is not 1 to 1024 visible ASCII characters')
    }
    this.#session = id
  }

  /** The server does not know this session any more. */
  loseSession(id: string): void {
    if (this.#session === id) this.#session = undefined
  }

  post(body: string, outgoing: Outgoing, session: string | undefined, reader: AnswerReader): WireCall {
    const headers = this.#postHeaders.with(outgoing.headers)
    if (session !== undefined) headers.push('mcp-session-id', session)
    return this.#wire.send({ method: 'POST', path: this.#path, headers, body }, reader)
  }

  /** Opens a stream by GET, after the event `lastId` if given. */
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

  /** Ends the session on the server by DELETE, whatever the answer. */
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

/** Header values are bytes: an id beyond ASCII is sent as the UTF-8 in which it arrived. */
function headerBytes(id: string): string {
  return /^[\x20-\x7e]*$/.test(id) ? id : String.fromCharCode(...new TextEncoder().encode(id))
}

// Settings that do not depend on the wire, with their defaults.

/** The settings of a client over HTTP. */
export interface ClientSettings {
  /** Headers of every request, such as `authorization`. Those of a message override them. */
  readonly headers: HeaderRecord
  readonly limits: FrameLimits
  /** How long a server may take to accept a message without an answer. Default 30 s. */
  readonly deliverTimeoutMs: number
  /** How long an answer may take if the caller has no deadline of its own. Default 15 min. */
  readonly answerTimeoutMs: number
  /** How long a stream may stay open after the answer it was for. Default 1 s. */
  readonly lingerMs: number
  /** How long ending the session may take. Default 2 s. */
  readonly closeTimeoutMs: number
  /** The wait before a stream is opened again, where the server names none. Default 1 s. */
  readonly retryMs: number
  /** Bounds for the reconnection delay that a server may ask for. Default 50 ms to 5 min. */
  readonly minRetryMs: number
  readonly maxRetryMs: number
  /** The longest delay of our own backoff. Default 30 s. */
  readonly maxBackoffMs: number
  /** Failed attempts in a row to resume the stream of an answer before it counts as lost. Default 8. */
  readonly resumeTries: number
  readonly clock: Clock
  /** A number from 0 to 1 that spreads the reconnections of many clients. */
  readonly random: () => number
}

const defaults: ClientSettings = {
  headers: {},
  limits: clientFrameLimits,
  deliverTimeoutMs: 30_000,
  answerTimeoutMs: 15 * 60_000,
  lingerMs: 1_000,
  closeTimeoutMs: 2_000,
  retryMs: 1_000,
  minRetryMs: 50,
  maxRetryMs: 5 * 60_000,
  maxBackoffMs: 30_000,
  resumeTries: 8,
  clock: realClock,
  random: Math.random,
}

/** Fills in the defaults. */
export function clientSettings(options: Partial<ClientSettings>): ClientSettings {
  return { ...defaults, ...options }
}

/** Request headers as flat lists: prepared once per connection, completed per message without an object in between. */

/** Headers by name. */
type HeaderRecord = Readonly<Record<string, string>>

/**
 * Request headers as a flat list: prepared once per connection, and completed for each message without an intermediate object.
 */
export class HeaderTemplate {
  readonly #flat: string[] = []
  /** The index of the value of each name. */
  readonly #places = new Map<string, number>()

  /** `own` headers belong to the carrier and cannot be replaced by `given` ones. */
  constructor(own: HeaderRecord, given: HeaderRecord = {}) {
    for (const [name, value] of Object.entries(own)) this.#put(name, value)
    for (const [name, value] of Object.entries(given)) {
      const lower = name.toLowerCase()
      if (reserved.has(lower))
        throw new TypeError(`The header ${lower} is set by the connection; remove it from the option headers`)
      this.#put(lower, value)
    }
  }

  /** A new list with the headers of one message added or replaced. */
  with(more: HeaderRecord | undefined): string[] {
    const flat = this.#flat.slice()
    if (more === undefined) return flat
    for (const name in more) {
      const value = more[name] as string
      const lower = name.toLowerCase()
      const place = this.#places.get(lower)
      if (place === undefined) flat.push(lower, value)
      else flat[place] = value
    }
    return flat
  }

  #put(name: string, value: string): void {
    this.#places.set(name, this.#flat.length + 1)
    this.#flat.push(name, value)
  }
}

const reserved = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'last-event-id',
  'mcp-session-id',
  'transfer-encoding',
])
