/** The events of a server: how they hang together with what callers may do, and with the resources that they touch. */

import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from '../core/clock.ts'
import type { Trace } from '../core/log.ts'
import type { InferInput, Schema } from '../core/schema/index.ts'
import type { Engine } from '../engine/engine.ts'
import type { Asker, UnitStep } from '../engine/exchange.ts'
import { permits } from '../features/mcp/authorization/messages.ts'
import { expandTemplate } from '../features/mcp/resources/template.ts'
import type { TemplateValues } from '../features/mcp/resources/template-expand.ts'
import {
  createEvents,
  type EmitOptions,
  type EventEntry,
  type EventFacts,
  type EventsOptions,
  type EventsServer,
  eventsServer,
  type Steps,
} from '../features/reliability/events/server.ts'
import type { Hearing } from '../features/reliability/events/subscribe-request.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Store } from '../stores/store.ts'
import { type Registration, register } from './registration.ts'

/** What is emitted: as the payload's schema has it. */
export type Payload<S> = Schema extends S ? Params : InferInput<S>

export interface EventOptions<S extends Schema> extends Omit<EventFacts<Payload<S>>, 'payload'> {
  /** What the event carries: a schema, by which emitted payloads are checked and filters are known. */
  readonly payload?: S
}

/** A registered event. */
export interface EventHandle<S extends Schema> extends Registration<EventOptions<S>> {
  /**
   * Tells all who subscribed to it and may hear of it, now and when they come back. Gives its id when it is as lasting as the
   * server's store; un-awaited ones keep their order.
   */
  emit(payload: Payload<S>, options?: EmitOptions): Promise<string>
}

export interface ServerEventsParts {
  readonly options: EventsOptions | undefined
  readonly name: string
  readonly store: () => Promise<Store>
  readonly shared: boolean
  readonly sessions: boolean
  readonly clock: Clock
  readonly trace: Trace
  readonly engine: () => Engine
  /** Where more than the caller's token decides. */
  readonly judge: (asker: Asker, name: string, scopes: readonly string[]) => Promise<Hearing> | undefined
  readonly updated: (uri: string) => void
  /** Something has scopes. */
  readonly declare: (scopes: readonly string[] | undefined, what: string) => void
}

export interface ServerEvents
  extends Pick<EventsServer, 'side' | 'listening' | 'catalog' | 'delivery' | 'announcing' | 'undo' | 'close'> {
  add<S extends Schema>(name: string, facts: EventOptions<S>): EventHandle<S>
}

export function serverEvents(parts: ServerEventsParts): ServerEvents {
  const { engine, judge } = parts
  const events = eventsServer(
    {
      ...parts,
      events: createEvents(),
      steps: lazySteps(parts.trace),
      expand: (template, payload) => expandTemplate(template, payload as TemplateValues),
      touched: uris => {
        for (const uri of uris) parts.updated(uri)
      },
      refresh: session => engine().sharing?.refresh(session),
      sessionName: async session => (await engine().sharing?.nameOf(session)) ?? '',
      shows: ({ caller }, name, payload) => engine().shows?.(caller, 'event', name, payload) !== false,
      may: (asker, { name, facts: { scopes } }: EventEntry) => {
        if (scopes === undefined || scopes.length === 0) return free
        return judge(asker, name, scopes) ?? (permits(asker.caller, scopes) ? free : lacking(name, scopes))
      },
    },
    parts.options,
  )
  const hear = (): void => {
    if (parts.shared) engine().onListen.add(events.heard)
  }
  return {
    side: events.side,
    listening: events.listening,
    catalog: events.catalog,
    delivery: events.delivery,
    announcing: events.announcing,
    undo: events.undo,
    close: events.close,
    add: (name, facts) => ({
      ...register(events.catalog, name, facts, now => {
        parts.declare(now.scopes, 'an event')
        hear()
        return events.compile(name, now as EventFacts<never>)
      }),
      emit: (payload, options) => events.emit(name, payload, options),
    }),
  }
}

const free: Hearing = { refusal: undefined, guarded: false }

function lacking(name: string, scopes: readonly string[]): Hearing {
  return { refusal: `The event "${name}" needs the scopes ${scopes.join(' ')}`, guarded: false }
}

/** In which step of a unit of work a handler runs, for what it calls without saying so: `emit`. Loaded with the first step. */
function lazySteps(trace: Trace): Steps {
  let storage: AsyncLocalStorage<UnitStep | undefined> | undefined
  let loaded = false
  const load = (): void => {
    loaded = true
    const hooks = globalThis.process?.getBuiltinModule?.('node:async_hooks')
    if (hooks !== undefined) storage = new hooks.AsyncLocalStorage()
    // Elsewhere than on Node, Deno and Bun there may be none; the call is none the worse for it.
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
