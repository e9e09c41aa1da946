/** `server.event`: the author's API for events, connected with permissions, resources and transactions. */

import type { InferInput, Schema } from '../../../core/schema/index.ts'
import { defineServerFeature, provide, type Registration, register } from '../../../engine/server-feature.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { authorizationPort } from '../../mcp/authorization/messages.ts'
import { resourcesPort } from '../../mcp/resources/messages.ts'
import { subscriptionsPort } from '../../mcp/subscriptions/messages.ts'
import { compileEvent, type EmitOptions, type EventFacts } from './entry.ts'
import { eventsPort } from './messages.ts'
import { type EventsOptions, eventsServer } from './server.ts'

/** The type of a payload, from its schema. */
type Payload<S> = Schema extends S ? Params : InferInput<S>

/** Options of `server.event`. */
export interface EventOptions<S extends Schema> extends Omit<EventFacts<Payload<S>>, 'payload'> {
  /** The schema of the payload. Emitted payloads are validated, and filters may use its fields. Default: any object. */
  readonly payload?: S
}

/** A registered event. */
export interface EventHandle<S extends Schema = Schema> extends Registration<EventOptions<S>> {
  /**
   * Notifies all subscribers that may receive it, now or when they reconnect. Resolves to its id when it is stored. Calls that are not
   * awaited keep their order.
   */
  emit(payload: Payload<S>, options?: EmitOptions): Promise<string>
}

/** The options of `createServer` that this feature reads. */
export interface EventsServerOptions {
  /** How long events are kept, and how many subscriptions there may be. */
  readonly events?: EventsOptions
}

/** What the feature adds to the server. */
export interface EventsApi {
  /**
   * Offers an event, to which clients subscribe.
   * @example const created = server.event('ticket_created', { payload: z.object({ id: z.string() }) }); await created.emit({ id: 'T-1' })
   */
  event<S extends Schema>(name: string, options: EventOptions<S>): EventHandle<S>
}

/** The server feature: `server.event`. */
export const eventsFeature = defineServerFeature<EventsServerOptions, EventsApi>({
  name: 'events',
  options: { events: 'object' },
  setup: (kit, { events: options = {} }) => {
    const events = eventsServer(kit, options)
    const { catalog } = events
    const expand = (template: string, payload: Params): string => kit.port(resourcesPort).expand(template, payload)
    const add: EventsApi['event'] = (name, facts) => ({
      ...register(catalog, name, facts, now => {
        kit.port(authorizationPort).declare(now.scopes, 'an event')
        if (kit.shared) kit.engine().onListen.add(events.heard)
        return compileEvent(name, now as EventFacts<never>, expand)
      }),
      emit: (payload, emitted) => events.emit(name, payload, emitted),
    })
    kit.port(subscriptionsPort).kind(events.listening)
    return {
      sides: [events.side],
      provides: provide(eventsPort, {
        add: (name, facts) => void add(name, facts),
        announcing: events.announcing,
        undo: events.undo,
        onChange: fn => void catalog.onChange(fn),
        version: () => catalog.snapshot.version,
        describing: async () => {
          const { describeEvents } = await import('./filter.ts')
          return revision => describeEvents(catalog.snapshot.entries, events.delivery(revision))
        },
      }),
      server: { event: add },
      stop: events.close,
    }
  },
})
