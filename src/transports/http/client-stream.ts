/**
 * A stream of events opened by GET, and opened again under its last event id when it ends or breaks
 * (2025-11-25 basic/transports, "Resumability and Redelivery"). Serves both what the server says unasked and the
 * rest of an answer whose own stream was cut.
 */
import type { Cancel } from '../../core/clock.ts'
import type { ConnectionError, Outgoing } from '../../jsonrpc/connection.ts'
import { SseParser } from '../sse/parse.ts'
import { httpRefusal, mediaType, redirection, wrongContent } from './client-refusal.ts'
import { type AnswerReader, asConnectionError, type HeaderView, type StreamablePort, type WireCall } from './client-wire.ts'

export interface StreamUser {
  /** The server sends events. `continued`: it was asked to go on after the last one that came. */
  opened?(continued: boolean): void
  /** One message. */
  event(text: string): void
  /** The stream held something unreadable; unless closed now, it is opened again later. */
  fault(error: ConnectionError): void
  /** The stream is over for good. */
  gone(error: ConnectionError): void
}

interface StreamStart {
  readonly lastId?: string | undefined
  readonly retryMs?: number | undefined
  /** Failures in a row before giving up. */
  readonly tries: number
  /** Begin anew, without what was missed, when the server can not go on after the last event. */
  readonly restarts?: boolean
}

export class HttpEventStream implements AnswerReader {
  heard = 0
  readonly #port: StreamablePort
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
  /** Openings in a row that brought nothing: they space out, whether or not they failed. */
  #barren = 0
  #closed = false

  constructor(port: StreamablePort, outgoing: Outgoing, user: StreamUser, start: StreamStart) {
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

  /** Opens it after the wait that the server asked for. */
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
    // A server that names its wait wants to be polled at that pace; one that just hangs up is asked less and less often.
    this.#barren = this.#retryMs === undefined ? this.#barren + 1 : 0
    this.openLater()
  }

  fail(error: ConnectionError): void {
    if (this.#closed) return
    this.#remember()
    // Nobody is asked to sign in again and again by a stream that tries again and again.
    if (error.kind === 'unauthorized') this.#end(error)
    else this.#failed(error)
  }

  #event(data: string, type: string): void {
    this.heard++
    this.#failures = 0
    this.#barren = 0
    if (!this.#closed && data !== '' && type === '') this.#user.event(data)
  }

  #remember(): void {
    if (this.#parser === undefined) return
    this.#lastId = this.#parser.lastId
    this.#retryMs = this.#parser.retryMs ?? this.#retryMs
  }

  #failed(error: ConnectionError): void {
    this.#barren++
    if (++this.#failures > this.#tries) this.#end(error)
    else this.openLater()
  }

  /** The event id may be what is refused: servers keep only so much of what they said. */
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
    if (this.#barren <= 1) return base
    const backoff = Math.min(base * 2 ** Math.min(this.#barren - 1, 20), Math.max(base, maxBackoffMs))
    return Math.round(backoff * (1 + random() / 4))
  }
}

/** Refusals that may pass by themselves: timed out, the old stream is not yet gone, too early, too often. */
const passing = new Set([408, 409, 425, 429])
