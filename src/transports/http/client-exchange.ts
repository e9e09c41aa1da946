/**
 * One message sent by POST and everything that comes back for it, and the event streams that are opened by GET. An exchange
 * resolves only after the answer was passed on, and rejects when it can no longer come.
 */
import type { Cancel } from '../../core/clock.ts'
import type { Deadline } from '../../core/deadlines.ts'
import { ConnectionError, type Outgoing } from '../../jsonrpc/connection.ts'
import type { FrameLimits } from '../../jsonrpc/limits.ts'
import type { Id } from '../../jsonrpc/message.ts'
import { SseParser } from '../sse/parse.ts'
import { answerTo, type Body, refusalBody, successBody } from './client-body.ts'
import type { HttpClientConnection } from './client-connection.ts'
import {
  type AnswerReader,
  asConnectionError,
  type HeaderView,
  httpRefusal,
  mediaType,
  redirection,
  sessionGone,
  type WireCall,
  type WirePort,
  wrongContent,
} from './client-wire.ts'

/** One message of a client over HTTP, and its answer. */
export class HttpClientExchange implements AnswerReader, StreamUser {
  readonly limits: FrameLimits
  /** The message is a request, so some frame must answer it. */
  readonly awaited: boolean
  readonly id: Id | undefined
  settled = false
  place = -1
  heard = 0

  readonly #port: WirePort
  readonly #outgoing: Outgoing
  readonly #resolve: () => void
  readonly #reject: (error: ConnectionError) => void
  #onAbort: (() => void) | undefined
  #session: string | undefined
  #call: WireCall | undefined
  #body: Body | undefined
  /** Continues an answer stream that broke. */
  #rest: HttpEventStream | undefined
  #deadline: Deadline | undefined
  #withinMs = 0
  /** The outcome is known; the rest of the body is being read. */
  #lingers = false
  #over = false

  constructor(port: WirePort, outgoing: Outgoing, resolve: () => void, reject: (error: ConnectionError) => void) {
    this.limits = port.settings.limits
    this.id = outgoing.id
    this.awaited = outgoing.id !== undefined
    this.#port = port
    this.#outgoing = outgoing
    this.#resolve = resolve
    this.#reject = reject
  }

