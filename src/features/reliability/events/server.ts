/**
 * Server side of events without the author's API: layers, handlers, emitting and settings. The runtime is loaded with the first event
 * or subscription.
 */

import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import { ownerKey } from '../../../core/occupancy.ts'
import { capabilityMissing } from '../../../engine/asking.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import { type Asker, compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Layer, Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isThenable, type Params } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import type { Op, Store } from '../../../stores/store.ts'
import { callTool } from '../../mcp/tools/messages.ts'
import { type UnitStep, unitStep } from '../transactions/messages.ts'
import {
  checkEmit,
  checkedPayload,
  compileEvent,
  type EmitOptions,
  type EventData,
  type EventEntry,
  type Expand,
} from './entry.ts'
import {
  eventsExtension,
  hearingEvents,
  listEvents,
  pollEvents,
  subscribeEvents,
  subscription as subscriptionShape,
  unsubscribeEvents,
  type WireDelivery,
  type WireSubscribed,
  type WireSubscription,
} from './messages.ts'
import type { EventsRuntime } from './runtime.ts'
import { sessionSubscriptions } from './session-subscriptions.ts'
import type { Hearing } from './subscribe-request.ts'

export type { EmitOptions, EventEntry, EventFacts } from './entry.ts'

/** Options of events. */
export interface EventsServerOptions {
  /** Approximate number of events kept for replay. Default 10,000. */
  readonly keep?: number
  /** How long they are kept. Default 1 day. */
  readonly keepFor?: Duration
  /** The longest lifetime of a subscription. Default 1 day. */
  readonly ttl?: Duration
  /** Subscriptions per caller. Default 100. */
  readonly perCaller?: number
  /** Subscriptions in total, per process. Default 10,000. */
  readonly total?: number
  /** The polling interval for clients that cannot be pushed to. Default 5 s. */
  readonly pollEvery?: Duration
  /** False: clients must poll. Default true. */
  readonly push?: boolean
}

/** What events need from the server. */
export interface EventsParts {
  /** The server's name; part of the store keys. */
  readonly name: string
  readonly store: () => Promise<Store>
  /** Whether the store is shared, so that other processes may emit too. */
  readonly shared: boolean
  readonly clock: Clock
  readonly trace: Trace
  /** Whether a caller may receive an event. */
  readonly may: (asker: Asker, entry: EventEntry) => Awaitable<Hearing>
  /** Whether the event type is visible to the caller; with a payload: whether this event is. */
  readonly shows: (asker: Asker, name: string, payload?: Params) => boolean
  /** Runs code as part of a step of a transaction, and tells the current step. */
  readonly steps: UnitSteps
  /** Notifies subscribers of resources that have changed. */
  readonly touched: (uris: readonly string[]) => void
  /** Expands a URI template. */
  readonly expand: Expand
  /** Whether sessions persist across requests without a connection. */
  readonly sessions: boolean
  /** Reloads the state of a session that other processes serve too. */
  readonly refresh: (session: string) => void
  /** The name of a session for other processes. */
  readonly sessionName: (session: string) => Promise<string>
  readonly engine: () => Engine
  readonly events: Catalog<EventEntry>
}

/** The options with defaults applied. */
export interface EventsSettings {
  readonly keep: number
  readonly keepMs: number
  readonly ttlMs: number
  readonly perCaller: number
  readonly total: number
  readonly pollSeconds: number
  readonly push: boolean
}

/** Access to the current step of a transaction. */
export interface UnitSteps {
  within(step: UnitStep | undefined, work: Next): Awaitable<unknown>
  current(): UnitStep | undefined
}

/** Sends a notification to one listener. */
type Send = <P>(method: Method<P, undefined>, params: P) => void

/** The server side of events, as `offering.ts` uses it. */
export interface EventsServer {
  readonly side: Side
  readonly catalog: Catalog<EventEntry>
  compile(name: string, facts: EventEntry['facts']): EventEntry
  /** Publishes an event; returns its id. Calls that are not awaited keep their order. */
  emit(name: string, payload: unknown, options?: EmitOptions): Promise<string>
  /** A session has opened its stream in this process; its subscriptions may have been made in another. */
  heard(conversation: Conversation): void
  /** The ways of delivery on a wire. */
  delivery(revision: Revision): readonly WireDelivery[]
  /** The member of `subscriptions/listen`. */
  readonly listening: {
    readonly member: string
    open(exchange: Exchange, wanted: unknown, send: Send): Promise<Listening | undefined>
  }
  /** Store operations that announce an event of the runtime to one owner, committed with what they report. */
  announcing(name: string, payload: Params, owner: string): Promise<readonly Op[]>
  /** Store operations that compensate the events of a step. */
  undo(place: string): Promise<readonly Op[]>
  /** Ends all subscriptions with a notification. */
  close(): void
}

