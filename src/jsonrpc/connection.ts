/**
 * The contract between carriers (stdio, HTTP, WebSocket, …) and the engine.
 * A frame is the JSON text of one message (or of one array, where a wire has batches).
 * Carriers move frames and hold no protocol logic; the engine never sees bytes or sockets.
 */
import type { Awaitable, Id } from './message.ts'

/** The transport of a connection. */
export type Carrier = 'stdio' | 'memory' | 'websocket' | 'sse' | 'http'

/** An authenticated identity, and what its token states. */
export interface Principal {
  /** The unique id, which is part of every key of data that belongs to it. */
  readonly id: string
  /** The issuer of the token. */
  readonly issuer?: string | undefined
  /** The user, as the issuer names them. */
  readonly subject?: string | undefined
  /** The OAuth client that acts for the user. */
  readonly client?: string | undefined
  /** The scopes of the token. Absent: none. */
  readonly scopes?: readonly string[] | undefined
  /** When the token expires, in milliseconds since the epoch; connections are closed then. Absent: never. */
  readonly expiresAt?: number | undefined
  /** All claims of the token. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
}

/** Who sends a message: constant on a duplex connection, one per exchange over HTTP. */
export interface Caller {
  /** The carrier of the message. */
  readonly carrier: Carrier
  /** Reads a request header by its lower-case name. Absent on carriers without headers. */
  header?(name: string): string | undefined
  /** Who calls, if the carrier has authenticated it. */
  readonly principal?: Principal | undefined
  /** An object that lives as long as the connection of the caller. Limits per connection count by it. */
  readonly connection: object
  /** Returns the headers of a refusal that asks for these scopes. Absent on carriers without such headers. */
  challenge?(scopes: readonly string[]): Readonly<Record<string, string>> | undefined
  /** Whether the next message of this caller may reach another process, so that nothing can be remembered for it. */
  readonly ephemeral?: boolean
}

/** What a carrier may need to know about a frame. */
export interface SendHints {
  /** Whether the frame is the answer, after which the lane ends. */
  readonly final?: boolean
  /** The HTTP status, if nothing was sent before. Default 200. */
  readonly status?: number
  /** Further response headers, if nothing was sent before. */
  readonly headers?: Readonly<Record<string, string>>
  /** A later frame with the same key may replace this one while it waits for a slow reader (progress). */
  readonly merge?: string
  /** Whether the frame may be dropped if too much waits for a slow reader (log, progress). Default false. */
  readonly spare?: boolean
}

/** The stream on which a message is answered. A duplex connection has one lane; over HTTP each POST and GET has its own. */
export interface Lane {
  /** Sends one frame. */
  send(frame: string, hints?: SendHints): void
  /** Ends the answer: nothing more is sent. HTTP: 202 if nothing was sent. Duplex lanes ignore it. */
  end(hints?: SendHints): void
  /** Whether the receiver is gone permanently. */
  readonly closed: boolean
  /** Whether only the final frame can be sent, because the caller accepts no stream. Absent: false. */
  readonly answerOnly?: boolean
  /** Whether somebody reads the lane now. Absent on lanes that cannot be re-attached. */
  readonly attached?: boolean
  /** Whether a slow reader has not yet taken what was sent. Absent on lanes that cannot tell. */
  readonly blocked?: boolean
  /** Calls back once, when the lane may no longer be blocked. Present together with `blocked`; not called on a closed lane. */
  onFree?(fn: () => void): void
  /** Calls back once, if the receiver goes away before the lane has ended. */
  onClose(fn: () => void): void
  /**
   * Keeps what is sent, under event ids, so that it can be replayed in this session. `prime` sends an empty first event at once,
   * so that the reader can come back even before the first message. `will` is what other processes send as the answer if this one
   * ends first. Absent on lanes that cannot be re-attached.
   */
  keep?(session: string, prime: boolean, will?: string): void
  /** Disconnects the reader while the lane stays open; the reader comes back after `retryMs`. */
  release?(retryMs: number): void
  /** Attaches a new lane to the kept one that sent `lastEventId`, and replays what follows. */
  resume?(session: string, lastEventId: string): Awaitable<ResumeOutcome>
}

/**
 * Whether the session had such a lane. `anew`: it was a stream for unsolicited messages in another process, which this lane now
 * continues.
 */
export type ResumeOutcome = boolean | 'anew'

/** The entrance of a server for carriers of your own. */
export interface Acceptor {
  /** Delivers one posted body. The engine always answers on `reply`, with a frame or with `end()`. */
  deliver(text: string, caller: Caller, reply: Lane): void
  /** Opens a stream for unsolicited messages (GET). A refusal is a final frame with a status. Settles when the stream may be opened. */
  listen(caller: Caller, lane: Lane): Awaitable<void>
  /** Ends the session of the caller (DELETE). */
  leave(caller: Caller, reply: Lane): void
  /** Accepts a duplex connection, which the engine then starts. */
  accept(connection: Connection): void
  /** Returns further data for the error body of a refusal by the carrier, for callers that can read it. */
  refusalData?(caller: Caller, refusal: CarrierRefusal): unknown
}

/** A request of an authenticated caller that was refused before it reached the engine. */
export interface CarrierRefusal {
  /** The HTTP status. */
  readonly status: number
  /** Why it is refused, in a sentence. */
  readonly message: string
  /** Milliseconds after which a retry may succeed. */
  readonly retryAfterMs?: number | undefined
}

/** What accompanies a frame that a client or a duplex connection sends. */
export interface Outgoing {
  /** The id of the request in the frame, if it is one. */
  readonly id?: Id
  /** Headers, on carriers that have them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Aborted when the answer is no longer wanted. */
  readonly signal?: AbortSignal
  /** Whether the sender handles the timeout itself and calls `drop`: cheaper than a signal per request. Default false. */
  readonly minded?: boolean
  /** Whether the carrier may adopt the session that the response headers name, and re-open it if it is lost. */
  readonly session?: boolean
  /** Whether a broken response stream may be continued after its last event id. */
  readonly resume?: boolean
  /** A later frame with the same key may replace this one while it still queues for a slow reader. */
  readonly merge?: string
  /** Whether the frame may be dropped if too much waits for a slow reader. */
  readonly spare?: boolean
}

/** Receives what arrives on a connection. Callbacks are synchronous and must not throw. */
export interface Sink {
  /** One frame. `status` is the HTTP status that carried it; `within` is the id of the request on whose response stream it came. */
  frame(text: string, status?: number, within?: Id): void
  /** A frame that was refused unread because it is too long or not UTF-8. The connection continues. */
  fault(fault: FrameFault): void
  /** The connection has ended. Called once, also after `close()`. */
  closed(reason?: Error): void
  /** Stops or restarts the timeout of a request, because it waits for something on this side, such as a sign-in. */
  hold?(id: Id, held: boolean): void
  /** The other side closed the stream of this request while it continues to work; the answer is fetched later. */
  released?(id: Id, retryMs: number | undefined): void
  /** Resolves when nothing is left to send. For carriers whose other side may stop writing before it stops reading. */
  quiet?(): Promise<void>
}

/** A frame that was refused unread. */
export interface FrameFault {
  /** What is wrong with the frame. */
  readonly kind: 'too-large' | 'not-utf8' | 'not-text'
  /** What is wrong with the frame, in a sentence. */
  readonly message: string
  /** The request that the frame answers, or `any` if that is unknown. */
  readonly answers?:
    | {
        /** The id of the request. */
        readonly id: Id
      }
    | 'any'
  /** The id of the request that the frame is, if it was seen before the frame became too long. */
  readonly request?: Id
}

/** Learns what becomes of the stream for unsolicited messages of a server. */
export interface ListenUser {
  /** The stream is open. If it is not `continued`, messages may have been missed. */
  opened(continued: boolean): void
  /** The stream was open, and the server no longer knows the session. */
  lost(error: ConnectionError): void
  /** The server offers no such stream, or the session is gone. */
  absent(): void
}

/** One end of a connection; over HTTP the client's view of a server. */
export interface Connection {
  /** The carrier of the connection. */
  readonly carrier: Carrier
  /** Constant facts about the other side. On a server: what the handshake brought (headers, principal). */
  readonly caller?: Caller
  /** Starts reading. Call it once. */
  start(sink: Sink): void | Promise<void>
  /**
   * Sends a frame. Resolves, or returns undefined, when the frame was accepted; rejects with `ConnectionError` if it cannot be
   * delivered.
   */
  send(frame: string, outgoing?: Outgoing): void | Promise<void>
  /** Over HTTP: opens the stream for unsolicited messages, if the server offers one, and opens it again whenever it breaks. */
  listen?(outgoing: Outgoing, user?: ListenUser): void
  /** Whether a slow reader has not yet taken what was sent. Absent on carriers that cannot tell. */
  readonly blocked?: boolean
  /** Calls back once, when the connection is no longer blocked. Present together with `blocked`. */
  onFree?(fn: () => void): void
  /** Stops reading for this time, because the other side exceeds a rate limit. Absent on carriers that cannot. */
  rest?(ms: number): void
  /** Discards the answer of a request, on carriers where each request has its own exchange. */
  drop?(id: Id, reason: unknown): void
  /** Closes the connection because its authorization has expired. Absent on carriers that cannot state a reason. */
  expire?(): void
  /** Closes the connection. Resolves when it is closed. */
  close(): Promise<void>
}

/** A connection that failed: refused, lost, or not speaking MCP. */
export class ConnectionError extends Error {
  /** Always `ConnectionError`. */
  override readonly name = 'ConnectionError'
  /**
   * `lost`: the other side went away. `refused`: it could not be reached. `status`: HTTP answered with an error status.
   * `unauthorized`: HTTP refused the credentials, and better ones could not be obtained (see `cause`). `session`: the session has
   * ended. `protocol`: the response is not a valid message. `aborted`: this side gave up. `too-large`: the message exceeds a
   * limit.
   */
  readonly kind: 'lost' | 'refused' | 'status' | 'unauthorized' | 'session' | 'protocol' | 'aborted' | 'too-large'
  /** The HTTP status, if there was a response. */
  readonly status: number | undefined
  /** The response headers, with lower-case names. */
  readonly headers: Readonly<Record<string, string>> | undefined

  constructor(
    kind: ConnectionError['kind'],
    message: string,
    more: { status?: number; headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.kind = kind
    this.status = more.status
    this.headers = more.headers
  }
}
