/** The limits of the HTTP server carriers, with their defaults. Every refusal names the limit that it enforces. */
import { type FrameLimits, frameLimits } from '../../jsonrpc/limits.ts'

/** Limits of an HTTP listener. */
export interface HttpLimits extends Pick<FrameLimits, 'frameBytes'> {
  /** The most open connections. Default 10,000. */
  readonly connections: number
  /** How long a client may take to send the headers of a request, in milliseconds. Default 8,000. */
  readonly headersMs: number
  /** How long a client may take to send a whole request, in milliseconds. Default 12,000. */
  readonly requestMs: number
  /** The most event streams of one principal that were opened by GET. Default 32. */
  readonly streamsPerPrincipal: number
  /** The most event streams of one principal that answer its POSTs. Default 256. */
  readonly answersPerPrincipal: number
  /** The most open event streams. Default 5,000. */
  readonly streams: number
  /** How long a stream or WebSocket may stay open after its token has expired, in milliseconds. Default 60,000. */
  readonly expiredMs: number
  /** Bytes that may wait for a slow reader before the `stallMs` timer starts. Default 256 KiB. */
  readonly queueBytes: number
  /** The most bytes that may wait for one slow reader. Default 4 MiB. */
  readonly queueCeiling: number
  /** The most bytes that may wait for all slow readers; above it, each reader is limited to `queueBytes`. Default 64 MiB. */
  readonly queueTotal: number
  /** How long a reader with a full queue may take nothing before it is disconnected, in milliseconds. Default 10,000. */
  readonly stallMs: number
  /** The longest silence on an event stream, after which a comment line is sent, in milliseconds. Default 15,000. */
  readonly keepAliveMs: number
  /** How long a resumable stream can be replayed after it has ended, in milliseconds. Default 300,000. */
  readonly retainMs: number
  /** The most resumable streams of one session. Default 64. */
  readonly resumablePerSession: number
  /** Replay log: the most events of one stream. Default 1,000. */
  readonly logEvents: number
  /** Replay log: the most bytes of one stream. Default 1 MiB. */
  readonly logBytes: number
  /** Replay log: the most events of all streams of one session. Default 4,000. */
  readonly logSessionEvents: number
  /** Replay log: the most bytes of all streams of one session. Default 4 MiB. */
  readonly logSessionBytes: number
  /** Replay log: the most bytes of all streams. Default 64 MiB. */
  readonly logTotal: number
}

/** Limits as they are given, also under names of earlier versions. */
export interface GivenHttpLimits extends Partial<HttpLimits> {
  /**
   * The former name of `resumablePerSession`.
   * @deprecated Use `resumablePerSession`.
   */
  readonly keptPerSession?: number
}

/** The given limits under their present names. */
export function renamedHttpLimits({ keptPerSession, ...given }: GivenHttpLimits): Partial<HttpLimits> {
  return keptPerSession === undefined ? given : { resumablePerSession: keptPerSession, ...given }
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
  resumablePerSession: 64,
  logEvents: 1_000,
  logBytes: mebibyte,
  logSessionEvents: 4_000,
  logSessionBytes: 4 * mebibyte,
  logTotal: 64 * mebibyte,
}
