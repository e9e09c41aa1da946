/** Traffic: the frames that passed between this process and its servers, and the connections that they passed on. */

/** Which way a frame went, seen from this process: `out` to the server, `in` from it. */
export type FrameWay = 'out' | 'in'

/** What a frame is. */
export type FrameKind =
  /** It asks, and is answered by a result or an error. */
  | 'request'
  | 'result'
  | 'error'
  | 'notification'
  /** An array of messages. Its row names the first one. */
  | 'batch'
  /** No JSON-RPC message. */
  | 'invalid'
  /** HTTP without a frame: the head of a request, or of an answer that carried none. Tapes of `vivarium record` have them. */
  | 'http'
  /** The connection was opened. */
  | 'open'
  /** The connection has ended. */
  | 'closed'

/**
 * How it went, in one word. A request is `open` until it is answered, and then has the status of its answer; `tool-error` is a result
 * whose `isError` is true; `asks` is a result that asks for input first (2026-07-28). Notifications have none.
 */
export type FrameStatus = 'open' | 'ok' | 'error' | 'tool-error' | 'asks'

/** A frame in a list, without its body. Secrets were taken out before it was kept. */
export interface FrameRow {
  /** Its number, from 1 on, in the order in which frames passed. */
  readonly n: number
  /** When it passed. */
  readonly at: number
  /** The server, by its name in `GET /servers`. */
  readonly server: string
  /** The connection, by its name in `GET /connections`. */
  readonly connection: string
  /** Which way it went. */
  readonly way: FrameWay
  /** What it is. */
  readonly kind: FrameKind
  /** The method; for an answer that of its request. */
  readonly method?: string
  /** The JSON-RPC id. */
  readonly id?: string | number
  /** An answer, a progress notification: the number of the request that it belongs to. */
  readonly of?: number
  /** A request that was answered: the number of the answer. Lists have it, the event `frames` has not: it is sent when the frame passes. */
  readonly answer?: number
  /** Milliseconds from the request to its answer: in the row of the answer, and in lists also in that of the request. */
  readonly ms?: number
  /** How it went. */
  readonly status?: FrameStatus
  /** The number of a JSON-RPC error. */
  readonly code?: number
  /** The HTTP status that carried it. */
  readonly http?: number
  /** Its length in bytes, as it passed. */
  readonly bytes: number
  /** A short summary, as text of a peer: `order {"item":"bread"}`. Absent for sessions that may not see payloads. */
  readonly about?: string
  /** It was sent by `POST /frames/:n/again`: the number of the frame that was repeated. */
  readonly again?: number
}

/** `GET /frames`: newest first; `after` is a frame number. All filters must hold. */
export interface FrameQuery {
  /** Frames of this server. */
  readonly server?: string
  /** Frames of this connection. */
  readonly connection?: string
  /** Frames of this method; a `*` at the end stands for any characters. */
  readonly method?: string
  /** Frames with this JSON-RPC id. */
  readonly id?: string
  /** Frames that went this way. */
  readonly way?: FrameWay
  /** Frames of this kind. */
  readonly kind?: FrameKind
  /** Frames with this status. */
  readonly status?: FrameStatus
  /** Requests and answers that took at least so many milliseconds. */
  readonly ms?: number
  /** Frames from this time on. */
  readonly since?: number
  /** Frames before this time. */
  readonly until?: number
  /** The frames of this call of the playground, by its id. */
  readonly call?: string
  /** Text that the frame holds, without regard to case; at most 200 characters. Sessions that may not see payloads search the rows. */
  readonly text?: string
}

/** The HTTP head of a frame. Headers with secrets say `[redacted]`. */
export interface HttpHead {
  /** Of a request. */
  readonly method?: string
  /** Of a request. */
  readonly path?: string
  /** Of an answer. */
  readonly status?: number
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
}

/** `GET /frames/:n`: a frame, whole. */
export interface FrameDetail {
  /** The frame as it is listed. */
  readonly row: FrameRow
  /** The frame as text, without secrets. Absent for sessions that may not see payloads, and for rows without a frame. */
  readonly text?: string
  /** How many characters it had, where only its beginning was kept. */
  readonly cut?: number
  /** How many values were taken out. The frame can be repeated; the server then gets the text `[redacted]` in their place. */
  readonly redacted?: number
  /** The HTTP head. */
  readonly head?: HttpHead
  /** The revision that the connection speaks. */
  readonly revision?: string
  /** Why the frame cannot be sent again. Absent where it can. */
  readonly notAgain?: string
}

/** `POST /frames/:n/again`. */
export interface FrameAgain {
  /** The frame as it was edited. Default: exactly as it passed. The id is renewed in either case, and nothing else. */
  readonly text?: string
  /** The connection to send it on. Default: its own, or where that has ended another one of the same server and revision. */
  readonly connection?: string
}

/** What became of `POST /frames/:n/again`: the answer comes as a frame whose `of` is `n`. */
export interface FrameSent {
  /** The number of the frame that was sent. */
  readonly n: number
  /** The connection. */
  readonly connection: string
  /** Its new id; absent for a notification. */
  readonly id?: string | number
}

/** A connection between this process and a server. */
export interface ConnectionRow {
  /** Its name: the server and a number. */
  readonly name: string
  /** The server, by its name in `GET /servers`. */
  readonly server: string
  /** The revision that it speaks, once that is known. */
  readonly revision?: string
  /** How it is reached. */
  readonly carrier: 'stdio' | 'http' | 'websocket' | 'memory' | 'sse'
  /** Whether frames can be sent on it. */
  readonly open: boolean
  /** When it was opened. */
  readonly since: number
  /** When it ended. */
  readonly until?: number
  /** Why it ended, where that is known. */
  readonly why?: string
}

/** A frame as a report of conformance shows it. */
export interface FrameExcerpt {
  /** Whether the kit sent or received it. */
  readonly way: FrameWay
  /** Milliseconds since the connection was opened. */
  readonly at: number
  /** The frame as text, cut off where it is long. */
  readonly text: string
  /** The HTTP status that carried it. */
  readonly status?: number
}
