/** `mcp.events`: all streams of events over one client, and who among them gets what comes. */
import { type Duration, toMilliseconds } from '../core/duration.ts'
import type { SendOptions } from '../engine/calls.ts'
import { declared } from '../engine/extensions.ts'
import type { Side } from '../engine/plan.ts'
import type { ListenFilter } from '../features/mcp/subscriptions/messages.ts'
import { eventsClient, eventsExtension, listEvents } from '../features/reliability/events/client.ts'
import type { Id, Params } from '../jsonrpc/message.ts'
import { type EventReader, EventStream } from './event-stream.ts'
import type { Session } from './session.ts'

export type { ServerEvent } from '../features/reliability/events/client.ts'
export type { EventReader } from './event-stream.ts'

export interface EventsOptions {
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

export class Events {
  readonly #heard = new Map<string, EventStream>()
  readonly #acknowledged = new Map<string, (honoured: ListenFilter) => void>()
  readonly #open = new Set<EventStream>()
  #session: Session | undefined = undefined
  #end: { readonly reason: unknown } | undefined = undefined

  /** What hears the server. */
  side(): Side {
    return eventsClient({
      event: wire => this.#heard.get(wire.subscription_id)?.event(wire),
      bookmark: wire => this.#heard.get(wire.subscription_id)?.bookmark(wire),
      terminated: wire => this.#heard.get(wire.subscription_id)?.terminated(wire),
    })
  }

  open(session: Session): void {
    this.#session = session
    session.onReopen(() => this.doubt())
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

  /** What there is to subscribe to. None where the server has no events; throws where it cannot say. */
  async types(send: SendOptions): Promise<readonly EventType[]> {
    const session = this.#session as Session
    const { capabilities, revision } = session.opened
    if (declared({ capabilities, revision }, eventsExtension) === undefined) return []
    const { events } = await session.request(listEvents, {}, send)
    return events.map(({ name, description, payload_schema, filter_fields, required_scopes }) => ({
      name,
      description,
      ...(payload_schema !== undefined && { payload: payload_schema }),
      ...(filter_fields !== undefined && { filterFields: filter_fields }),
      ...(required_scopes !== undefined && { scopes: required_scopes }),
    }))
  }

  stream(names: readonly string[], options: EventsOptions, send: () => SendOptions): EventReader {
    if (!Array.isArray(names) || names.length === 0)
      throw new TypeError("events needs the names of events: events(['ticket_created'])")
    const stream = new EventStream({
      session: this.#session as Session,
      names,
      filter: options.filter,
      after: options.after,
      signal: options.signal,
      pollMs: options.pollEvery === undefined ? undefined : toMilliseconds(options.pollEvery, 'pollEvery'),
      send,
      heard: this.#heard,
      acknowledged: this.#acknowledged,
      open: this.#open,
    })
    if (this.#end !== undefined) stream.end(this.#end.reason)
    return stream
  }
}
