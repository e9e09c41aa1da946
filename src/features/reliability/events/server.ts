/**
 * Server side of events without the author's API: layers, handlers and settings. The runtime is loaded with the first event or
 * subscription.
 */

import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { capabilityMissing } from '../../../engine/asking.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import { compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import type { Op } from '../../../stores/store.ts'
import { callTool } from '../../mcp/tools/messages.ts'
import { unitStep } from '../transactions/messages.ts'
import { type EventEntry, emitter } from './entry.ts'
import {
  eventsDeclaration,
  eventsExtension,
  listEvents,
  pollEvents,
  subscribeEvents,
  unsubscribeEvents,
  type WireDelivery,
  type WireSubscription,
} from './messages.ts'
import type { EventReceiver } from './open-subscriptions.ts'
import type { EventsRuntime } from './runtime.ts'
import { sessionSubscriptions } from './session-subscriptions.ts'

/** Options of events. */
export interface EventsOptions {
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

const kinds: KindsOf<EventsOptions> = {
  keep: 'number',
  keepFor: 'any',
  ttl: 'any',
  perCaller: 'number',
  total: 'number',
  pollEvery: 'any',
  push: 'boolean',
}

/** What the parts of events share: what the server gives them, the offered events, and the options with defaults applied. */
export interface EventsParts extends ServerKit {
  readonly events: Catalog<EventEntry>
  readonly settings: ReturnType<typeof settingsOf>
}

/** Creates the server side of events. */
export function eventsServer(kit: ServerKit, options: EventsOptions) {
  const events = createCatalog<EventEntry>({
    noun: 'event',
    key: ({ name }) => name,
    facts: ({ name, facts, payload }) => ({ name, description: facts.description, scopes: facts.scopes, payload: payload?.json }),
  })
  const parts: EventsParts = { ...kit, events, settings: settingsOf(options) }
  const { push, pollSeconds } = parts.settings
  const lazy = lazyRuntime(parts)
  const subscriptionRecords = sessionSubscriptions(parts, lazy.load)
  const { emit, within } = emitter(parts, lazy)
  const offered = (): boolean => events.size > 0
  let watching = false
  // If the store is shared, other processes may change the resource.
  const watched: Layer = {
    stage: 'enter',
    methods: ['resources/subscribe', 'subscriptions/listen'],
    when: () => kit.shared && !watching && events.snapshot.entries.some(({ touches }) => touches !== undefined),
    run: async (_, next) => {
      watching = true
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
    run: (exchange, next) => within(exchange.get(unitStep), next),
  }
  events.onChange(() => lazy.loaded?.changed())
  /** The ways of delivery on a wire: stateless ones can push on a listen request, others only with a session or connection. */
  const delivery = ({ era }: Revision): readonly WireDelivery[] =>
    push && (era === 'request' || kit.sessions) ? ['push', 'poll'] : ['poll']
  const answering = { ...parts, subscriptionRecords, delivery }
  const answered = (method: 'list' | 'subscribe' | 'unsubscribe' | 'poll') => ({
    offered,
    execute: async (exchange: Exchange): Promise<unknown> => {
      const [{ methods }, runtime] = await Promise.all([import('./methods.ts'), lazy.load()])
      return methods[method](runtime, answering, exchange)
    },
  })
  const side: Side = {
    handlers: [
      [listEvents, answered('list')],
      [subscribeEvents, answered('subscribe')],
      [unsubscribeEvents, answered('unsubscribe')],
      [pollEvents, answered('poll')],
    ],
    layers: [watched, stepping],
    memories: [subscriptionRecords.memory],
    capabilities: revision => {
      const more = push ? {} : { supported: false, poll_interval_seconds: pollSeconds }
      return offered() ? extensionCapability(revision, eventsExtension, more) : {}
    },
  }
  return {
    side,
    catalog: events,
    emit,
    delivery,
    /** A session has opened its stream in this process; its subscriptions may have been made in another. */
    heard: ({ peer, session }: Conversation): void => {
      if (!offered() || peer === undefined || session === undefined || declaredSettings(peer, eventsExtension) === undefined)
        return
      attend(parts, lazy.load, session).catch(error => kit.trace('events-unread', error))
    },
    /** The member of `subscriptions/listen`. */
    listening: {
      member: eventsExtension,
      open: async (exchange: Exchange, wanted: unknown, send: EventReceiver['send']) => {
        if (declaredSettings(exchange.peer, eventsExtension) === undefined)
          throw capabilityMissing(`subscriptions/listen with ${eventsExtension}`, eventsDeclaration)
        if (!offered()) return undefined
        const wishes = checkWishes(wanted)
        const [{ listen }, runtime] = await Promise.all([import('./methods.ts'), lazy.load()])
        return listen(runtime, answering, exchange, wishes, send)
      },
    },
    /** Store operations that announce an event of the runtime to one owner, committed with what they report. */
    announcing: async (name: string, payload: Params, owner: string): Promise<readonly Op[]> =>
      events.get(name) === undefined ? [] : [(await lazy.load()).publishing(name, payload, owner)],
    /** Store operations that compensate the events of a step. */
    undo: async (place: string): Promise<readonly Op[]> => (offered() ? (await lazy.load()).undo(place) : []),
    /** Ends all subscriptions with a notification. */
    close: lazy.close,
  }
}

/** Starts to follow other processes first, then loads the session's subscriptions, so that no change is missed. */
async function attend({ engine }: EventsParts, load: () => Promise<EventsRuntime>, session: string): Promise<void> {
  await (await load()).watch()
  const { sharing } = engine()
  sharing?.refresh(await sharing.nameOf(session))
}

// Loads the runtime once; a failed attempt is forgotten.
function lazyRuntime(parts: EventsParts) {
  let loading: Promise<EventsRuntime> | undefined
  const lazy = {
    loaded: undefined as EventsRuntime | undefined,
    load: (): Promise<EventsRuntime> => {
      loading ??= Promise.all([import('./runtime.ts'), parts.store()]).then(
        ([{ EventsRuntime: made }, opened]) => {
          lazy.loaded = new made({ ...parts, opened })
          return lazy.loaded
        },
        error => {
          loading = undefined
          throw error
        },
      )
      return loading
    },
    close: (): void => {
      if (lazy.loaded !== undefined) return lazy.loaded.close()
      loading?.then(runtime => runtime.close()).catch(() => {})
    },
  }
  return lazy
}

// Limit of subscriptions in one listen request.
const mostWishes = 32

function checkWishes(wanted: unknown): readonly WireSubscription[] {
  const where = `params.notifications["${eventsExtension}"]`
  if (!Array.isArray(wanted) || wanted.length > mostWishes)
    throw new McpError('invalid-params', `${where} must be an array of at most ${mostWishes} subscriptions`)
  for (const wish of wanted) {
    const fault = subscribeEvents.params.check(wish)
    if (fault !== undefined)
      throw new McpError('invalid-params', `${where}: ${fault.path || 'an entry'} must be ${fault.expected}`)
  }
  return wanted
}

function settingsOf(options: EventsOptions) {
  checkOptions('events', options, kinds)
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
