/**
 * Wire messages of events. Session wires use separate requests; stateless ones use a member of `subscriptions/listen`. Each event names
 * the cursor that it follows, so that readers detect gaps themselves.
 */

import type { JsonSchema } from '../../../core/schema/index.ts'
import { NS, notification, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { array, boolean, type Infer, integer, object, oneOf, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Revision } from '../../../revisions/index.ts'
import type { Op } from '../../../stores/store.ts'
import type { WireSuggestion } from '../intent/messages.ts'

/** What other features may do with events. */
interface EventsPort {
  /** Offers an event of the runtime itself. */
  add(name: string, facts: { readonly description: string; readonly payload: JsonSchema }): void
  /** Store operations that announce an event of the runtime to one owner; empty if it is not offered. */
  announcing(name: string, payload: Params, owner: string): Promise<readonly Op[]>
  /** Store operations that compensate the events of a step. */
  undo(place: string): Promise<readonly Op[]>
  /** Calls back when the offered events change. */
  onChange(fn: () => void): void
  /** Increases when the offered events change. */
  version(): number
  /** Loads the function that describes the events for a revision. */
  describing(): Promise<(revision: Revision) => readonly WireEventType[]>
}

/** The port of this feature. */
export const eventsPort = port<EventsPort>('events')

/** The extension name. */
export const eventsExtension = `${NS}/events`

/** What a client declares with requests about events, on stateless wires. */
export const eventsDeclaration = { extensions: { [eventsExtension]: {} } }

/** `poll`: nothing is pushed; clients ask. */
const delivery = oneOf('push', 'poll')

/** The shape of an event type. */
export const eventTypeShape = object({
  name: string,
  description: string,
  payload_schema: optional(record),
  /** Payload members that a filter may use. Absent: any. */
  filter_fields: optional(array(string)),
  required_scopes: optional(array(string)),
  delivery: array(delivery),
})
/** An event type on the wire. */
export type WireEventType = Infer<typeof eventTypeShape>
/** How events are delivered: `push` or `poll`. */
export type WireDelivery = WireEventType['delivery'][number]

/** A request for a subscription. */
export interface WireSubscription {
  /** Chosen by the client; otherwise generated. */
  readonly subscription_id?: string | undefined
  readonly events: readonly string[]
  readonly filter?: Params | undefined
  readonly ttl_seconds?: number | undefined
  /** Replays what follows this cursor. Without it: only new events. */
  readonly cursor?: string | undefined
  /** `poll`: do not push; `event/poll` may then refer to the id alone. */
  readonly delivery?: WireDelivery | undefined
}

/** The answer to a subscription request. */
export interface WireSubscribed {
  readonly subscription_id: string
  readonly status: 'active' | 'denied'
  readonly expires_at?: string
  readonly supported_events?: readonly string[]
  /** Requested events that are not granted, if others are. */
  readonly unsupported_events?: readonly string[]
  readonly reason?: string
  /** Where the subscription starts. */
  readonly cursor?: string
  /** Events between the given cursor and now are lost. */
  readonly truncated?: boolean
  /** False: this server cannot push; poll at this interval. */
  readonly supported?: boolean
  readonly poll_interval_seconds?: number
}

/** One event on the wire. */
export interface WireEvent {
  readonly type: 'event'
  readonly subscription_id: string
  readonly event: string
  readonly timestamp: string
  readonly payload?: Params
  readonly action_hint?: WireSuggestion
  /** The id of an event whose cause was rolled back; this event says so, with the same payload. */
  readonly compensates?: string
  readonly event_id: string
  readonly cursor: string
  /** The cursor of the previous event in this subscription, or of its start. */
  readonly previous_cursor: string
  /** Events between the two cursors are missing. */
  readonly truncated?: boolean
}

/** Nothing relevant has happened up to this cursor. Keeps cursors fresh, and reports losses without an event. */
export interface WireBookmark {
  readonly subscription_id: string
  readonly cursor: string
  readonly previous_cursor: string
  readonly truncated?: boolean
}

/**
 * Why a subscription ended: its lifetime, its right, the server's shutdown, a slow reader or overload, a newer subscription with the
 * same id, or the removal of its events.
 */
type EndReason = 'expired' | 'revoked' | 'shutdown' | 'overload' | 'replaced' | 'withdrawn'

/** The end of a subscription. */
export interface WireTerminated {
  readonly type: 'subscription_terminated'
  readonly subscription_id: string
  readonly reason: EndReason
  readonly cursor: string
}

/** The answer to a poll. */
export interface WirePolled {
  readonly events: readonly WireEvent[]
  readonly cursor: string
  readonly truncated: boolean
  /** More events are available at once. */
  readonly more: boolean
  readonly poll_interval_seconds: number
}

const asked = { filter: optional(record), cursor: optional(string) }

const subscription = object({
  ...asked,
  subscription_id: optional(string),
  events: array(string),
  ttl_seconds: optional(integer),
  delivery: optional(delivery),
})

const toServer = { to: 'server', in: officialIds, extension: eventsExtension, declares: eventsDeclaration } as const
const toClient = { to: 'client', in: officialIds } as const

/** Lists the event types for this caller. */
export const listEvents = request<{ readonly events: readonly WireEventType[] }>()({
  ...toServer,
  name: 'event/list',
  params: object({}),
})

/** Subscribes to events. */
export const subscribeEvents = request<WireSubscribed>()({ ...toServer, name: 'event/subscribe', params: subscription })

/** Ends a subscription. */
export const unsubscribeEvents = request<{ readonly subscription_id: string; readonly status: 'cancelled' }>()({
  ...toServer,
  name: 'event/unsubscribe',
  params: object({ subscription_id: string }),
})

/** Polls for events. Self-contained, so that the server keeps nothing between two polls. */
export const pollEvents = request<WirePolled>()({
  ...toServer,
  name: 'event/poll',
  params: object({ ...asked, events: optional(array(string)), subscription_id: optional(string), limit: optional(integer) }),
})

const place = { subscription_id: string, cursor: string, previous_cursor: string, truncated: optional(boolean) }

/** Delivers one event. */
export const eventHappened = notification({
  ...toClient,
  name: 'notifications/event',
  params: object({
    ...place,
    type: optional(string),
    event: string,
    timestamp: string,
    event_id: string,
    payload: optional(record),
    action_hint: optional(record),
    compensates: optional(string),
  }),
})

/** Delivers a bookmark. */
export const eventBookmark = notification({ ...toClient, name: 'notifications/event/bookmark', params: object(place) })

/** Tells that a subscription has ended. */
export const eventsTerminated = notification({
  ...toClient,
  name: 'notifications/event/terminated',
  params: object({ type: optional(string), subscription_id: string, reason: string, cursor: optional(string) }),
})
