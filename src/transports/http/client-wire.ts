/**
 * The contract between client connections and the code that makes their HTTP requests ("wires": `client-socket.ts`,
 * `client-node.ts`, `client-fetch.ts`), with what all wires share: pacing of event streams, and errors for answers without a
 * message. It uses callbacks instead of promises, because every message passes here.
 */

import { challengeParameter, lacksScope } from '../../core/credentials.ts'
import type { Deadlines, LinkedItem, LinkedSet } from '../../core/deadlines.ts'
import { redact } from '../../core/redact.ts'
import { ConnectionError, type Outgoing } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Id } from '../../jsonrpc/message.ts'
import type { ClientSettings, HttpClientConnection } from './client-connection.ts'

/** One HTTP request. */
export interface WireRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Path and query; a wire is bound to one origin. */
  readonly path: string
  /** Names (in lower case) and values in turn. The wire may add its own. */
  readonly headers: string[]
  readonly body?: string
}

/** The headers of an answer, by lower-case name; the web's `Headers` implements it. */
export interface HeaderView {
  get(name: string): string | null | undefined
  forEach(fn: (value: string, name: string) => void): void
}

/** Receives one answer: `head`, any number of `chunk`, then `end`; or, at any point, `fail`. */
export interface AnswerReader {
  head(status: number, headers: HeaderView): void
  chunk(bytes: Uint8Array): void
  end(): void
  fail(error: ConnectionError): void
  /** The request waits for something on this side, such as credentials; its deadlines are suspended meanwhile. */
  held?(held: boolean): void
  /** Messages received so far, on streams that may have many. */
  readonly heard?: number
}

/** A request in progress. */
export interface WireCall {
  /** Cancels it and closes its socket; the reader is not called any more. */
  drop(): void
}

/** Sends HTTP requests to one server. */
export interface HttpWire {
  /** Sends a request. The reader is never called before this returns. */
  send(request: WireRequest, reader: AnswerReader): WireCall
  /** Closes idle sockets. Requests in progress are cancelled by their senders. */
  close(): void
}

/** Parses and checks the address of a server once, so that later steps can rely on it. */
export function httpUrl(url: string | URL): URL {
  const parsed = new URL(url)
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw new TypeError(`The address must begin with http: or https:, not ${parsed.protocol}`)
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new TypeError('The address contains a user name or password; use the option headers.authorization instead')
  }
  return parsed
}

/** Converts anything thrown while an answer is read. */
export function asConnectionError(thrown: unknown): ConnectionError {
  return thrown instanceof ConnectionError
    ? thrown
    : new ConnectionError('protocol', 'The response could not be read', { cause: thrown })
}

// What an exchange or a stream may use of its connection.

/** Notifications and responses that may be on their way to a server at once. */
export const maxUntaken = 1_000

/** The part of a connection that an exchange uses. */
export interface WirePort {
  readonly settings: ClientSettings
  readonly deadlines: Deadlines
  /** Everything in progress, to be aborted when the connection closes. */
  readonly live: LinkedSet<OpenHttpCall>
  /** Sessions and resumable streams: present on Streamable HTTP, absent on HTTP+SSE. */
  readonly streamable?: HttpClientConnection
  /** Posts a message. */
  post(frame: string, outgoing: Outgoing, session: string | undefined, reader: AnswerReader): WireCall
  /** Passes a received message on. `within`: the request whose answer stream brought it. */
  frame(text: string, status: number, within?: Id): void
  /** The server closed the stream of this request before its answer; the rest will be requested by GET. */
  released?(id: Id, retryMs: number | undefined): void
  /** Suspends or resumes the deadline of a request. */
  hold(id: Id, held: boolean): void
}

/** A request or stream in progress. */
export interface OpenHttpCall extends LinkedItem {
  /** The id of the request that waits for its answer here, if any. */
  readonly id: Id | undefined
  abort(error: ConnectionError): void
}

// Limits how much of an event stream is handled per turn of the event loop: one read of a socket may hold more than a thousand
// messages, and the system delivers many reads in one turn.

const sliceBytes = 4 * 1024
const bytesPerTurn = 256 * 1024
const messagesPerTurn = 64

/** Receives the bytes of a stream at that pace. */
interface PacedReader {
  take(chunk: Uint8Array): void
  /** The source has ended and all of its bytes were passed on. */
  end(): void
  fail(cause: Error): void
  /** Messages found in the bytes so far. */
  heard(): number
}

/** A source that can be paused. */
interface Flow {
  pause(): unknown
  resume(): unknown
}

/** Splits chunks into slices, and pauses the source when a turn has had enough. */
export class ChunkPacer {
  readonly #response: Flow
  readonly #reader: PacedReader
  /** Received, but left for a later turn. */
  #rest: Buffer | undefined = undefined
  #bytes = 0
  #heard = 0
  /** A timer for the next turn is set. */
  #counting = false
  #ended = false

