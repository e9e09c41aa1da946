/** Tapes: recordings of traffic in files, in the folder of this process. */

/** A tape in the folder. */
export interface TapeRow {
  /** The file, without its folder: `shop-2.tape`. Names the tape. */
  readonly name: string
  /** Its length. */
  readonly bytes: number
  /** When the recording began. */
  readonly began: number
  /** Whether it is being written now. */
  readonly recording: boolean
  /** Who started it. Absent for files that were there before. */
  readonly by?: string
  /** Frames on it. */
  readonly frames: number
  /** Connections on it. */
  readonly connections: number
  /** Why it cannot be read as a tape. */
  readonly why?: string
  /** It is served as a mock server. */
  readonly serving?: TapeService
  /** The last replay since the start of the process, without its differences. */
  readonly replay?: Omit<TapeReplay, 'differences'>
}

/** `GET /tapes/:name`. */
export interface TapeDetail {
  /** As it is listed. */
  readonly tape: TapeRow
  /** The whole path of the file. */
  readonly file: string
  /** The command that replays it without a page. */
  readonly command: string
}

/** `POST /tapes`: starts a recording. Only one runs at a time. */
export interface TapeWish {
  /** The name of the file: letters, digits, `.`, `_` and `-`, at most 64. Default: one that is free. An existing file is never replaced. */
  readonly name?: string
  /** Also write the frames that are kept now, which makes the tape of what has passed already. Default false. */
  readonly past?: boolean
  /** End at once: with `past` this saves what has passed. Default false. */
  readonly stop?: boolean
}

/** `POST /tapes/:name/replay`. */
export interface TapeReplayWish {
  /** The server to send it to. May be left out where there is only one. */
  readonly server?: string
  /** Members whose differences do not count: `result.serverInfo.version`, `**.elapsed`. At most 32. */
  readonly ignore?: readonly string[]
}

/** A replay of a tape against the server of now. */
export interface TapeReplay {
  /** How far it is. */
  readonly state: 'running' | 'done' | 'failed'
  /** Who asked for it. */
  readonly by: string
  /** When it began. */
  readonly startedAt: number
  /** When it ended. */
  readonly endedAt?: number
  /** Frames that were sent. */
  readonly sent: number
  /** Connections that were replayed. */
  readonly conversations: number
  /** How many differences there are. */
  readonly found: number
  /** The first 1,000 differences. Absent for sessions that may not see payloads. */
  readonly differences?: readonly ReplayDifference[]
  /** Why it failed. */
  readonly why?: string
}

/** What the server answers otherwise. */
export interface ReplayDifference {
  /** The number of the connection on the tape, from 1 on. */
  readonly conversation: number
  /** The line of the tape; 0 where it is not on the tape. */
  readonly line: number
  /** What differs: `answer to tools/call`. */
  readonly what: string
  /** The path of the value: `result.content[0].text`. */
  readonly path: string
  /** The value on the tape; absent: there was none. */
  readonly before?: unknown
  /** The value of now; absent: there is none. */
  readonly after?: unknown
}

/** A kind of fault that a mock server can show. */
export type TapeFaultKind = 'delay' | 'drop' | 'duplicate' | 'reorder' | 'cut' | 'error' | 'garbage'

/** `POST /tapes/:name/serve`. Listens on 127.0.0.1 at a free port until it is stopped. */
export interface TapeServeWish {
  /** `KIND[=VALUE][@METHOD][:PROBABILITY]`, as on the command line: `drop@tools/call:0.2`. At most 32. */
  readonly faults?: readonly string[]
  /** The same seed brings the same faults. Default 1. */
  readonly seed?: number
  /** 1 is the pace of the tape. Default: no waiting. */
  readonly speed?: number
}

/** A tape that is served. */
export interface TapeService {
  /** The address for clients. */
  readonly url: string
  /** Its faults, as they were given. */
  readonly faults: readonly string[]
  /** The seed of the faults. */
  readonly seed: number
  /** When it began. */
  readonly since: number
  /** Who started it. */
  readonly by: string
}
