/** The waterfall of a turn: what took how long, and inside what. */

/** What a span is. The turn itself is the root of its spans. */
export type TurnSpanKind =
  | 'turn'
  /** From the acceptance of the turn to its beginning, where it waited. */
  | 'waiting'
  /** A hook of a server. */
  | 'hook'
  /** One answer of the model. */
  | 'inference'
  /** A tool call. */
  | 'call'
  /** A person is asked whether a call may be made. Its parent is the call. */
  | 'question'

/** `open`: it has not ended. */
export type TurnSpanStatus = 'open' | 'ok' | 'failed' | 'refused' | 'unknown'

/** A span: also the payload of the event `span`, which is sent when it begins, and again when it ends. */
export interface TurnSpan {
  /** Unique within the turn: `turn`, `waiting`, `hook.0`, `inference.0`, `call.3`, `question.3`. */
  readonly id: string
  /** The span that it is a part of. */
  readonly parent?: string
  readonly conversation: string
  readonly seq: number
  readonly kind: TurnSpanKind
  /** The lane that it is drawn in: `host`, `model`, or the name of a server. */
  readonly lane: string
  /** What it is, in a few words: `memory before`, the model, `cal.move`. */
  readonly name: string
  readonly from: number
  /** Absent while it is open. */
  readonly to?: number
  readonly status: TurnSpanStatus
  /** The first word of an inference. */
  readonly first?: number
  /** The number of the hook, inference or call in the turn. */
  readonly n?: number
  /** A few words beside the bar: tokens, who answered, why it failed. */
  readonly note?: string
}
