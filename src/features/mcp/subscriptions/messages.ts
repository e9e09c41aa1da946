/**
 * Hearing of changes on wires without sessions: one long request that says what its sender wants to hear, and on its way
 * back an acknowledgement, then what was asked for and nothing else (2026-07-28 basic/utilities/subscriptions).
 */

import { type ExtensionPoint, extensionPoint } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { type Method, notification, request, statelessRevisionIds } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { subscriptionKey } from '../../../engine/reserved.ts'
import type { Awaitable, Id, Params } from '../../../jsonrpc/message.ts'
import { array, boolean, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import type { Revision } from '../../../revisions/index.ts'

/** In the `_meta` of whatever is said on a subscription: the id of the request that opened it. */
export { subscriptionKey }

/** The members that every server may honour; extensions have more. */
export interface ListenFilter {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  /** URIs whose updates are wanted. */
  readonly resourceSubscriptions?: readonly string[]
}

/** Comes only when the server ends the subscription in good order. */
interface ListenResult {
  readonly _meta: Params
}

const filter: Shape<Readonly<Record<string, unknown>>> = object({
  toolsListChanged: optional(boolean),
  promptsListChanged: optional(boolean),
  resourcesListChanged: optional(boolean),
  resourceSubscriptions: optional(array(string)),
})

/** Says something to one listener. `merge`: a later message of the same name may replace this one while it queues. */
export type Send = <P>(method: Method<P, undefined>, params: P, merge?: string) => void

/** What one listen request was granted of a kind. */
export interface GrantedListen {
  /** For the acknowledgement: the part that is honoured. */
  readonly accepted: unknown
  /** The acknowledgement is out: from here on things may be sent. */
  start?(): void
  /** What let the request in is over: the last moment to say so. */
  lapse?(): void
  close?(): void
}

/** A kind of thing to listen for: one member of the request's filter. */
export interface ListenKind {
  readonly member: string
  /** Undefined when nothing of the wish is honoured; throws to refuse the whole request. */
  open(exchange: Exchange, wanted: unknown, send: Send): Awaitable<GrantedListen | undefined>
}

/** What other features may use of subscriptions. */
interface SubscriptionsPort {
  /** Adds a member to what a listen may ask for. */
  kind(kind: ListenKind): void
  /** The content of a resource is another one now. */
  updated(uri: string): void
}

/** What other features may use of subscriptions. */
export const subscriptionsPort = port<SubscriptionsPort>('subscriptions')

/** `subscriptions/listen`: a request that stays open and brings the notifications it asks for. */
export const listen = request<ListenResult>()({
  name: 'subscriptions/listen',
  to: 'server',
  in: statelessRevisionIds,
  params: object({ notifications: filter }),
  lasting: true,
})

/** `notifications/subscriptions/acknowledged`: the first message on a listen stream says what it will bring. */
export const acknowledged = notification({
  name: 'notifications/subscriptions/acknowledged',
  to: 'client',
  in: statelessRevisionIds,
  params: object({ notifications: filter, _meta: optional(record) }),
})

/** The id as the request wrote it; the draft writes it as text, whatever it was. */
export function subscriptionMeta(id: Id, { id: revision }: Revision): Params {
  return { [subscriptionKey]: revision === 'draft-2026-v1' ? String(id) : id }
}

/** On the draft a subscription has no answer: it just ends. */
export function answersListen({ id }: Revision): boolean {
  return id !== 'draft-2026-v1'
}

/** What a client hears announced: that a list changed, or that a resource was updated. */
type AnnouncedTopic = 'tools' | 'prompts' | 'resources' | 'updated'

/** Where the features of a client pass on what the server announced. */
export interface ClientSubscriptions {
  /** Tells all who follow the topic; `uri`: the resource that was updated. */
  announce(topic: AnnouncedTopic, uri?: string): void
}

/** The client's subscriptions, for features whose lists may change. */
export const clientSubscriptionsPort: Port<ClientSubscriptions> = port('subscriptions')

/** Told of each announcement before those who follow it. */
export const announcements: ExtensionPoint<(topic: AnnouncedTopic, uri: string | undefined) => void> =
  extensionPoint('announcements')

/** Told what of a listen request the server honours, by the id of the request. */
export const acknowledgements: ExtensionPoint<(honoured: ListenFilter, request: Id | undefined) => void> =
  extensionPoint('acknowledgements')