  post(frame: string): void {
    const port = this.#port
    const { signal, minded } = this.#outgoing
    if (signal !== undefined) {
      this.#onAbort = () => this.abort(new ConnectionError('aborted', 'The request was cancelled', { cause: signal.reason }))
      signal.addEventListener('abort', this.#onAbort)
    }
    if (!this.awaited) this.#within(port.settings.deliverTimeoutMs, 'accept the message')
    else if (signal === undefined && minded !== true) this.#within(port.settings.answerTimeoutMs, 'answer')
    this.#session = port.streamable?.sessionFor(this.#outgoing)
    port.live.add(this)
    this.#call = port.post(frame, this.#outgoing, this.#session, this)
  }

  /** Ends it at once. */
  abort(error: ConnectionError): void {
    this.settle(error)
    this.#finish()
  }

  head(status: number, headers: HeaderView): void {
    if (this.#over) return
    try {
      this.#body = status >= 200 && status < 300 ? this.#success(status, headers) : this.#refused(status, headers)
    } catch (thrown) {
      this.abort(asConnectionError(thrown))
    }
    if (this.settled) this.#linger()
  }

  chunk(bytes: Uint8Array): void {
    if (this.#over) return
    try {
      this.#body?.chunk(bytes)
    } catch (thrown) {
      this.abort(asConnectionError(thrown))
    }
    if (this.settled) this.#linger()
  }

  end(): void {
    if (this.#over) return
    try {
      this.#body?.end()
    } catch (thrown) {
      this.settle(asConnectionError(thrown))
    }
    if (this.settled) this.#finish()
    else if (!this.#continue()) this.abort(cutShort())
    else if (this.id !== undefined) this.#port.released?.(this.id, this.#body?.parser?.retryMs)
  }

  fail(error: ConnectionError): void {
    if (this.#over || (!this.settled && this.#continue())) return
    this.abort(error)
  }

  held(held: boolean): void {
    if (this.#over) return
    const { settings } = this.#port
    if (this.#deadline !== undefined) this.#deadline.at = held ? Number.POSITIVE_INFINITY : settings.clock.now() + this.#withinMs
    if (this.id !== undefined) this.#port.hold(this.id, held)
  }

  frame(text: string, status: number): void {
    if (this.#over) return
    this.heard++
    const { id } = this.#outgoing
    const answer = this.settled || id === undefined ? undefined : answerTo(text, id, this.limits)
    this.#port.frame(answer ?? text, status, id)
    if (answer !== undefined) this.settle()
  }

  /** Reports the outcome; only the first call counts. */
  settle(error?: ConnectionError): void {
    if (this.settled) return
    this.settled = true
    if (error === undefined) this.#resolve()
    else this.#reject(error)
  }

  /** An event of the stream that continues a broken one. */
  event(text: string): void {
    this.frame(text, 200)
    if (this.settled) this.#finish()
  }

  fault(error: ConnectionError): void {
    this.abort(error)
  }

  gone(cause: ConnectionError): void {
    const message = `The response stream broke and could not be resumed (${cause.message}); it is unknown whether the server ran the request`
    this.abort(new ConnectionError('lost', message, { cause }))
  }

  #success(status: number, headers: HeaderView): Body {
    // Only if none was sent: a late answer in an old session must not bring that back.
    if (this.#outgoing.session === true && this.#session === undefined) {
      const named = headers.get('mcp-session-id')
      if (named !== null && named !== undefined) this.#port.streamable?.takeSession(named)
    }
    return successBody(this, status, headers)
  }

  #refused(status: number, headers: HeaderView): Body {
    if (status === 404 && this.#session !== undefined) {
      this.#port.streamable?.loseSession(this.#session)
      this.settle(sessionGone(status))
    }
    return refusalBody(this, status, headers)
  }

  /** Resumes a broken answer stream by GET; false if that is not possible. */
  #continue(): boolean {
    const { streamable, settings } = this.#port
    const parser = this.#body?.parser
    if (streamable === undefined || this.#outgoing.resume !== true || parser?.lastId === undefined) return false
    const { lastId, retryMs } = parser
    this.#rest = new HttpEventStream(streamable, this.#outgoing, this, { lastId, retryMs, tries: settings.resumeTries })
    this.#rest.openLater()
    return true
  }

  #within(ms: number, what: string): void {
    const { deadlines, settings } = this.#port
    this.#withinMs = ms
    this.#deadline = deadlines.add(settings.clock.now() + ms, () =>
      this.abort(
        new ConnectionError('lost', `The server did not ${what} within ${ms} ms; it is unknown whether it ran the request`),
      ),
    )
  }

  /** Reads on after the outcome, so that the socket can be reused, but not for long. */
  #linger(): void {
    // A message that awaits no answer keeps its first deadline: a stream may follow its acceptance.
    if (this.#lingers || this.#over || !this.awaited) return
    this.#lingers = true
    const { deadlines, settings } = this.#port
    if (this.#deadline !== undefined) deadlines.cancel(this.#deadline)
    this.#deadline = deadlines.add(settings.clock.now() + settings.lingerMs, () => this.#finish())
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    if (this.#onAbort !== undefined) this.#outgoing.signal?.removeEventListener('abort', this.#onAbort)
    if (this.#deadline !== undefined) this.#port.deadlines.cancel(this.#deadline)
    this.#rest?.close()
    this.#call?.drop()
    this.#port.live.delete(this)
  }
}

function cutShort(): ConnectionError {
  return new ConnectionError(
    'lost',
    'The server ended the response stream before the response; it is unknown whether it ran the request',
  )
}

// An event stream opened by GET, and resumed after its last event when it ends or breaks (2025-11-25 basic/transports,
// "Resumability and Redelivery"). Serves both unsolicited server messages and the rest of a broken answer stream.

/** Receives the events of such a stream. */
interface StreamUser {
  /** The server sends events. `continued`: it was asked to go on after the last one that came. */
  opened?(continued: boolean): void
  /** One message. */
  event(text: string): void
  /** The stream contained something unreadable. Unless it is closed now, it is opened again later. */
  fault(error: ConnectionError): void
  /** The stream is over for good. */
  gone(error: ConnectionError): void
}

interface StreamStart {
  readonly lastId?: string | undefined
  readonly retryMs?: number | undefined
  /** Failures in a row before giving up. */
  readonly tries: number
  /** Start anew, without the missed events, if the server cannot resume after the last one. */
  readonly restarts?: boolean
}

/** The stream, with its reconnections. */
export class HttpEventStream implements AnswerReader {
  heard = 0
  readonly #port: HttpClientConnection
  readonly #outgoing: Outgoing
  readonly #user: StreamUser
  readonly #tries: number
  readonly #restarts: boolean
  #lastId: string | undefined
  #retryMs: number | undefined
  #parser: SseParser | undefined
  #call: WireCall | undefined
  #waiting: Cancel | undefined
  #failures = 0
  /** Connections in a row without an event: their delays grow, whether or not they failed. */
  #emptyAttempts = 0
  #closed = false

  constructor(port: HttpClientConnection, outgoing: Outgoing, user: StreamUser, start: StreamStart) {
    this.#port = port
    this.#outgoing = outgoing
    this.#user = user
    this.#tries = start.tries
    this.#restarts = start.restarts ?? false
    this.#lastId = start.lastId
    this.#retryMs = start.retryMs
  }

  open(): void {
    if (this.#closed) return
    this.#waiting = undefined
    this.#parser = undefined
    this.#call = this.#port.get(this.#outgoing, this.#lastId, this)
  }

  /** Opens it after the delay that the server asked for. */
  openLater(): void {
    const { clock } = this.#port.settings
    this.#waiting = clock.setTimeout(() => this.open(), this.#delay())
  }

  close(): void {
    this.#closed = true
    this.#waiting?.()
    this.#call?.drop()
  }

  head(status: number, headers: HeaderView): void {
    if (this.#closed) return
    if (status === 200 && mediaType(headers.get('content-type')) === 'text/event-stream') {
      this.#parser = new SseParser(
        { eventBytes: this.#port.settings.limits.frameBytes },
        (data, type) => this.#event(data, type),
        this.#lastId,
      )
      this.#user.opened?.(this.#lastId !== undefined)
      return
    }
    this.#call?.drop()
    if (status >= 200 && status < 300) this.#end(wrongContent(status, headers))
    else if (status < 400) this.#end(redirection(status, headers))
    else if (status >= 500 || passing.has(status) || this.#startsAnew(status)) this.#failed(httpRefusal(status, headers, ''))
    else this.#end(httpRefusal(status, headers, ''))
  }

  chunk(bytes: Uint8Array): void {
    if (this.#closed || this.#parser === undefined) return
    try {
      this.#parser.push(bytes)
    } catch (thrown) {
      this.#call?.drop()
      const error = asConnectionError(thrown)
      this.#user.fault(error)
      if (!this.#closed) this.#failed(error)
      return
    }
    this.#remember()
  }

  end(): void {
    if (this.#closed) return
    this.#remember()
    this.#failures = 0
    // A server that sends `retry` wants to be polled at that rate; others are asked less and less often.
    this.#emptyAttempts = this.#retryMs === undefined ? this.#emptyAttempts + 1 : 0
    this.openLater()
  }

  fail(error: ConnectionError): void {
    if (this.#closed) return
    this.#remember()
    // Repeated attempts must not ask the user to sign in again and again.
    if (error.kind === 'unauthorized') this.#end(error)
    else this.#failed(error)
  }

  #event(data: string, type: string): void {
    this.heard++
    this.#failures = 0
    this.#emptyAttempts = 0
    if (!this.#closed && data !== '' && type === '') this.#user.event(data)
  }

  #remember(): void {
    if (this.#parser === undefined) return
    this.#lastId = this.#parser.lastId
    this.#retryMs = this.#parser.retryMs ?? this.#retryMs
  }

  #failed(error: ConnectionError): void {
    this.#emptyAttempts++
    if (++this.#failures > this.#tries) this.#end(error)
    else this.openLater()
  }

  /** 400 may refuse the event id: servers retain only a part of what they sent. */
  #startsAnew(status: number): boolean {
    if (!this.#restarts || status !== 400 || this.#lastId === undefined) return false
    this.#lastId = undefined
    return true
  }

  #end(error: ConnectionError): void {
    this.#closed = true
    this.#user.gone(error)
  }

  #delay(): number {
    const { retryMs, minRetryMs, maxRetryMs, maxBackoffMs, random } = this.#port.settings
    const base = Math.min(Math.max(this.#retryMs ?? retryMs, minRetryMs), maxRetryMs)
    if (this.#emptyAttempts <= 1) return base
    const backoff = Math.min(base * 2 ** Math.min(this.#emptyAttempts - 1, 20), Math.max(base, maxBackoffMs))
    return Math.round(backoff * (1 + random() / 4))
  }
}

/** Temporary refusals: timeout, old stream still open, too early, too many requests. */
const passing = new Set([408, 409, 425, 429])
