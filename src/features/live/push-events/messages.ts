/** Wire messages of pushed events (MCP Live 0.2 §9). */
import type { Why } from '../../../core/suggestion.ts'
import { notification, request, sessionRevisionIds } from '../../../engine/method.ts'
import { array, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import { type LiveBlock, type WireContent, wireContent } from '../content/messages.ts'

/** An event that a server pushes to its host. */
export interface PushEvent {
  /** The feature set that pushes it. */
  readonly featureSet: string
  /** Identifies the event; the same if it is sent again. */
  readonly eventId: string
  /** When it happened, ISO 8601. */
  readonly timestamp: string
  /** Where it comes from; events of one origin stay in order. */
  readonly origin?: Record<string, unknown>
  /** The content of the event. */
  readonly content: readonly LiveBlock[]
  /** Tags by which hosts choose what to do, for example `chat:mention`. */
  readonly tags?: readonly string[]
  /** For channel messages: where to answer. */
  readonly channel?: {
    /** The id of the channel. */
    readonly channelId: string
    /** The id of the message. */
    readonly messageId: string
    /** The thread of the channel in which it was written. */
    readonly threadId?: string
  }
  /** Unknown members of the message. */
  readonly extra?: Record<string, unknown>
}

/** A host's verdict; `retryAfterMs` asks the server to send the event again later. */
export type PushAnswer =
  | {
      /** Whether the host accepted the event. */
      readonly accepted: true
      /** The inference that the event starts or joins. */
      readonly inferenceId?: string
    }
  | {
      /** Whether the host accepted the event. */
      readonly accepted: false
      /** Why the event was refused. */
      readonly reason: string
      /** Milliseconds after which the server may send the event again. Absent: it need not. */
      readonly retryAfterMs?: number
      /** The rule that refused it, and what can be done. */
      readonly data?: Why
    }

/** An event on the wire. */
export interface WirePush {
  readonly featureSet: string
  readonly eventId: string
  readonly timestamp: string
  readonly origin?: Readonly<Record<string, unknown>> | undefined
  readonly payload: { readonly content: WireContent }
  readonly tags?: readonly string[] | undefined
}

/** A host's verdict on the wire. */
interface WirePushAnswer {
  readonly accepted: boolean
  readonly inferenceId?: string
  readonly reason?: string
  readonly retryAfterMs?: number
  readonly data?: unknown
}

const iso = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/

/** Whether a value is an ISO 8601 timestamp. */
export const isTimestamp = (value: unknown): boolean =>
  typeof value === 'string' && iso.test(value) && !Number.isNaN(Date.parse(value.replace(',', '.')))

const timestamp: Shape<string> = {
  optional: false,
  schema: () => ({ type: 'string', format: 'date-time' }),
  check: value => (isTimestamp(value) ? undefined : { path: '', expected: 'a time in ISO 8601, such as 2026-01-23T10:30:00Z' }),
}

/** Must not be empty, because hosts deduplicate by it. */
const eventId: Shape<string> = {
  optional: false,
  schema: () => ({ type: 'string', minLength: 1 }),
  check: value =>
    typeof value === 'string' && value !== ''
      ? undefined
      : { path: '', expected: 'a non-empty string that is unique to the event' },
}

const push = {
  name: 'push/event',
  to: 'client',
  in: sessionRevisionIds,
  params: object({
    featureSet: string,
    eventId,
    timestamp,
    origin: optional(record),
    payload: object({ content: wireContent }),
    tags: optional(array(string)),
  }),
} as const

/** Pushes an event to a host. */
export const pushEvent = request<WirePushAnswer>()(push)
/** The notification form, which some servers use; the server does not learn the verdict. */
export const pushNotice = notification(push)
