/** Events that a server pushes (MCP Live 0.2 §9). */
import type { Why } from '../../../core/suggestion.ts'
import { notification, request, sessionIds } from '../../../engine/method.ts'
import { array, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import { type LiveBlock, type WireContent, wireContent } from '../content/messages.ts'

/** An event that a server pushes to its host. */
export interface PushEvent {
  readonly featureSet: string
  /** One per occurrence; the same whenever it is sent again. */
  readonly eventId: string
  /** When it happened, ISO 8601. */
  readonly timestamp: string
  readonly origin?: Record<string, unknown>
  readonly content: readonly LiveBlock[]
  readonly tags?: readonly string[]
  /** Of a message that came by a channel: where it can be answered. */
  readonly channel?: { readonly channelId: string; readonly messageId: string; readonly threadId?: string }
  /** Members of the message that are not known here. */
  readonly extra?: Record<string, unknown>
}

/** What a host answers to a pushed event: accepted, or why not. */
export type PushAnswer =
  | { readonly accepted: true; readonly inferenceId?: string }
  | { readonly accepted: false; readonly reason: string; readonly retryAfterMs?: number; readonly data?: Why }

/** An event as it is sent. */
export interface WirePush {
  readonly featureSet: string
  readonly eventId: string
  readonly timestamp: string
  readonly origin?: Readonly<Record<string, unknown>> | undefined
  readonly payload: { readonly content: WireContent }
  readonly tags?: readonly string[] | undefined
}

/** A host's answer to an event, as it is sent. */
export interface WirePushAnswer {
  readonly accepted: boolean
  readonly inferenceId?: string
  readonly reason?: string
  readonly retryAfterMs?: number
  readonly data?: unknown
}

const iso = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/

/** Whether a value is a point in time as text. */
export const isTimestamp = (value: unknown): boolean =>
  typeof value === 'string' && iso.test(value) && !Number.isNaN(Date.parse(value.replace(',', '.')))

const timestamp: Shape<string> = {
  optional: false,
  schema: () => ({ type: 'string', format: 'date-time' }),
  check: value => (isTimestamp(value) ? undefined : { path: '', expected: 'a time in ISO 8601, such as 2026-01-23T10:30:00Z' }),
}

/** An event that has no name cannot be told from another one. */
const eventId: Shape<string> = {
  optional: false,
  schema: () => ({ type: 'string', minLength: 1 }),
  check: value =>
    typeof value === 'string' && value !== '' ? undefined : { path: '', expected: 'a string that is not empty, one per event' },
}

/** An event, as it comes on the wire. */
export const pushShape = object({
  featureSet: string,
  eventId,
  timestamp,
  origin: optional(record),
  payload: object({ content: wireContent }),
  tags: optional(array(string)),
})

const push = { name: 'push/event', to: 'client', in: sessionIds, params: pushShape } as const

/** Pushes an event to a host. */
export const pushEvent = request<WirePushAnswer>()(push)
/** Some servers push without an id: it is taken, though nobody learns what came of it. */
export const pushNotice = notification(push)
