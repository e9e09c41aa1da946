/** Client side of events: `client.events` and `client.eventTypes`, and the dispatch of notifications to open streams. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { type ClientKit, defineClientFeature, extend, type RequestOptions } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Id, Params } from '../../../jsonrpc/message.ts'
import { acknowledgements, type ListenFilter } from '../../mcp/subscriptions/messages.ts'
import { type EventReader, EventStream } from './event-stream.ts'
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
  /** What the payload must match: equal values, one of a list, or nested objects. */
  readonly filter?: Params
  /** Starts after the event with this cursor instead of now, if the server still has it. */
  readonly after?: string
  /** Ends the subscription. */
  readonly signal?: AbortSignal
  /** The polling interval, if the server does not push. Default: the server's, else 5 s. */
  readonly pollEvery?: Duration
}

/** An event type that a server offers. */
export interface EventType {
  readonly name: string
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
    const streams = new EventStreams(kit)
    const client: EventsClientApi = {
      events: (names, options = {}) => streams.open(names, options),
      eventTypes: options => eventTypes(kit, options),
    }
    return {
      client,
      side: eventsSide(streams),
      extensions: [extend(acknowledgements, (honoured, id) => streams.acknowledge(honoured, id))],
      opened: session => {
        session.onReopen(() => streams.doubt())
      },
      unheard: () => streams.doubt(),
      ended: reason => streams.end(reason),
    }
  },
})

/** Receives notifications about events. */
interface EventsHearer {
  event(wire: WireEvent): void
  bookmark(wire: WireBookmark): void
  terminated(wire: WireTerminated): void
}

/** The handlers for notifications about events. */
function eventsSide(hearer: EventsHearer): Side {
  const heard = <W>(tell: (wire: W) => void) => ({ execute: ({ params }: Exchange) => tell(params as unknown as W) })
  return {
    handlers: [
      [eventHappened, heard<WireEvent>(wire => hearer.event(wire))],
      [eventBookmark, heard<WireBookmark>(wire => hearer.bookmark(wire))],
      [eventsTerminated, heard<WireTerminated>(wire => hearer.terminated(wire))],
    ],
    // On stateless wires only requests about events declare the extension.
    capabilities: revision => (revision.era === 'session' ? declaration(revision, eventsExtension) : {}),
  }
}

class EventStreams implements EventsHearer {
  readonly #kit: ClientKit
  // Streams by subscription id, and pending acknowledgements by request id.
  readonly #heard = new Map<string, EventStream>()
  readonly #acknowledged = new Map<string, (honoured: ListenFilter) => void>()
  readonly #open = new Set<EventStream>()
  #end: { readonly reason: unknown } | undefined = undefined

  constructor(kit: ClientKit) {
    this.#kit = kit
  }

  event(wire: WireEvent): void {
    this.#heard.get(wire.subscription_id)?.event(wire)
  }

  bookmark(wire: WireBookmark): void {
    this.#heard.get(wire.subscription_id)?.bookmark(wire)
  }

  terminated(wire: WireTerminated): void {
    this.#heard.get(wire.subscription_id)?.terminated(wire)
  }

  acknowledge(honoured: ListenFilter, id: Id | undefined): void {
    this.#acknowledged.get(String(id))?.(honoured)
  }

  /** Notifications may have been lost; all streams resubscribe. */
  doubt(): void {
    for (const stream of [...this.#heard.values()]) stream.doubt()
  }

  /** Ends all streams; readers throw the reason, if there is one. */
  end(reason: unknown): void {
    this.#end = { reason }
    for (const stream of [...this.#open]) stream.end(reason)
  }

  open(names: readonly string[], options: EventsClientOptions): EventReader {
    if (!Array.isArray(names) || names.length === 0)
      throw new TypeError("events needs the names of events: events(['ticket_created'])")
    const stream = new EventStream({
      session: this.#kit.session,
      names,
      filter: options.filter,
      after: options.after,
      signal: options.signal,
      pollMs: options.pollEvery === undefined ? undefined : toMilliseconds(options.pollEvery, 'pollEvery'),
      send: () => this.#kit.send(),
      heard: this.#heard,
      acknowledged: this.#acknowledged,
      open: this.#open,
    })
    if (this.#end !== undefined) stream.end(this.#end.reason)
    return stream
  }
}

/** Lists the event types; empty if the server has no events. */
async function eventTypes(kit: ClientKit, options: RequestOptions | undefined): Promise<readonly EventType[]> {
  const { capabilities, revision } = kit.session.opened
  if (declared({ capabilities, revision }, eventsExtension) === undefined) return []
  const { events } = await kit.session.request(listEvents, {}, kit.send(options))
  return events.map(({ name, description, payload_schema, filter_fields, required_scopes }) => ({
    name,
    description,
    ...(payload_schema !== undefined && { payload: payload_schema }),
    ...(filter_fields !== undefined && { filterFields: filter_fields }),
    ...(required_scopes !== undefined && { scopes: required_scopes }),
  }))
}
