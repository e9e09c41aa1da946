/** A peer seen by its frames: what scenarios hold in their hands, whatever carries it. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Carrier, Frame, Json, RevisionId } from '../scenario.ts'

/** The error of a response, as it arrived. */
export interface AnswerError {
  /** The error code. */
  readonly code: unknown
  /** The error message. */
  readonly message: unknown
  /** Further data about the error. */
  readonly data?: unknown
}

/** The response to a request. It has neither `result` nor `error` if HTTP answered with something else. */
export interface Answer {
  /** The id that was sent with the request. */
  readonly id: unknown
  /** The result, if there is one. */
  readonly result?: unknown
  /** The error, if there is one. */
  readonly error?: AnswerError
  /** The frame that held the answer. Undefined if HTTP answered with something else. */
  readonly frame: Frame | undefined
  /** Frames that arrived between request and answer; over HTTP only those on the response stream. */
  readonly during: readonly Frame[]
  /** The HTTP status. */
  readonly status?: number
  /** The response headers, with lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  /** The response body, if it was not a frame. */
  readonly body?: string
}

/** Options of one request. */
export interface RequestOptions {
  /** The id, which may be anything, even an invalid one. Default: the next number. */
  readonly id?: unknown
  /** Members that are added to `_meta`. Default: none. */
  readonly meta?: Json
  /** Whether the request has the `_meta` that the revision requires. Default true. */
  readonly envelope?: boolean
  /** Headers to add, or to leave out by `undefined`. Default: none. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** How long the answer may take, in milliseconds. Default 10,000. */
  readonly ms?: number
}

/** A request that is running. */
export interface Begun {
  /** The id of the request. */
  readonly id: unknown
  /** Resolves with the answer. */
  readonly answer: Promise<Answer>
  /** Gives up the request; over HTTP the exchange is closed. */
  abort(): void
}

/** The result of sending a frame; over HTTP with the status of its POST. */
export interface Sent {
  /** The HTTP status. */
  readonly status?: number
  /** The response headers, with lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  /** The response body. */
  readonly body?: string
}

/** The HTTP level of a connection. */
export interface HttpControl {
  /** The URL of the endpoint. */
  readonly url: URL
  /** The session id that the server assigned. */
  readonly session: string | undefined
  /** Returns the correct headers of this revision for a message. */
  headers(message?: Json): Record<string, string>
  /** Makes any HTTP request, with only the given headers. */
  call(
    call: Omit<HttpCall, 'url'> & {
      /** The URL of the request. Default: the endpoint. */
      readonly url?: URL
    },
  ): Promise<HttpReply>
}

/** The process of a stdio connection. */
export interface ChildControl {
  /** Closes its standard input. */
  endInput(): void
  /** Resolves when the process has ended; false if it has not within this time. */
  exited(ms: number): Promise<boolean>
  /** How the process ended. Undefined while it runs. */
  readonly status:
    | {
        /** The exit code. */
        readonly code?: number
        /** The signal that ended it. */
        readonly signal?: string
      }
    | undefined
  /** The last lines of its standard error. */
  readonly stderr: readonly string[]
  /** Writes bytes exactly as given, without a line end. */
  write(bytes: string | Uint8Array): Promise<void>
}

/** Selects a frame: by its method, or by a function (`message` is empty if the frame is not an object). */
export type Match = string | ((message: Json, frame: Frame) => boolean)

/** A connection at the level of frames. */
export interface RawPeer {
  /** The revision of the connection. */
  readonly revision: RevisionId
  /** The carrier of the connection. */
  readonly carrier: Carrier
  /** The result of the handshake, if one was made. */
  readonly hello: Json | undefined
  /** The frames in both directions, in order. */
  readonly frames: readonly Frame[]
  /** Sends a request without waiting for its answer. */
  begin(method: string, params?: Json, options?: RequestOptions): Begun
  /** Sends a request and resolves with its answer. */
  request(method: string, params?: Json, options?: RequestOptions): Promise<Answer>
  /** Sends a request whose answer may be questions, which `onRequest` answers, also in revisions that ask in results. */
  converse(method: string, params?: Json, options?: RequestOptions): Promise<Answer>
  /** Sends a notification. */
  notify(method: string, params?: Json, options?: RequestOptions): Promise<Sent>
  /** Sends any text as one frame. */
  send(text: string, options?: RequestOptions): Promise<Sent>
  /** Resolves with the next matching frame that was not returned before. Fails if none arrives in time (default 5 s). */
  next(match: Match, ms?: number): Promise<Frame>
  /** The matching frames that have arrived so far. */
  heard(match: Match): readonly Frame[]
  /** Whether a matching frame arrives within this time. */
  hears(match: Match, ms: number): Promise<boolean>
  /**
   * Sets the answer to requests of this method: a result, or a thrown `{ code, message }`. Without one the answer is "method not
   * found".
   */
  onRequest(method: string, answer: (params: Json) => unknown): void
  /** Resolves when the server has answered a harmless request that was sent after everything else. */
  settled(): Promise<void>
  /** Resolves with a reason when the connection has ended. */
  readonly closed: Promise<string>
  /** The HTTP level. Only over HTTP and HTTP+SSE. */
  readonly http: HttpControl
  /** The process. Only over stdio. */
  readonly child: ChildControl
  /** Closes the connection. */
  close(): Promise<void>
}

