/** Client side of events: `client.events` and `client.eventTypes`, and the dispatch of notifications to open streams. */
import type { Duration } from '../../../core/clock.ts'
import { type ClientKit, defineClientFeature, extend, type RequestOptions } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { given, type Params } from '../../../jsonrpc/message.ts'
import { acknowledgements } from '../../mcp/subscriptions/messages.ts'
import { type EventReader, EventStream, OpenStreams } from './event-stream.ts'
import {
  eventBookmark,
  eventHappened,
  eventsExtension,
  eventsTerminated,
  listEvents,
  type WireBookmark,
  type WireEvent,
  type WireTerminated,
} from './messages.ts'

export type { EventReader } from './event-stream.ts'
export type { ServerEvent } from './intake.ts'

/** Options of a subscription. */
export interface EventsClientOptions {
  /** What the payload must match: equal values, one of a list, or nested objects. Default: every event. */
  readonly filter?: Params
  /** Starts after the event with this cursor, if the server still has it. Default: now. */
  readonly after?: string
  /** Ends the subscription. */
  readonly signal?: AbortSignal
  /** The polling interval, if the server does not push. Default: the server's, else 5 s. */
  readonly pollEvery?: Duration
}

/** An event type that a server offers. */
export interface EventType {
  /** The name of the event, for `events`. */
  readonly name: string
  /** What happened, and what a client can do about it. */
  readonly description: string
  /** The JSON schema of its payload. */
  readonly payload?: Params
  /** Payload members that a filter may use; absent: any. */
  readonly filterFields?: readonly string[]
  /** The scopes that a caller needs. */
  readonly scopes?: readonly string[]
}

/** What the feature adds to the client. */
export interface EventsClientApi {
  /**
   * The server's events, from now on or after a cursor, each once and in order. Resumes after broken connections; if the server has
   * dropped events, the next one says `truncated`.
   * @example for await (const { payload } of mcp.events(['ticket_created'], { filter: { project: 'home' } })) console.log(payload)
   */
  events(names: readonly string[], options?: EventsClientOptions): EventReader
  /** The event types that this caller can subscribe to; empty if the server has no events. */
  eventTypes(options?: RequestOptions): Promise<readonly EventType[]>
}

/** The client feature: subscribes to events, or polls for them. */
export const eventsClient = defineClientFeature({
  name: 'events',
  options: {},
  setup(kit) {
    const streams = new OpenStreams()
    let over: { readonly reason: unknown } | undefined
    const client: EventsClientApi = {
      events: (names, options = {}) => {
        if (!Array.isArray(names) || names.length === 0)
          throw new TypeError("events needs a list of event names: events(['ticket_created'])")
        const stream = new EventStream(kit, streams, names, options)
        if (over !== undefined) stream.end(over.reason)
        return stream
      },
      eventTypes: options => eventTypes(kit, options),
    }
    /** Handles a notification about one subscription. */
    const hear = <W extends { readonly subscription_id: string }>(tell: (stream: EventStream, wire: W) => void) => ({
      execute: ({ params }: Exchange) => {
        const wire = params as unknown as W
        const stream = streams.heard.get(wire.subscription_id)
        if (stream !== undefined) tell(stream, wire)
      },
    })
    /** Notifications may have been lost; all streams resubscribe. */
    const doubt = (): void => {
      for (const stream of [...streams.heard.values()]) stream.doubt()
    }
    return {
      client,
      side: {
        handlers: [
          [eventHappened, hear<WireEvent>((stream, wire) => stream.event(wire))],
          [eventBookmark, hear<WireBookmark>((stream, wire) => stream.bookmark(wire))],
          [eventsTerminated, hear<WireTerminated>((stream, wire) => stream.terminated(wire))],
        ],
        // On stateless wires only requests about events declare the extension.
        capabilities: revision => (revision.era === 'session' ? extensionCapability(revision, eventsExtension) : {}),
      },
      extensions: [extend(acknowledgements, (honoured, id) => streams.acknowledged.get(String(id))?.(honoured))],
      opened: session => {
        session.onReopen(doubt)
      },
      unheard: doubt,
      /** All streams end; readers throw the reason, if there is one. */
      ended: reason => {
        over = { reason }
        for (const stream of [...streams.read]) stream.end(reason)
      },
    }
  },
})

/** Lists the event types; empty if the server has no events. */
async function eventTypes(kit: ClientKit, options: RequestOptions | undefined): Promise<readonly EventType[]> {
  if (declaredSettings(kit.session.opened, eventsExtension) === undefined) return []
  const { events } = await kit.session.request(listEvents, {}, kit.send(options))
  return events.map(({ name, description, payload_schema, filter_fields, required_scopes }) => ({
    name,
    description,
    ...given({ payload: payload_schema, filterFields: filter_fields, scopes: required_scopes }),
  }))
}
