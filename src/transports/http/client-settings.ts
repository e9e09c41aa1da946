/** The options of a client over HTTP that do not depend on who makes the requests, and their defaults. */
import { type Clock, realClock } from '../../core/clock.ts'
import { clientFrameLimits, type FrameLimits } from '../../jsonrpc/limits.ts'
import type { HeaderRecord } from './client-headers.ts'

export interface ClientSettings {
  /** Headers of every request, e.g. `authorization`. Those that a message brings win over these. */
  readonly headers: HeaderRecord
  readonly limits: FrameLimits
  /** How long a server may take over a message that has no answer. Default 30 s. */
  readonly deliverTimeoutMs: number
  /** How long an answer may take when the caller gave no signal of its own. Default 15 min. */
  readonly answerTimeoutMs: number
  /** How long a stream may stay open after the answer it was for. Default 1 s. */
  readonly lingerMs: number
  /** How long the farewell to the server may take. Default 2 s. */
  readonly closeTimeoutMs: number
  /** The wait before a stream is opened again, where the server names none. Default 1 s. */
  readonly retryMs: number
  /** The bounds of the wait that a server may name. Default 50 ms to 5 min. */
  readonly minRetryMs: number
  readonly maxRetryMs: number
  /** The longest wait that our own backing off leads to. Default 30 s. */
  readonly maxBackoffMs: number
  /** How often in a row an answer's stream may fail to be opened again before the answer counts as lost. Default 8. */
  readonly resumeTries: number
  readonly clock: Clock
  /** 0 … 1, spreads reconnections of many clients. */
  readonly random: () => number
}

const defaults: ClientSettings = {
  headers: {},
  limits: clientFrameLimits,
  deliverTimeoutMs: 30_000,
  answerTimeoutMs: 15 * 60_000,
  lingerMs: 1_000,
  closeTimeoutMs: 2_000,
  retryMs: 1_000,
  minRetryMs: 50,
  maxRetryMs: 5 * 60_000,
  maxBackoffMs: 30_000,
  resumeTries: 8,
  clock: realClock,
  random: Math.random,
}

export function clientSettings(options: Partial<ClientSettings>): ClientSettings {
  return { ...defaults, ...options }
}