// ── What one HTTP exchange sends and gets. Apart from the code that makes it, so that these types can be read without those of Node.

/** An HTTP request. */
export interface HttpCall {
  readonly url: URL
  /** The HTTP method. */
  readonly method: string
  /** The request headers. No others are sent, except those that HTTP itself needs. */
  readonly headers?: Readonly<Record<string, string>>
  /** The request body. Default: none. */
  readonly body?: string | Uint8Array
  /** The longest time for the whole exchange, in milliseconds. Default 10,000. */
  readonly ms?: number
  /** Aborts the exchange. */
  readonly signal?: AbortSignal
  /** Called with each event of a stream. */
  onEvent?(event: StreamEvent): void
  /** Called with the status and headers of the response. */
  onHead?(status: number, headers: Readonly<Record<string, string>>): void
  /** Stops reading after the event for which it returns true. */
  until?(event: StreamEvent): boolean
}

/** One server-sent event. */
export interface StreamEvent {
  /** The type of the event. Empty for plain messages. */
  readonly type: string
  /** The data of the event. */
  readonly data: string
  /** The id of the event, if it has one. */
  readonly id?: string
  /** The retry time that the event sets, in milliseconds. */
  readonly retry?: number
}

/** The response to an HTTP request. */
export interface HttpReply {
  /** The HTTP status. */
  readonly status: number
  /** The response headers, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The body. Empty for event streams. */
  readonly body: string
  /** The events of a stream, in order. */
  readonly events: readonly StreamEvent[]
  /** Whether the response was read to its end. */
  readonly whole: boolean
}

// ── What a raw peer needs of a carrier: frames out, frames in, and the end.

/** Who hears what a carrier brings. */
export interface PipeSink {
  /** `exchange` names the POST that brought it, where there was one. */
  frame(text: string, status?: number, exchange?: number): void
  closed(reason: string): void
}

/** What a carrier is told of a frame beside its text. */
export interface SendContext {
  /** The message in the frame, where it is one: carriers with headers look at it. */
  readonly message?: Json | undefined
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  readonly signal?: AbortSignal | undefined
  /** Under which number what comes back on this exchange is told. */
  readonly exchange?: number | undefined
  onHead?(status: number, headers: Readonly<Record<string, string>>): void
}

/** A carrier of frames. */
export interface Pipe {
  readonly carrier: Carrier
  start(sink: PipeSink): Promise<void>
  /** Over HTTP it settles when the exchange is over, elsewhere when the frame is away. */
  send(text: string, sendContext: SendContext): Promise<Sent>
  /** Over HTTP with sessions: the stream for what is said unasked. */
  listen?(): Promise<void>
  readonly http?: HttpControl
  readonly child?: ChildControl
  close(): Promise<void>
}

/** The error with which a thrown `{ code, message }` is answered; throws whatever else was thrown. */
export function refusedBy(thrown: unknown): Json {
  if (!isRecord(thrown) || typeof thrown['code'] !== 'number') throw thrown
  return { error: { code: thrown['code'], message: String(thrown['message']) } }
}

// ── Promises that nobody need wait for.

/** A promise that may be left alone: a scenario that has failed meanwhile waits for it no more, and that is nobody's fault. */
export function letGo<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** A call whose throw is a rejection, be it asynchronous or not. */
export async function promised<T>(fn: () => T | PromiseLike<T>): Promise<T> {
  return fn()
}

/**
 * The HTTP level of a connection.
 * @deprecated Use `HttpControl`.
 */
export type HttpFace = HttpControl

/**
 * The process of a stdio connection.
 * @deprecated Use `ChildControl`.
 */
export type ChildFace = ChildControl
