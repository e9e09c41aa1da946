/**
 * What a client connection needs of HTTP, and no more: send one request, hear of its answer piece by piece, let go.
 * Callbacks instead of promises, because every message passes here. Two makers: `client-node.ts`, `client-fetch.ts`.
 */
import type { Deadlines, Linked, LinkedSet } from '../../core/deadlines.ts'
import { ConnectionError, type Outgoing } from '../../jsonrpc/connection.ts'
import type { Id } from '../../jsonrpc/message.ts'
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
