/**
 * Events on the wire: asking for them, and what comes of it. On session wires by requests of their own; on stateless ones as a
 * member of `subscriptions/listen`. Each event names the cursor that it follows, so that whoever reads sees for himself that
 * nothing is missing.
 */

import type { JsonSchema } from '../../../core/schema/index.ts'
import { NS, notification, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { array, boolean, type Infer, integer, object, oneOf, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Revision } from '../../../revisions/index.ts'
import type { Op } from '../../../stores/store.ts'
import type { WireSuggestion } from '../intent/messages.ts'

export { suggestionFrom, wireSuggestion } from '../intent/messages.ts'

/** What other features may use of events. */
interface EventsPort {
  /** Offers an event of the runtime itself. */
  add(name: string, facts: { readonly description: string; readonly payload: JsonSchema }): void
  /** The writes that tell one owner, by its key, of something that the runtime itself has done; none where that is not offered. */
  announcing(name: string, payload: Params, owner: string): Promise<readonly Op[]>
  /** The writes that take back what a step of a unit of work has told. */
  undo(place: string): Promise<readonly Op[]>
  /** Calls back when other events are offered. */
  onChange(fn: () => void): void
  /** Rises when other events are offered. */
  version(): number
  /** Loads what says what a list says of the events, on a wire. */
  describing(): Promise<(revision: Revision) => readonly WireEventType[]>
}

/** What other features may use of events. */
export const eventsPort = port<EventsPort>('events')

/** The name of the extension. */
export const eventsExtension = `${NS}/events`

/** What a client declares that hears events, on wires where each request says so. */
export const hearingEvents = { extensions: { [eventsExtension]: {} } }

/** `poll`: nothing is pushed, whoever wants it asks for it. */
const delivery = oneOf('push', 'poll')

/** What a server says of an event that it offers. */
export const eventTypeMembers = {
  name: string,
  description: string,
  payload_schema: optional(record),
  /** The members of a payload that a filter may name. Absent: any. */
  filter_fields: optional(array(string)),
  required_scopes: optional(array(string)),
  delivery: array(delivery),
}
export const eventTypeShape = object(eventTypeMembers)

export type WireEventType = Infer<typeof eventTypeShape>
export type WireDelivery = WireEventType['delivery'][number]

export interface WireSubscription {
  /** The client's own; another one is made where it has none. */
  readonly subscription_id?: string | undefined
  readonly events: readonly string[]
  readonly filter?: Params | undefined
  readonly ttl_seconds?: number | undefined
  /** What follows this is replayed. Without it: what happens from now on. */
  readonly cursor?: string | undefined
  /** `poll`: nothing shall be pushed, though it could be; `event/poll` may name what it is about by the id alone. */
  readonly delivery?: WireDelivery | undefined
}

/** The answer to a subscription. */
export interface WireSubscribed {
  readonly subscription_id: string
  readonly status: 'active' | 'denied'
  readonly expires_at?: string
  readonly supported_events?: readonly string[]
  /** Those that were asked for and are not given, where others are. */
  readonly unsupported_events?: readonly string[]
  readonly reason?: string
  /** Where it begins. */
  readonly cursor?: string
  /** Something between the cursor that was given and now is no longer known. */
  readonly truncated?: boolean
  /** False: nothing can be pushed here; poll instead, this often. */
  readonly supported?: boolean
  readonly poll_interval_seconds?: number
}

/** One event as it is sent. */
export interface WireEvent {
  readonly type: 'event'
  readonly subscription_id: string
  readonly event: string
  readonly timestamp: string
  readonly payload?: Params
  readonly action_hint?: WireSuggestion
  /** The id of an event that was emitted by what was taken back since: this one says so, of the same payload. */
  readonly compensates?: string
  readonly event_id: string
  readonly cursor: string
  /** The cursor of what came before it in this subscription, or where that began. */
  readonly previous_cursor: string
  /** Between the two something is missing. */
  readonly truncated?: boolean
}

/** Nothing that was asked for has happened up to here. Keeps cursors young, and tells of loss when there is no event to do it. */
export interface WireBookmark {
  readonly subscription_id: string
  readonly cursor: string
  readonly previous_cursor: string
  readonly truncated?: boolean
}

/** Why a subscription ended: its time was over; the right to it was; the server closes; its reader is too slow, or the server too busy; another with its id took its place; its events are gone. */
export type EndReason = 'expired' | 'revoked' | 'shutdown' | 'overload' | 'replaced' | 'withdrawn'

export interface WireTerminated {
  readonly type: 'subscription_terminated'
  readonly subscription_id: string
  readonly reason: EndReason
  readonly cursor: string
}

export interface WirePolled {
  readonly events: readonly WireEvent[]
  readonly cursor: string
  readonly truncated: boolean
  /** There is more to be had at once. */
  readonly more: boolean
  readonly poll_interval_seconds: number
}

const asked = { filter: optional(record), cursor: optional(string) }

export const subscription = object({
  ...asked,
  subscription_id: optional(string),
  events: array(string),
  ttl_seconds: optional(integer),
  delivery: optional(delivery),
})

const toServer = { to: 'server', in: officialIds, extension: eventsExtension, declares: hearingEvents } as const
const toClient = { to: 'client', in: officialIds } as const

/** What there is to subscribe to, for this caller. */
export const listEvents = request<{ readonly events: readonly WireEventType[] }>()({
  ...toServer,
  name: 'event/list',
  params: object({}),
})

/** Asks to be told of events. */
export const subscribeEvents = request<WireSubscribed>()({ ...toServer, name: 'event/subscribe', params: subscription })

/** Ends a subscription. */
export const unsubscribeEvents = request<{ readonly subscription_id: string; readonly status: 'cancelled' }>()({
  ...toServer,
  name: 'event/unsubscribe',
  params: object({ subscription_id: string }),
})

/** Says itself what it is about, so that nothing has to be remembered between two polls. */
export const pollEvents = request<WirePolled>()({
  ...toServer,
  name: 'event/poll',
  params: object({ ...asked, events: optional(array(string)), subscription_id: optional(string), limit: optional(integer) }),
})

const place = { subscription_id: string, cursor: string, previous_cursor: string, truncated: optional(boolean) }

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

export const eventBookmark = notification({ ...toClient, name: 'notifications/event/bookmark', params: object(place) })

export const eventsTerminated = notification({
  ...toClient,
  name: 'notifications/event/terminated',
  params: object({ type: optional(string), subscription_id: string, reason: string, cursor: optional(string) }),
})
