/** Messages of a live server that are refused before the host's handlers see them: what was refused, and by which rule. */
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { hookInProgress } from './inference/messages.ts'
import type { PushAnswer } from './push-events/messages.ts'

/** For whoever keeps account of what servers wanted. */
export interface RefusedMessage {
  readonly method: string
  readonly featureSet?: string
  readonly eventId?: string
  readonly why: Why
}

type Reason = readonly [code: string, rule: string, fix: (set: string) => string]

/** Refusals of the gate, by the kind of the error. What a handler refuses has another kind, and is the handler's to tell. */
const reasons = new Map<string, Reason>([
  ['feature-set-disabled', ['SET_NOT_ENABLED', 'feature-sets', set => `Enable ${set} for this server, if it may do this`]],
  ['feature-set-unknown', ['SET_UNKNOWN', 'feature-sets', () => 'Ask the author of the server to declare the feature set']],
  ['invalid-params', ['INVALID_PARAMS', 'shape', () => 'Ask the author of the server to send what the protocol says']],
  ['method-not-found', ['NOT_ANNOUNCED', 'capabilities', () => 'Ask the author of the server to announce the capability']],
  ['busy', ['TOO_MANY_WAIT', 'live.waiting', () => 'The server may send it again later']],
  ['checkpoint-unknown', ['CHECKPOINT_NOT_FOUND', 'state', () => 'The server may ask for a checkpoint that is kept']],
])

/** The gate refuses an inference that a hook may be waiting for; other invalid requests are the handler's to tell. */
const hooked: Reason = ['HOOK_IN_PROGRESS', 'hooks', () => 'The server may ask again when its hook is answered']

/** Undefined: it was no refusal of the gate. */
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

// // A server that goes on pushing although it was told to wait: every refusal costs the host something, so it is read no faster than
// so many refusals a second. What it sends beyond that waits on its own side.

/** So many refusals take so long, at least. */
const refusals = 64
const atLeastMs = 64

/** Stops reading from a server for a while when too many of its messages were refused. */
export class PushBrake {
  readonly #now: () => number
  readonly #rest: (ms: number) => void
  #refused = 0
  #since = 0

  /** `rest`: nothing more is to be read for so long. */
  constructor(now: () => number, rest: (ms: number) => void) {
    this.#now = now
    this.#rest = rest
  }

  /** What a push was answered with. */
  heard(answer: PushAnswer): PushAnswer {
    if (!answer.accepted && answer.retryAfterMs !== undefined && ++this.#refused >= refusals) this.#look()
    return answer
  }

  #look(): void {
    const early = atLeastMs - (this.#now() - this.#since)
    this.#refused = 0
    this.#since = this.#now() + Math.max(0, early)
    if (early > 0) this.#rest(early)
  }
}
