/**
 * What a client connection needs of HTTP, and no more: send one request, hear of its answer piece by piece, let go.
 * Callbacks instead of promises, because every message passes here. Two makers: `client-node.ts`, `client-fetch.ts`.
 */

import type { IncomingMessage } from 'node:http'
import type { Deadlines, Linked, LinkedSet } from '../../core/deadlines.ts'
import { redact } from '../../core/redact.ts'
import { ConnectionError, type Outgoing } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Id, isRecord } from '../../jsonrpc/message.ts'
import type { ClientSettings } from './client-connection.ts'

export interface WireRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Path and query; a wire is bound to one origin. */
  readonly path: string
  /** Names and values by turns, names in lower case. The wire may add its own. */
  readonly headers: string[]
  readonly body?: string
}

/** The answer's headers, by lower-case name; the web's own `Headers` is one. */
export interface HeaderView {
  get(name: string): string | null | undefined
  forEach(fn: (value: string, name: string) => void): void
}

/** Hears of one answer: `head`, any number of `chunk`, then `end` or, at any point instead, `fail`. */
export interface AnswerReader {
  head(status: number, headers: HeaderView): void
  chunk(bytes: Uint8Array): void
  end(): void
  fail(error: ConnectionError): void
  /** The request waits for something on this side; whoever minds its time stops meanwhile. */
  held?(held: boolean): void
  /** Messages handed on so far, where there may be many. */
  readonly heard?: number
}

/** A request under way. */
export interface WireCall {
  /** Ends it at once, with its socket; the reader hears nothing more. */
  drop(): void
}

/** Sends HTTP requests of a client to one server. */
export interface HttpWire {
  /** The reader hears nothing before this has returned. */
  send(request: WireRequest, reader: AnswerReader): WireCall
  /** Frees what idles. Requests under way are their senders' to drop. */
  close(): void
}

/** Checks the address of a server once, so that later steps can trust it. */
export function httpUrl(url: string | URL): URL {
  const parsed = new URL(url)
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw new TypeError(`Only http: and https: addresses can be connected to, not ${parsed.protocol}`)
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new TypeError('The address holds a user name or password; give them by the option headers.authorization instead')
  }
  return parsed
}

/** Anything thrown while an answer is read, as what it means for the connection. */
export function asConnectionError(thrown: unknown): ConnectionError {
  return thrown instanceof ConnectionError
    ? thrown
    : new ConnectionError('protocol', 'The answer could not be read', { cause: thrown })
}

// What an exchange or a stream may know of the connection it belongs to.

/** Messages without an answer that may be under way to a server at once. */
export const maxUntaken = 1_000

export interface WirePort {
  readonly settings: ClientSettings
  readonly deadlines: Deadlines
  /** Everything under way, to be let go when the connection closes. */
  readonly live: LinkedSet<OpenHttpCall>
  /** What Streamable HTTP has and the old pair has not. */
  readonly streamable?: StreamablePort
  post(frame: string, outgoing: Outgoing, session: string | undefined, reader: AnswerReader): WireCall
  frame(text: string, status: number, within?: Id): void
  /** The server let go of the stream of this request, and will be asked for the rest. */
  released?(id: Id, retryMs: number | undefined): void
  /** The request with this id waits for something on this side. */
  hold(id: Id, held: boolean): void
}

/** Sessions, and streams that can be continued. */
export interface StreamablePort {
  readonly settings: ClientSettings
  /** The session that a message with these hints travels in, if it does and there is one. */
  sessionFor(outgoing: Outgoing): string | undefined
  /** A first answer named a session. Throws ConnectionError if the name is none. */
  takeSession(id: string): void
  /** The server does not know this session (any more). */
  loseSession(id: string): void
  get(outgoing: Outgoing, lastId: string | undefined, reader: AnswerReader): WireCall
}

export interface OpenHttpCall extends Linked {
  /** Of the request that awaits its answer here, where there is one. */
  readonly id: Id | undefined
  abort(error: ConnectionError): void
}

// A stream of events, for each turn of the event loop only so many messages: what a socket gives at once may be more than a
// thousand of them, and the system offers many such pieces in one turn.

const sliceBytes = 4 * 1024
const bytesPerTurn = 256 * 1024
const messagesPerTurn = 64

interface PacedReader {
  take(chunk: Uint8Array): void
  end(): void
  fail(cause: Error): void
  /** Messages that came of what was taken so far. */
  heard(): number
}