/** The granted subscriptions of a listen request. */
interface Listening {
  readonly accepted: readonly WireSubscribed[]
  start(): void
  lapse(): void
  close(): void
}

/** Creates the catalog of events. */
export function createEvents(): Catalog<EventEntry> {
  return createCatalog<EventEntry>({
    noun: 'event',
    key: ({ name }) => name,
    facts: ({ name, facts, payload }) => ({ name, description: facts.description, scopes: facts.scopes, payload: payload?.json }),
  })
}

/** Creates the server side of events. */
export function eventsServer(parts: EventsParts, options: EventsServerOptions = {}): EventsServer {
  const { events } = parts
  const settings = settingsOf(options)
  const lazy = lazyWorks(parts, settings)
  const books = sessionSubscriptions(parts, lazy.load)
  const offered = (): boolean => events.size > 0
  // If the store is shared, other processes may change the resource.
  const watched: Layer = {
    stage: 'enter',
    methods: ['resources/subscribe', 'subscriptions/listen'],
    when: () => parts.shared && !lazy.watching && events.snapshot.entries.some(({ touches }) => touches !== undefined),
    run: async (_, next) => {
      lazy.watching = true
      await (await lazy.load()).watch()
      return next()
    },
  }
  const stepping: Layer = {
    stage: 'execute',
    methods: [callTool.name],
    marked: true,
    // A compensation is not part of the step that it compensates.
    when: exchange => (exchange.get(unitStep) !== undefined || exchange.get(compensation) !== undefined) && offered(),
    run: (exchange, next) => parts.steps.within(exchange.get(unitStep), next),
  }
  events.onChange(() => lazy.loaded?.changed())
  // Stateless wires can push on a listen request, others only with a session or connection.
  const delivery = ({ era }: Revision): readonly WireDelivery[] =>
    settings.push && (era === 'request' || parts.sessions) ? ['push', 'poll'] : ['poll']
  const run = async (exchange: Exchange, method: 'list' | 'subscribe' | 'unsubscribe' | 'poll'): Promise<unknown> => {
    const [{ methods }, runtime] = await Promise.all([import('./methods.ts'), lazy.load()])
    return methods[method](runtime, { ...parts, settings, books, delivery }, exchange)
  }
  return {
    catalog: events,
    compile: (name, facts) => compileEvent(name, facts, parts.expand),
    emit: emitter(parts, lazy),
    delivery,
    heard: conversation => {
      const { peer, session } = conversation
      if (!offered() || peer === undefined || session === undefined || declared(peer, eventsExtension) === undefined) return
      attend(parts, lazy, session).catch(error => parts.trace('events-unread', error))
    },
    listening: {
      member: eventsExtension,
      open: async (exchange, wanted, send) => {
        if (declared(exchange.peer, eventsExtension) === undefined)
          throw capabilityMissing(`subscriptions/listen with ${eventsExtension}`, hearingEvents)
        if (!offered()) return undefined
        const wishes = checkWishes(wanted)
        const [{ listen }, runtime] = await Promise.all([import('./methods.ts'), lazy.load()])
        return listen(runtime, { ...parts, settings, books, delivery }, exchange, wishes, send)
      },
    },
    announcing: async (name, payload, owner) =>
      events.get(name) === undefined ? [] : [(await lazy.load()).publishing(name, payload, owner)],
    undo: async place => (offered() ? (await lazy.load()).undo(place) : []),
    close: () => lazy.close(),
    side: {
      handlers: [
        [listEvents, { offered, execute: (exchange: Exchange) => run(exchange, 'list') }],
        [subscribeEvents, { offered, execute: (exchange: Exchange) => run(exchange, 'subscribe') }],
        [unsubscribeEvents, { offered, execute: (exchange: Exchange) => run(exchange, 'unsubscribe') }],
        [pollEvents, { offered, execute: (exchange: Exchange) => run(exchange, 'poll') }],
      ],
      layers: [watched, stepping],
      memories: [books.memory],
      capabilities: revision => {
        const more = settings.push ? {} : { supported: false, poll_interval_seconds: settings.pollSeconds }
        return offered() ? declaration(revision, eventsExtension, more) : {}
      },
    },
  }
}

/** Starts to follow other processes first, then loads the session's subscriptions, so that no change is missed. */
async function attend(parts: EventsParts, lazy: LazyWorks, session: string): Promise<void> {
  await (await lazy.load()).watch()
  parts.refresh(await parts.sessionName(session))
}

