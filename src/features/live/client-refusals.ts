/**
 * Refusals on the host's side: describes messages that were refused before the host's handlers saw them, and slows down a server that
 * ignores refusals.
 */
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { hookInProgress } from './inference/messages.ts'
import type { PushAnswer } from './push-events/messages.ts'

/** A message that was refused, for logs and audit. */
export interface RefusedMessage {
  /** The method of the message. */
  readonly method: string
  /** The feature set that sent it, if it names one. */
  readonly featureSet?: string
  /** The event, if the message was a push. */
  readonly eventId?: string
  /** Code, rule, message and suggested fix. */
  readonly why: Why
}

// Code, rule, and a suggested fix.
type Reason = readonly [code: string, rule: string, fix: (set: string) => string]

/** Refusals by the gate, by error kind. Errors of handlers have other kinds, and handlers report those themselves. */
const reasons = new Map<string, Reason>([
  ['feature-set-disabled', ['SET_NOT_ENABLED', 'feature-sets', set => `Enable ${set} for this server to allow this`]],
  ['feature-set-unknown', ['SET_UNKNOWN', 'feature-sets', () => 'Ask the author of the server to declare the feature set']],
  ['invalid-params', ['INVALID_PARAMS', 'shape', () => 'Ask the author of the server to send params that match the protocol']],
  ['method-not-found', ['NOT_ANNOUNCED', 'capabilities', () => 'Ask the author of the server to announce the capability']],
  ['busy', ['TOO_MANY_WAIT', 'live.waiting', () => 'The server can send the message again later']],
  ['checkpoint-unknown', ['CHECKPOINT_NOT_FOUND', 'state', () => 'The server can ask for a checkpoint that the host still has']],
])

/** An inference that is refused because a hook of the same server is running. */
const hooked: Reason = [
  'HOOK_IN_PROGRESS',
  'hooks',
  () => 'The server can send the request again after its hook has been answered',
]

/** Describes a refusal; undefined if the error is not a refusal by the gate. */
export function refusedMessageOf(method: string, params: unknown, error: unknown): RefusedMessage | undefined {
  if (!(error instanceof McpError)) return undefined
  const isHooked = isRecord(error.data) && error.data['reason'] === hookInProgress
  const reason = isHooked ? hooked : reasons.get(error.kind)
  if (reason === undefined) return undefined
  const [code, rule, fix] = reason
  const { featureSet, eventId } = isRecord(params) ? params : {}
  const set = typeof featureSet === 'string' ? featureSet : undefined
  const said =
    !isHooked && isRecord(error.data) && typeof error.data['reason'] === 'string' ? error.data['reason'] : error.message
  const of = set === undefined ? '' : ` for the feature set ${quoted(set)}`
  return {
    method,
    ...(set !== undefined && { featureSet: set }),
    ...(typeof eventId === 'string' && { eventId }),
    why: why(code, rule, `${method}${of} was refused: ${said}`, fix(set === undefined ? 'the feature set' : quoted(set))),
  }
}

// A server may keep pushing although it was told to wait. Each refusal costs the host work, so after too many the connection is not
// read for a while; the server's messages then queue on its own side.

/** This many refusals may happen in `atLeastMs`. */
const refusals = 64
const atLeastMs = 64

/** Pauses reading from a server that is refused too often. */
export class PushThrottle {
  readonly #now: () => number
  readonly #rest: (ms: number) => void
  #refused = 0
  #since = 0

  /** `rest` stops reading from the connection for the given time. */
  constructor(now: () => number, rest: (ms: number) => void) {
    this.#now = now
    this.#rest = rest
  }

  /** Counts the answer to a push, and returns it unchanged. */
  heard(answer: PushAnswer): PushAnswer {
    if (!answer.accepted && answer.retryAfterMs !== undefined && ++this.#refused >= refusals) this.#look()
    return answer
  }

  // Pauses reading if the refusals came too fast.
  #look(): void {
    const early = atLeastMs - (this.#now() - this.#since)
    this.#refused = 0
    this.#since = this.#now() + Math.max(0, early)
    if (early > 0) this.#rest(early)
  }
}
