/** `server.event`: the author's API for events, connected with permissions, resources and transactions. */

import type { Trace } from '../../../core/log.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { InferInput, Schema } from '../../../core/schema/index.ts'
import { defineServerFeature, provide, type Registration, register, type ServerKit } from '../../../engine/server-feature.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { authorizationPort, permits } from '../../mcp/authorization/messages.ts'
import { resourcesPort } from '../../mcp/resources/messages.ts'
import { subscriptionsPort } from '../../mcp/subscriptions/messages.ts'
import { permissionsPort } from '../permissions/messages.ts'
import type { UnitStep } from '../transactions/messages.ts'
import type { EmitOptions, EventEntry, EventFacts } from './entry.ts'
import { eventsPort } from './messages.ts'
import {
  createEvents,
  type EventsServerOptions as EventsOptions,
  type EventsServer,
  eventsServer,
  type UnitSteps,
} from './server.ts'
import type { Hearing } from './subscribe-request.ts'

/** The type of a payload, from its schema. */
type Payload<S> = Schema extends S ? Params : InferInput<S>

/** Options of `server.event`. */
export interface EventOptions<S extends Schema> extends Omit<EventFacts<Payload<S>>, 'payload'> {
  /** The payload schema; emitted payloads are checked against it, and filters may use its fields. */
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

const optionKinds: KindsOf<EventsOptions> = {
  keep: 'number',
  keepFor: 'any',
  ttl: 'any',
  perCaller: 'number',
  total: 'number',
  pollEvery: 'any',
  push: 'boolean',
}

/** The server feature: `server.event`. */
export const eventsFeature = defineServerFeature<EventsServerOptions, EventsApi>({
  name: 'events',
  options: { events: 'object' },
  setup: (kit, { events: options = {} }) => {
    checkOptions('events', options, optionKinds)
    const events = opened(kit, options)
    const { catalog } = events
    const add: EventsApi['event'] = (name, facts) => ({
      ...register(catalog, name, facts, now => {
        kit.port(authorizationPort).declare(now.scopes, 'an event')
        if (kit.shared) kit.engine().onListen.add(events.heard)
        return events.compile(name, now as EventFacts<never>)
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

function opened(kit: ServerKit, options: EventsOptions): EventsServer {
  const { engine } = kit
  return eventsServer(
    {
      ...kit,
      events: createEvents(),
      steps: lazySteps(kit.trace),
      expand: (template, payload) => kit.port(resourcesPort).expand(template, payload),
      touched: uris => {
        for (const uri of uris) kit.port(subscriptionsPort).updated(uri)
      },
      refresh: session => engine().sharing?.refresh(session),
      sessionName: async session => (await engine().sharing?.nameOf(session)) ?? '',
      shows: ({ caller }, name, payload) => engine().shows?.(caller, 'event', name, payload) !== false,
      may: (asker, { name, facts: { scopes } }: EventEntry) => {
        if (scopes === undefined || scopes.length === 0) return free
        const judged = kit.port(permissionsPort).judgeEvent(asker, name, scopes)
        return judged ?? (permits(asker.caller, scopes) ? free : lacking(name, scopes))
      },
    },
    options,
  )
}

const free: Hearing = { refusal: undefined, guarded: false }

function lacking(name: string, scopes: readonly string[]): Hearing {
  return { refusal: `The event "${name}" needs the scopes ${scopes.join(' ')}`, guarded: false }
}

/** The used part of AsyncLocalStorage, whose type exists only in Node's typings. */
interface StepStorage {
  run<T>(step: UnitStep | undefined, work: () => T): T
  getStore(): UnitStep | undefined
}

/** Tracks in which step of a transaction a handler runs, so that `emit` knows without being told. Loaded with the first step. */
function lazySteps(trace: Trace): UnitSteps {
  let storage: StepStorage | undefined
  let loaded = false
  const load = (): void => {
    loaded = true
    const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
    if (hooks !== undefined) storage = new hooks.AsyncLocalStorage()
    // Some runtimes have no AsyncLocalStorage; events are then not compensated.
    else trace('steps-untold', { hint: 'What a rollback takes back, its events do not tell here' })
  }
  return {
    current: () => storage?.getStore(),
    within: async (step, work) => {
      if (!loaded) load()
      return storage === undefined ? work() : storage.run(step, work)
    },
  }
}