/** Hands the bytes of `response` on to `reader`, and then how it ended. */
export function pace(response: IncomingMessage, reader: PacedReader): void {
  const paced = new Paced(response, reader)
  response.on('data', chunk => paced.take(chunk))
  response.on('end', () => paced.end())
  response.on('error', cause => paced.fail(cause))
}

/** Where the bytes come from. */
interface Flow {
  pause(): unknown
  resume(): unknown
}

export class Paced {
  readonly #response: Flow
  readonly #reader: PacedReader
  /** What came, but not in this turn. */
  #rest: Buffer | undefined = undefined
  #bytes = 0
  #heard = 0
  #counting = false
  #ended = false

  constructor(response: Flow, reader: PacedReader) {
    this.#response = response
    this.#reader = reader
  }

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
    // Where little comes, no turn is counted.
    if (this.#counting || (!enough && this.#bytes < sliceBytes)) return
    this.#counting = true
    setImmediate(this.#next)
  }

  /** Comes while some of it is still to be taken. */
  end(): void {
    this.#ended = true
    if (this.#rest === undefined) this.#reader.end()
  }

  /** Nothing more comes, but what has come still counts. */
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

// HTTP answers that carry no message, as errors that say what came and what to look at.

/** `application/json; charset=utf-8` → `application/json`. */
export function mediaType(value: string | null | undefined): string {
  if (value === null || value === undefined) return ''
  if (value === 'application/json' || value === 'text/event-stream') return value
  const end = value.indexOf(';')
  return (end === -1 ? value : value.slice(0, end)).trim().toLowerCase()
}

export function headerRecord(headers: HeaderView): Readonly<Record<string, string>> {
  const entries: [string, string][] = []
  headers.forEach((value, name) => {
    entries.push([name, value])
  })
  return Object.fromEntries(entries)
}

/** An answer that asks for credentials: its headers are what counts, whatever its body says. */
export function isChallenge(status: number, headers: HeaderView): boolean {
  return status === 401 || (status === 403 && typeof headers.get('www-authenticate') === 'string')
}

/** Not a success: `status`, with the headers, which may hold a challenge or a wait. */
export function httpRefusal(status: number, headers: HeaderView, hint: string): ConnectionError {
  const said = hint === '' ? '' : `: ${clip(redact(hint))}`
  const fix = status === 401 ? '. It wants credentials: give the option auth' : ''
  const message = `The server answered HTTP ${status}${said}${fix}`
  return new ConnectionError('status', message, { status, headers: headerRecord(headers) })
}

/** The server has forgotten the session, so it did nothing with what was sent in it. */
export function sessionGone(status: number): ConnectionError {
  const message = `The server no longer knows this session (HTTP ${status}); a new one must be opened`
  return new ConnectionError('session', message, { status })
}

/** Redirects are not followed: the body and its credentials are for the server that was named. */
export function redirection(status: number, headers: HeaderView): ConnectionError {
  const to = headers.get('location')
  const where = to === null || to === undefined ? 'elsewhere' : clip(redact(to))
  return new ConnectionError(
    'status',
    `The server redirects to ${where} (HTTP ${status}), which is not followed; connect to that address if you trust it`,
    {
      status,
      headers: headerRecord(headers),
    },
  )
}

/** A success whose content is not what was asked for. */
export function wrongContent(status: number, headers: HeaderView): ConnectionError {
  const type = mediaType(headers.get('content-type'))
  const said = type === '' ? 'no content type' : clip(type)
  return new ConnectionError(
    'protocol',
    `The server answered HTTP ${status} with ${said}; expected application/json or text/event-stream`,
    {
      status,
      headers: headerRecord(headers),
    },
  )
}

/** The server takes in less than it asks for. One error for all: they come in such numbers that making each would be the dearest part. */
export const untaken: ConnectionError = new ConnectionError(
  'too-large',
  `${maxUntaken} messages wait for the server to take them; this one is not sent`,
)

/** A body longer than this is not parsed for the sake of a hint. */
const parsedHint = 64 * 1024
const lenient = new TextDecoder()

/** The most telling words of a refusal's body: of JSON its message, else its beginning. */
export function hintFrom(body: Uint8Array): string {
  const text = lenient.decode(body.length > parsedHint ? body.subarray(0, 1024) : body)
  return saidIn(text) ?? text.slice(0, 200).replace(/\s+/g, ' ').trim()
}

function saidIn(text: string): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value)) return undefined
  const inner = isRecord(value['error']) ? value['error']['message'] : undefined
  const words = inner ?? value['error_description'] ?? value['message'] ?? value['error']
  return typeof words === 'string' ? words : undefined
}
