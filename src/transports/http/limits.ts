/** The limits of the HTTP server carriers, with their defaults. Every refusal names the limit that it enforces. */
import { type FrameLimits, frameLimits } from '../../jsonrpc/limits.ts'

/** The limits of a listener. */
export interface HttpLimits extends Pick<FrameLimits, 'frameBytes'> {
  /** Open connections of a listener. */
  readonly connections: number
  /** How long a client may take to send the headers of a request. */
  readonly headersMs: number
  /** How long a client may take to send a whole request. */
  readonly requestMs: number
  /** Open event streams of one authenticated principal that were opened by GET. */
  readonly streamsPerPrincipal: number
  /** Open event streams of one authenticated principal that answer its POSTs, so that nobody can occupy all streams. */
  readonly answersPerPrincipal: number
  /** Open event streams of the server. */
  readonly streams: number
  /** How long a stream or WebSocket may stay open after its token has expired. */
  readonly expiredMs: number
  /** Bytes that may wait for a slow reader before the `stallMs` timer starts. */
  readonly queueBytes: number
  /** Bytes that may wait for one slow reader at all. */
  readonly queueCeiling: number
  /** Bytes that may wait for all slow readers together; above it, each reader is limited to `queueBytes`. */
  readonly queueTotal: number
  /** How long a reader with a full queue may take nothing before it is disconnected. */
  readonly stallMs: number
  /** The longest silence on an event stream, after which a comment line is sent. */
  readonly keepAliveMs: number
  /** How long a resumable stream can be replayed after it ended. */
  readonly retainMs: number
  /** Resumable streams of one session. */
  readonly keptPerSession: number
  /** Replay log: events of one stream. */
  readonly logEvents: number
  /** Replay log: bytes of one stream. */
  readonly logBytes: number
  /** Replay log on a store: events of all streams of one session. */
  readonly logSessionEvents: number
  /** Replay log on a store: bytes of all streams of one session. */
  readonly logSessionBytes: number
  /** Replay log: bytes of all streams. */
  readonly logTotal: number
}

const mebibyte = 1024 * 1024

/** The default limits. */
export const httpLimits: HttpLimits = {
  frameBytes: frameLimits.frameBytes,
  connections: 10_000,
  headersMs: 8_000,
  requestMs: 12_000,
  streamsPerPrincipal: 32,
  answersPerPrincipal: 256,
  streams: 5_000,
  expiredMs: 60_000,
  queueBytes: mebibyte / 4,
  queueCeiling: 4 * mebibyte,
  queueTotal: 64 * mebibyte,
  stallMs: 10_000,
  keepAliveMs: 15_000,
  retainMs: 5 * 60_000,
  keptPerSession: 64,
  logEvents: 1_000,
  logBytes: mebibyte,
  logSessionEvents: 4_000,
  logSessionBytes: 4 * mebibyte,
  logTotal: 64 * mebibyte,
}
