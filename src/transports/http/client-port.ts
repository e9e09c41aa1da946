/** What an exchange or a stream may know of the connection it belongs to. */

import type { Deadlines } from '../../core/deadlines.ts'
import type { Linked, LinkedSet } from '../../core/linked-set.ts'
import type { ConnectionError, Outgoing } from '../../jsonrpc/connection.ts'
import type { Id } from '../../jsonrpc/message.ts'
import type { ClientSettings } from './client-settings.ts'
import type { AnswerReader, WireCall } from './client-wire.ts'

/** Messages without an answer that may be under way to a server at once. */
export const maxUntaken = 1_000

export interface Port {
  readonly settings: ClientSettings
  readonly deadlines: Deadlines
  /** Everything under way, to be let go when the connection closes. */
  readonly live: LinkedSet<Live>
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

export interface Live extends Linked {
  /** Of the request that awaits its answer here, where there is one. */
  readonly id: Id | undefined
  abort(error: ConnectionError): void
}
