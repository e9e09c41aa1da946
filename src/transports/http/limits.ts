/** The limits of HTTP carriers. Each has a default; each refusal names the one it hit. */
import { type FrameLimits, frameLimits } from '../../jsonrpc/limits.ts'

/** The limits of a listener. */
export interface HttpLimits extends Pick<FrameLimits, 'frameBytes'> {
  /** Connections that a listener holds open at all. */
  readonly connections: number
  /** How long a sender may take over the headers of a request. */
  readonly headersMs: number
  /** How long a sender may take over a whole request. */
  readonly requestMs: number
  /** Open event streams of one authenticated principal that it asked for by GET. */
  readonly streamsPerPrincipal: number
  /** Open event streams of one authenticated principal that answer its POSTs: no one can take all places. */
  readonly answersPerPrincipal: number
  /** Open event streams in all. */
  readonly streams: number
  /** How long a stream, or a WebSocket, may outlast the token that opened it. */
  readonly expiredMs: number
  /** Bytes that may wait for a slow reader before the clock of `stallMs` starts. */
  readonly queueBytes: number
  /** Bytes that may wait for one slow reader at all. */
  readonly queueCeiling: number
  /** Bytes that may wait for all slow readers together; above it `queueBytes` is every reader's ceiling. */
  readonly queueTotal: number
  /** How long a reader with a full queue may take nothing before it is cut. */
  readonly stallMs: number
  /** The longest silence on an event stream; then a comment line is sent. */
  readonly keepAliveMs: number
  /** How long a kept stream can still be replayed after it ended. */
  readonly retainMs: number
  /** Kept streams of one session. */
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

/** Their defaults. */
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
