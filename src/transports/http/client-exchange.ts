/**
 * One message sent by POST, and everything that comes back for it: a JSON body, a stream of events, nothing, or a
 * refusal. Resolves only after the answer was handed on; rejects when it can no longer come.
 */
import type { Deadline } from '../../core/deadlines.ts'
import { ConnectionError, type Outgoing } from '../../jsonrpc/connection.ts'
import type { FrameLimits } from '../../jsonrpc/limits.ts'
import type { Id } from '../../jsonrpc/message.ts'
import { answerTo, type Body, type BodyUser, refusalBody, successBody } from './client-body.ts'
import { sessionGone } from './client-refusal.ts'
import { HttpEventStream, type StreamUser } from './client-stream.ts'
import { type AnswerReader, asConnectionError, type HeaderView, type WireCall, type WirePort } from './client-wire.ts'

export class HttpClientExchange implements AnswerReader, BodyUser, StreamUser {
  readonly limits: FrameLimits
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
  #rest: HttpEventStream | undefined
  #deadline: Deadline | undefined
  #withinMs = 0
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
      this.#onAbort = () => this.abort(new ConnectionError('aborted', 'The request was given up', { cause: signal.reason }))
      signal.addEventListener('abort', this.#onAbort)
    }
    if (!this.awaited) this.#within(port.settings.deliverTimeoutMs, 'take the message')
    else if (signal === undefined && minded !== true) this.#within(port.settings.answerTimeoutMs, 'answer')
    this.#session = port.streamable?.sessionFor(this.#outgoing)
    port.live.add(this)
    this.#call = port.post(frame, this.#outgoing, this.#session, this)
  }

  /** Lets go at once. */
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

  settle(error?: ConnectionError): void {
    if (this.settled) return
    this.settled = true
    if (error === undefined) this.#resolve()
    else this.#reject(error)
  }

  /** From the stream that continues a broken one. */
  event(text: string): void {
    this.frame(text, 200)
    if (this.settled) this.#finish()
  }

  fault(error: ConnectionError): void {
    this.abort(error)
  }

  gone(cause: ConnectionError): void {
    const message = `The answer stream broke and could not be continued (${cause.message}); whether the server acted is unknown`
    this.abort(new ConnectionError('lost', message, { cause }))
  }

  #success(status: number, headers: HeaderView): Body {
    // Only where none was sent: a late answer from a session that is gone must not bring it back.
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

  /** True if the rest of a broken answer stream can still come by another. */
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
      this.abort(new ConnectionError('lost', `The server did not ${what} within ${ms} ms; whether it acted is unknown`)),
    )
  }

  /** What follows the outcome is read on, so that the socket can serve again, but not for long. */
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
  return new ConnectionError('lost', 'The server ended its answer stream before the answer; whether it acted is unknown')
}