  constructor(response: Flow, reader: PacedReader) {
    this.#response = response
    this.#reader = reader
  }

  /** Takes a chunk; what exceeds this turn is kept. */
  take(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && !this.#enough()) {
      const slice = chunk.length <= sliceBytes ? chunk : chunk.subarray(at, at + sliceBytes)
      at += slice.length
      this.#bytes += slice.length
      this.#reader.take(slice)
    }
    this.#rest = at < chunk.length ? chunk.subarray(at) : undefined
    const enough = this.#enough()
    if (enough) this.#response.pause()
    // Under low load no timer is needed.
    if (this.#counting || (!enough && this.#bytes < sliceBytes)) return
    this.#counting = true
    setImmediate(this.#next)
  }

  /** The source has ended, possibly while a rest still waits. */
  end(): void {
    this.#ended = true
    if (this.#rest === undefined) this.#reader.end()
  }

  /** The source failed. What has arrived is still delivered. */
  fail(cause: Error): void {
    if (this.#rest !== undefined) this.#reader.take(this.#rest)
    this.#rest = undefined
    this.#reader.fail(cause)
  }

  #enough(): boolean {
    return this.#bytes >= bytesPerTurn || this.#reader.heard() - this.#heard >= messagesPerTurn
  }

  readonly #next = (): void => {
    this.#counting = false
    this.#bytes = 0
    this.#heard = this.#reader.heard()
    const rest = this.#rest
    if (rest !== undefined) this.take(rest)
    if (this.#rest !== undefined) return
    if (!this.#ended) this.#response.resume()
    else if (rest !== undefined) this.#reader.end()
  }
}

// Errors for HTTP answers that carry no message: what arrived, and what to check.

/** `application/json; charset=utf-8` → `application/json`. */
export function mediaType(value: string | null | undefined): string {
  if (value === null || value === undefined) return ''
  if (value === 'application/json' || value === 'text/event-stream') return value
  const end = value.indexOf(';')
  return (end === -1 ? value : value.slice(0, end)).trim().toLowerCase()
}

/** The headers as a plain object. */
export function headerRecord(headers: HeaderView): Readonly<Record<string, string>> {
  const entries: [string, string][] = []
  headers.forEach((value, name) => {
    entries.push([name, value])
  })
  return Object.fromEntries(entries)
}

/** The error for a status that is not a success, with the headers, which may hold a challenge or a retry time. */
export function httpRefusal(status: number, headers: HeaderView, hint: string): ConnectionError {
  const challenge = headers.get('www-authenticate')
  const said = hint === '' ? '' : `: ${clip(redact(hint), hintLength)}`
  if (lacksScope(status, challenge)) {
    const scopes = challengeParameter(challenge, 'scope')
    const asked = scopes === undefined ? '' : `: use one with the scopes ${clip(scopes, hintLength)}`
    return answerError('status', `The token lacks a scope (HTTP ${status})${said === '' ? asked : said}`, status, headers)
  }
  // Somebody whose token is refused has set the option already.
  const fix = status === 401 && challengeParameter(challenge, 'error') === undefined ? credentialsFix : ''
  return answerError('status', `The server sent HTTP ${status}${said}${fix}`, status, headers)
}

/** The most characters of an error body that a message repeats: it may list scopes and say how to get them. */
const hintLength = 500
/** What a program does about a server that requires credentials. */
export const credentialsFix = '. It requires credentials: set the option auth'

/** The error for a session that the server has forgotten. The message sent in it was not processed. */
export function sessionGone(status: number): ConnectionError {
  const message = `The server does not know this session any more (HTTP ${status}); open a new one`
  return new ConnectionError('session', message, { status })
}

/** The error for a redirect. Redirects are not followed: the message and its credentials are for the named server only. */
export function redirection(status: number, headers: HeaderView): ConnectionError {
  const to = headers.get('location') ?? undefined
  const where = to === undefined ? 'elsewhere' : clip(redact(to))
  const fix = 'redirects are not followed; connect to that address if you trust it'
  return answerError('status', `The server redirects to ${where} (HTTP ${status}), ${fix}`, status, headers)
}

/** The error for a success with an unexpected content type. */
export function wrongContent(status: number, headers: HeaderView): ConnectionError {
  const type = mediaType(headers.get('content-type'))
  const said = type === '' ? 'no content type' : clip(type)
  const expected = 'expected application/json or text/event-stream'
  return answerError('protocol', `The server sent HTTP ${status} with ${said}; ${expected}`, status, headers)
}

function answerError(kind: ConnectionError['kind'], message: string, status: number, headers: HeaderView): ConnectionError {
  return new ConnectionError(kind, message, { status, headers: headerRecord(headers) })
}

/**
 * The error for too many undelivered messages. One shared instance: creating an error for each would cost more than all the
 * rest.
 */
export const tooManyUndelivered: ConnectionError = new ConnectionError(
  'too-large',
  `${maxUntaken} messages already wait for the server to accept them; this message was not sent`,
)
