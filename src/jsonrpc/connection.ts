/**
 * The contract between carriers (stdio, HTTP, WebSocket, …) and the engine.
 * A frame is the JSON text of one message (or of one array, where a wire has batches).
 * Carriers move frames and hold no protocol logic; the engine never sees bytes or sockets.
 */
import type { Awaitable, Id } from './message.ts'

/** What moves frames. */
export type Carrier = 'stdio' | 'memory' | 'websocket' | 'sse' | 'http'

/** An authenticated identity, and what the proof of it said. */
export interface Principal {
  /** No two have the same: it is part of every key that belongs to someone. */
  readonly id: string
  /** Who vouches for it. */
  readonly issuer?: string | undefined
  /** What the issuer calls it. */
  readonly subject?: string | undefined
  /** The program that acts for it. */
  readonly client?: string | undefined
  /** What it may do. Absent: nothing that needs a scope. */
  readonly scopes?: readonly string[] | undefined
  /** When the proof expires, in milliseconds since the epoch: what stays open is closed then. Absent: never. */
  readonly expiresAt?: number | undefined
  /** All that the proof said. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
}

/** Who speaks: constant for a duplex connection, one per exchange over HTTP. */
export interface Caller {
  readonly carrier: Carrier
  /** Reads a request header by its lower-case name. Absent on carriers without headers. */
  header?(name: string): string | undefined
  readonly principal?: Principal | undefined
  /** An object that lives as long as the caller's connection (a socket): what is counted "per connection" hangs on it. */
  readonly connection: object
  /** Headers of an HTTP refusal that asks for these scopes. Absent where nothing can be asked for. */
  challenge?(scopes: readonly string[]): Readonly<Record<string, string>> | undefined
  /** The next message of this caller may reach another process: nothing can be remembered here for it. */
  readonly ephemeral?: boolean
}

/** What a carrier may use of a frame beside its text. */
export interface SendHints {
  /** This frame ends the lane: the answer to the request that brought it. */
  readonly final?: boolean
  /** HTTP status, where nothing has been sent yet. Default 200. */
  readonly status?: number
  /** Extra response headers, where nothing has been sent yet. */
  readonly headers?: Readonly<Record<string, string>>
  /** A later frame with the same key may replace this one while it still queues for a slow reader (progress). */
  readonly merge?: string
  /** Better left out than piled up: a carrier where too much waits for a slow reader may drop it (log, progress). */
  readonly spare?: boolean
}

/**
 * The way back to whoever sent a message: a logical stream to which sockets attach and re-attach.
 * On a duplex connection one lane serves the whole connection; over HTTP each POST and GET has its own.
 */
export interface Lane {
  send(frame: string, hints?: SendHints): void
  /** Nothing (more) will be sent in answer. HTTP: 202 if nothing was sent. Duplex lanes ignore it. */
  end(hints?: SendHints): void
  /** True when nobody can receive any more, now or later. */
  readonly closed: boolean
  /** True when it can bring nothing but the final frame: the caller takes no stream. Absent on lanes that always can. */
  readonly answerOnly?: boolean
  /** False while the lane lives on without anybody reading it. Absent on lanes that cannot. */
  readonly attached?: boolean
  /** True while a slow reader has yet to take what was sent. Absent on lanes that cannot tell. */
  readonly blocked?: boolean
  /**
   * Calls back once, when it may no longer be blocked: the reader takes again, has gone, or has come back. Comes with `blocked`;
   * not called on a lane that is closed.
   */
  onFree?(fn: () => void): void
  /** Calls back once, when the receiver has gone away before the lane was ended. */
  onClose(fn: () => void): void
  /**
   * Keep what is sent for replay within this session, under event ids; `prime` sends an empty first event at once
   * so that the reader can come back even before the first message. `will` is what other processes send in the place of the
   * answer if this one goes before it. Only lanes that can be re-attached have it.
   */
  keep?(session: string, prime: boolean, will?: string): void
  /** Lets the reader go while the lane lives on; it comes back by itself after `retryMs`. */
  release?(retryMs: number): void
  /** For a lane opened to continue another: attach to the kept lane that sent `lastEventId`, replaying what follows. */
  resume?(session: string, lastEventId: string): Awaitable<ResumeOutcome>
}

/** Whether there was such a lane in the session; `anew`: one for unasked messages in another process, which this lane now goes on for. */
export type ResumeOutcome = boolean | 'anew'

/** What the engine offers to carriers that take in one exchange at a time (HTTP). */
export interface Door {
  /** One posted body. The engine answers on `reply`, always: with a frame or with `end()`. */
  deliver(text: string, caller: Caller, reply: Lane): void
  /** A stream for what is said unasked (GET). Refused by a final frame with a status. Settles when it may be opened. */
  listen(caller: Caller, lane: Lane): Awaitable<void>
  /** The caller ends its session (DELETE). */
  leave(caller: Caller, reply: Lane): void
  /** A duplex connection has come in; the engine starts it. */
  accept(connection: Connection): void
  /** What the error body of a refusal by the carrier itself says beside its words, to a caller known to read it. */
  refusalData?(caller: Caller, refusal: CarrierRefusal): unknown
}

/** A request of somebody who was let in, refused before it reached the engine. */
export interface CarrierRefusal {
  readonly status: number
  readonly message: string
  readonly retryAfterMs?: number | undefined
}

/** Travels with a frame that a duplex or client-side connection sends. */
export interface Outgoing {
  /** The id of the request in this frame, when it is one: its answer is awaited. */
  readonly id?: Id
  /** Headers for carriers that have them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Aborted when the answer is no longer wanted and the carrier may drop the exchange. */
  readonly signal?: AbortSignal
  /** The sender minds the time itself, and lets go by `drop`: cheaper than a signal for each request. */
  readonly minded?: boolean
  /** The carrier may take up (and on loss re-open) the session that the answer's headers name. */
  readonly session?: boolean
  /** A broken answer stream may be continued under its last event id. */
  readonly resume?: boolean
  /** A later frame with the same key may replace this one while it still queues for a slow reader. */
  readonly merge?: string
  /** May be left out where too much waits for a slow reader. */
  readonly spare?: boolean
}

/** What arrives on a connection. All callbacks are synchronous and must not throw. */
export interface Sink {
  /**
   * One frame. `status` is the HTTP status that carried it, where there is one; `within` the id of the request on whose answer's
   * stream it came, where each request has a stream of its own.
   */
  frame(text: string, status?: number, within?: Id): void
  /** A frame that had to be refused unread: too long, not UTF-8. The connection goes on. */
  fault(fault: FrameFault): void
  /** The connection has ended; called once, also after our own close(). */
  closed(reason?: Error): void
  /** The request with this id waits for something on this side (a person who signs in): its time stands still meanwhile. */
  hold?(id: Id, held: boolean): void
  /** The other end let go of the stream of this request while it works on; its answer is fetched later. */
  released?(id: Id, retryMs: number | undefined): void
  /** Resolves when nothing is under way that will still be sent. For carriers whose other end may stop talking before it stops listening. */
  quiet?(): Promise<void>
}

/** Why a frame was refused unread. */
export interface FrameFault {
  readonly kind: 'too-large' | 'not-utf8' | 'not-text'
  readonly message: string
  /** Where it was an answer, or may have been one: to which request, or `any` of those under way. */
  readonly answers?: { readonly id: Id } | 'any'
  /** Where it was a request, and said so before it became too long: its id. */
  readonly request?: Id
}

/** Hears what becomes of the stream for what a server says unasked. */
export interface ListenUser {
  /** It is open. Unless it continues what was heard before, something may have been said that nobody heard. */
  opened(continued: boolean): void
  /** The server had it open, and no longer knows the session: a new one must be opened. */
  lost(error: ConnectionError): void
  /** The server says that there is none, and it never had it open: it offers no such stream, or the session is gone. */
  absent(): void
}

/** A duplex connection, either end; over HTTP the client's view of a server. */
export interface Connection {
  readonly carrier: Carrier
  /** Constant facts about the other end; a server's connection gives what its handshake brought (headers, principal). */
  readonly caller?: Caller
  /** Begins reading. Called once. */
  start(sink: Sink): void | Promise<void>
  /** Resolves (or returns undefined) when the frame was taken; rejects with ConnectionError when it cannot be delivered. */
  send(frame: string, outgoing?: Outgoing): void | Promise<void>
  /** Over HTTP: opens the stream for what the server says unasked, if it offers one, and again whenever it breaks. */
  listen?(outgoing: Outgoing, user?: ListenUser): void
  /** True while a slow reader has yet to take what was sent. Absent on carriers that cannot tell. */
  readonly blocked?: boolean
  /** Calls back once, when it is no longer blocked. Comes with `blocked`. */
  onFree?(fn: () => void): void
  /** Reads nothing for so long: the other end asks for more than it is given. Absent on carriers that cannot. */
  rest?(ms: number): void
  /** Where each request holds an exchange of its own: the answer to this one is no longer wanted. */
  drop?(id: Id, reason: unknown): void
  /** Closes it and says why: what let the other end in is over. Absent on carriers that cannot say it. */
  expire?(): void
  close(): Promise<void>
}

/** A failure below the protocol: refused, lost, or answered with something that is no message. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  /** `lost`: the other end went away; `refused`: never reached; `status`: HTTP said no; `unauthorized`: HTTP said no, and credentials that would help could not be had (`cause` says why); `session`: the session is gone; `protocol`: what came is no message; `aborted`: we let go. */
  readonly kind: 'lost' | 'refused' | 'status' | 'unauthorized' | 'session' | 'protocol' | 'aborted' | 'too-large'
  readonly status: number | undefined
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
