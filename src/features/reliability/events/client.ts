/** The client's side of events: all streams of events over one connection, and who among them gets what comes. */
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

/** Which events are heard, and how. */
export interface EventsClientOptions {
  /** What the payload must agree with: equal values, one of a list, objects in their turn. */
  readonly filter?: Params
  /** Begins behind the event with this cursor instead of now, as far as the server still has it. */
  readonly after?: string
  /** Ends it. */
  readonly signal?: AbortSignal
  /** How often to look, where the server pushes nothing. Default: as it says, else 5 s. */
  readonly pollEvery?: Duration
}

/** An event that a server offers, in its own words. */
export interface EventType {
  readonly name: string
  readonly description: string
  /** The JSON schema of its payload. */
  readonly payload?: Params
  /** The members of the payload that a filter may name; absent: any. */
  readonly filterFields?: readonly string[]
  /** What a caller must be allowed, to hear of it. */
  readonly scopes?: readonly string[]
}

/** Hearing what happens at a server. */
export interface EventsClientApi {
  /**
   * What happens at the server, from now on or behind a cursor, each event once and in order. Taken up again by itself when the
   * connection breaks; where something is missing that the server no longer has, the next event says `truncated`.
   * @example for await (const { payload } of mcp.events(['ticket_created'], { filter: { project: 'home' } })) console.log(payload)
   */
  events(names: readonly string[], options?: EventsClientOptions): EventReader
  /** What can be subscribed to by `events`, for whoever asks; none where the server has no events. */
  eventTypes(options?: RequestOptions): Promise<readonly EventType[]>
}

/** Subscribes to events, or looks for them. */
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

/** Where notifications about events go. */
interface EventsHearer {
  event(wire: WireEvent): void
  bookmark(wire: WireBookmark): void
  terminated(wire: WireTerminated): void
}

/** What hears of events. */
function eventsSide(hearer: EventsHearer): Side {
  const heard = <W>(tell: (wire: W) => void) => ({ execute: ({ params }: Exchange) => tell(params as unknown as W) })
  return {
    handlers: [
      [eventHappened, heard<WireEvent>(wire => hearer.event(wire))],
      [eventBookmark, heard<WireBookmark>(wire => hearer.bookmark(wire))],
      [eventsTerminated, heard<WireTerminated>(wire => hearer.terminated(wire))],
    ],
    // Where each request declares for itself, those about events do.
    capabilities: revision => (revision.era === 'session' ? declaration(revision, eventsExtension) : {}),
  }
}

class EventStreams implements EventsHearer {
  readonly #kit: ClientKit
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

  /** Something may have been said that nobody heard. */
  doubt(): void {
    for (const stream of [...this.#heard.values()]) stream.doubt()
  }

  /** There will be no more; with a reason, whoever reads throws that. */
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

/** What there is to subscribe to. None where the server has no events; throws where it cannot say. */
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
