/** Offering events: registering and emitting them, and taking subscriptions. What that takes is loaded with the first of either. */

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

/** How events are kept and delivered. */
export interface EventsServerOptions {
  /** Events that are kept for those who come back, roughly. Default 10,000. */
  readonly keep?: number
  /** How long. Default 1 day. */
  readonly keepFor?: Duration
  /** The longest that a subscription lasts; a client may ask for less. Default 1 day. */
  readonly ttl?: Duration
  /** Subscriptions of one caller. Default 100. */
  readonly perCaller?: number
  /** Subscriptions in all, per process. Default 10,000. */
  readonly total?: number
  /** How often clients are told to look where nothing can be pushed to them. Default 5 s. */
  readonly pollEvery?: Duration
  /** False: nothing is pushed, clients poll. Default true. */
  readonly push?: boolean
}

export interface EventsParts {
  /** The server's name: its events lie under it. */
  readonly name: string
  readonly store: () => Promise<Store>
  /** Whether the store was given, so that other processes may emit too. */
  readonly shared: boolean
  readonly clock: Clock
  readonly trace: Trace
  readonly may: (asker: Asker, entry: EventEntry) => Awaitable<Hearing>
  /** To whom it is not shown, for him it is not there. With a payload: whether this one is told to him. */
  readonly shows: (asker: Asker, name: string, payload?: Params) => boolean
  /** Runs something as a part of a step of a unit of work, and tells in which step something runs. */
  readonly steps: UnitSteps
  /** The content of these resources is another one now. */
  readonly touched: (uris: readonly string[]) => void
  readonly expand: Expand
  /** Whether a session lasts from request to request where its carrier has no connection. */
  readonly sessions: boolean
  /** Reads anew what is kept of a session that other processes serve too. */
  readonly refresh: (session: string) => void
  /** By which name other processes know a session. */
  readonly sessionName: (session: string) => Promise<string>
  readonly engine: () => Engine
  readonly events: Catalog<EventEntry>
}

export interface EventsSettings {
  readonly keep: number
  readonly keepMs: number
  readonly ttlMs: number
  readonly perCaller: number
  readonly total: number
  readonly pollSeconds: number
  readonly push: boolean
}

export interface UnitSteps {
  within(step: UnitStep | undefined, work: Next): Awaitable<unknown>
  current(): UnitStep | undefined
}

/** Sends to one listener. */
type Send = <P>(method: Method<P, undefined>, params: P) => void

export interface EventsServer {
  readonly side: Side
  readonly catalog: Catalog<EventEntry>
  compile(name: string, facts: EventEntry['facts']): EventEntry
  /** Gives the id. Un-awaited ones are in the order of the calls. */
  emit(name: string, payload: unknown, options?: EmitOptions): Promise<string>
  /** A session has opened its stream here, though what it subscribes to may reach other processes. */
  heard(conversation: Conversation): void
  /** The ways that there are to hear of events on a wire. */
  delivery(revision: Revision): readonly WireDelivery[]
  /** What a listen request may ask for. */
  readonly listening: {
    readonly member: string
    open(exchange: Exchange, wanted: unknown, send: Send): Promise<Listening | undefined>
  }
  /** The writes that tell one owner, by its key, of something that the runtime itself has done: they go with what they tell of. */
  announcing(name: string, payload: Params, owner: string): Promise<readonly Op[]>
  /** The writes that take back what a step of a unit of work has told. */
  undo(place: string): Promise<readonly Op[]>
  /** Ends all subscriptions in good order. */
  close(): void
}

/** What a listen request was granted. */
interface Listening {
  readonly accepted: readonly WireSubscribed[]
  start(): void
  lapse(): void
  close(): void
}

export function createEvents(): Catalog<EventEntry> {
  return createCatalog<EventEntry>({
    noun: 'event',
    key: ({ name }) => name,
    facts: ({ name, facts, payload }) => ({ name, description: facts.description, scopes: facts.scopes, payload: payload?.json }),
  })
}

export function eventsServer(parts: EventsParts, options: EventsServerOptions = {}): EventsServer {
  const { events } = parts
  const settings = settingsOf(options)
  const lazy = lazyWorks(parts, settings)
  const books = sessionSubscriptions(parts, lazy.load)
  const offered = (): boolean => events.size > 0
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
    // What takes a step back is no part of it, wherever it is called.
    when: exchange => (exchange.get(unitStep) !== undefined || exchange.get(compensation) !== undefined) && offered(),
    run: (exchange, next) => parts.steps.within(exchange.get(unitStep), next),
  }
  events.onChange(() => lazy.loaded?.changed())
  // Where each request stands alone a listen has a way back; elsewhere only what lasts has one.
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

/** From here on this process learns what the session asks of others; then it looks at what was asked before. */
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

/** Whatever has to be waited for first, what is emitted later comes later. */
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
          ? inTurn(entry, isThenable(payload) ? payload : (JSON.parse(JSON.stringify(payload)) as Params), options)
          : publish(runtime, entry, payload, undefined, options, steps.current()?.place)
    } catch (error) {
      emitted = Promise.reject(error)
    }
    // Whoever does not wait for it is not brought down by it, but can read why.
    emitted.catch(error => trace('event-not-emitted', { event: name, error }))
    return emitted
  }
}

function ownerKeyOf(principal: string | undefined): Awaitable<string> | undefined {
  return principal === undefined ? undefined : ownerKey({ carrier: 'http', principal: { id: principal } })
}

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