interface LazyWorks {
  loaded: EventsRuntime | undefined
  watching: boolean
  load(): Promise<EventsRuntime>
  close(): void
}

// Loads the runtime once; a failed attempt is forgotten.
function lazyWorks(parts: EventsParts, settings: EventsSettings): LazyWorks {
  let loading: Promise<EventsRuntime> | undefined
  const lazy: LazyWorks = {
    loaded: undefined,
    watching: false,
    load: () => {
      loading ??= Promise.all([import('./runtime.ts'), parts.store()]).then(
        ([{ EventsRuntime: made }, opened]) => {
          lazy.loaded = new made({ ...parts, opened, settings })
          return lazy.loaded
        },
        error => {
          loading = undefined
          throw error
        },
      )
      return loading
    },
    close: () => {
      if (lazy.loaded !== undefined) return lazy.loaded.close()
      loading?.then(runtime => runtime.close()).catch(() => {})
    },
  }
  return lazy
}

/** Publishes in the order of the calls, whatever each has to wait for. */
function emitter({ events, trace, steps }: EventsParts, lazy: LazyWorks): EventsServer['emit'] {
  let before: Promise<unknown> | undefined
  const publish = (
    runtime: EventsRuntime,
    entry: EventEntry,
    payload: Params,
    owner: string | undefined,
    options: EmitOptions,
    place: string | undefined,
  ) => {
    const touches = entry.touches?.(payload)
    const data: EventData = {
      payload,
      ...(options.hint === undefined ? {} : { hint: options.hint }),
      ...(owner === undefined ? {} : { owner }),
      ...(touches === undefined || touches.length === 0 ? {} : { touches }),
    }
    return runtime.publish(entry.name, options.id, data, place)
  }
  const inTurn = async (entry: EventEntry, payload: Awaitable<Params>, options: EmitOptions) => {
    const turn = before
    const place = steps.current()?.place
    const ready = Promise.all([payload, ownerKeyOf(options.to), lazy.load()])
    const mine = Promise.allSettled([turn, ready])
    before = mine
    const [[checked, owner, runtime]] = await Promise.all([ready, mine])
    if (before === mine) before = undefined
    return publish(runtime, entry, checked, owner, options, place)
  }
  return (name, given, options = {}) => {
    let emitted: Promise<string>
    try {
      const entry = events.get(name)
      if (entry === undefined) throw new TypeError(`There is no event "${name}" any more: it was removed`)
      checkEmit(name, options)
      const payload = checkedPayload(entry, given)
      const runtime = lazy.loaded
      emitted =
        runtime === undefined || isThenable(payload) || before !== undefined || options.to !== undefined
          ? // Copied, because the author may change the object before it is published.
            inTurn(entry, isThenable(payload) ? payload : (JSON.parse(JSON.stringify(payload)) as Params), options)
          : publish(runtime, entry, payload, undefined, options, steps.current()?.place)
    } catch (error) {
      emitted = Promise.reject(error)
    }
    // A rejection that nobody awaits must not end the process; it is traced.
    emitted.catch(error => trace('event-not-emitted', { event: name, error }))
    return emitted
  }
}

function ownerKeyOf(principal: string | undefined): Awaitable<string> | undefined {
  return principal === undefined ? undefined : ownerKey({ carrier: 'http', principal: { id: principal } })
}

// Limit of subscriptions in one listen request.
const mostWishes = 32

function checkWishes(wanted: unknown): readonly WireSubscription[] {
  const where = `params.notifications["${eventsExtension}"]`
  if (!Array.isArray(wanted) || wanted.length > mostWishes)
    throw new McpError('invalid-params', `${where} must be an array of at most ${mostWishes} subscriptions`)
  for (const wish of wanted) {
    const fault = subscriptionShape.check(wish)
    if (fault !== undefined)
      throw new McpError('invalid-params', `${where}: ${fault.path || 'an entry'} must be ${fault.expected}`)
  }
  return wanted
}

function settingsOf(options: EventsServerOptions): EventsSettings {
  const { keep = 10_000, perCaller = 100, total = 10_000, push = true } = options
  for (const [name, value] of Object.entries({ keep, perCaller, total }))
    if (!(value >= 1)) throw new TypeError(`events.${name} is ${value}: give a number of at least 1`)
  return {
    keep,
    perCaller,
    total,
    push,
    keepMs: toMilliseconds(options.keepFor ?? '1d', 'events.keepFor'),
    ttlMs: toMilliseconds(options.ttl ?? '1d', 'events.ttl'),
    pollSeconds: Math.max(1, Math.round(toMilliseconds(options.pollEvery ?? '5s', 'events.pollEvery') / 1_000)),
  }
}
