/** A peer seen by its frames: what scenarios hold in their hands, whatever carries it. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Carrier, Frame, Json, RevisionId } from '../scenario.ts'

/** The error of an answer, as it came. */
export interface AnswerError {
  readonly code: unknown
  readonly message: unknown
  readonly data?: unknown
}

/** What came back for one request. Neither `result` nor `error`: HTTP answered with something else. */
export interface Answer {
  readonly id: unknown
  readonly result?: unknown
  readonly error?: AnswerError
  readonly frame: Frame | undefined
  /** What came in from the request until its answer; over HTTP only what came on the request's own stream. */
  readonly during: readonly Frame[]
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** What is peculiar to one request. */
export interface RequestOptions {
  /** Default: the next number. Anything may be sent, also what is no id. */
  readonly id?: unknown
  /** Members added to `_meta`. */
  readonly meta?: Json
  /** False: the request goes without what the revision wants in `_meta`. Default true. */
  readonly envelope?: boolean
  /** Headers added or, with undefined, left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** How long the answer may take. Default 10 s. */
  readonly ms?: number
}

/** A request under way. */
export interface Begun {
  readonly id: unknown
  readonly answer: Promise<Answer>
  /** Lets go: over HTTP the exchange is dropped. */
  abort(): void
}

/** What became of a frame that was sent; over HTTP with the status of its POST. */
export interface Sent {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Over HTTP: what is below the messages. */
export interface HttpFace {
  readonly url: URL
  /** What the server named when the session was opened. */
  readonly session: string | undefined
  /** The headers that a right message of this revision has. */
  headers(message?: Json): Record<string, string>
  /** Any exchange; only the headers that are given. */
  call(call: Omit<HttpCall, 'url'> & { readonly url?: URL }): Promise<HttpReply>
}

/** Over stdio: the process. */
export interface ChildFace {
  /** Closes its standard input. */
  endInput(): void
  /** Settles when it has ended; false: not within this time. */
  exited(ms: number): Promise<boolean>
  readonly status: { readonly code?: number; readonly signal?: string } | undefined
  /** What it wrote to standard error last. */
  readonly stderr: readonly string[]
  /** Bytes, exactly as given: no line end is added. */
  write(bytes: string | Uint8Array): Promise<void>
}

/** Which frame is waited for: by its method, or by anything (`message` is empty where the frame is no object). */
export type Match = string | ((message: Json, frame: Frame) => boolean)

/** A connection at the level of frames. */
export interface RawPeer {
  readonly revision: RevisionId
  readonly carrier: Carrier
  /** Result of the handshake, where one was made. */
  readonly hello: Json | undefined
  /** Both directions, in order. */
  readonly frames: readonly Frame[]
  /** Sends a request; its answer can be awaited. */
  begin(method: string, params?: Json, options?: RequestOptions): Begun
  request(method: string, params?: Json, options?: RequestOptions): Promise<Answer>
  /** A request that may be answered by questions: they are answered by `onRequest`, also where they come inside results. */
  converse(method: string, params?: Json, options?: RequestOptions): Promise<Answer>
  notify(method: string, params?: Json, options?: RequestOptions): Promise<Sent>
  /** Any text, as one frame. */
  send(text: string, options?: RequestOptions): Promise<Sent>
  /** The next frame that fits and was not given out before; fails when none comes in time (default 5 s). */
  next(match: Match, ms?: number): Promise<Frame>
  /** What fits of what has come so far. */
  heard(match: Match): readonly Frame[]
  /** Whether a frame that fits comes within this time. */
  hears(match: Match, ms: number): Promise<boolean>
  /** How requests of this method are answered: by a result, or by a thrown `{ code, message }`. Without: method not found. */
  onRequest(method: string, answer: (params: Json) => unknown): void
  /** Comes back when something harmless that was sent after all else has been answered. */
  settled(): Promise<void>
  /** Settles with a reason when the connection has ended. */
  readonly closed: Promise<string>
  /** Only over HTTP and the old pair: elsewhere a mistake of the scenario. */
  readonly http: HttpFace
  /** Only over stdio. */
  readonly child: ChildFace
  close(): Promise<void>
}

// ── What one HTTP exchange sends and gets. Apart from the code that makes it, so that these types can be read without those of Node.

/** What one HTTP exchange sends, and who hears of its answer. */
export interface HttpCall {
  readonly url: URL
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** The longest time for the whole exchange. Default 10 s. */
  readonly ms?: number
  readonly signal?: AbortSignal
  /** Each event of a stream as it comes. */
  onEvent?(event: StreamEvent): void
  onHead?(status: number, headers: Readonly<Record<string, string>>): void
  /** Stops reading a stream after this event: the exchange is dropped. */
  until?(event: StreamEvent): boolean
}

/** One server-sent event. */
export interface StreamEvent {
  /** Empty for plain messages. */
  readonly type: string
  readonly data: string
  readonly id?: string
  readonly retry?: number
}

/** What one HTTP exchange got. */
export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Empty for streams of events. */
  readonly body: string
  readonly events: readonly StreamEvent[]
  /** False: we let go, or the time was over, before the end. */
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
export interface Outward {
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
  send(text: string, outward: Outward): Promise<Sent>
  /** Over HTTP with sessions: the stream for what is said unasked. */
  listen?(): Promise<void>
  readonly http?: HttpFace
  readonly child?: ChildFace
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
