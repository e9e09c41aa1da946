/** The runtime of events: one feed, one reader of its tail, and the open subscriptions of this process. Loaded on first use. */
import type { Catalog } from '../../../core/catalog.ts'
import { cursorText, Feed, type Occurrence, readCursor } from '../../../core/feed/feed.ts'
import { Tail } from '../../../core/feed/tail.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Asker } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { type LogPosition, type Op, put, remove, type Store } from '../../../stores/store.ts'
import { subscriptionsPort } from '../../mcp/subscriptions/messages.ts'
import type { EventData, EventEntry } from './entry.ts'
import type { WirePolled, WireSubscribed, WireSubscription } from './messages.ts'
import { PollSubscriptions } from './methods.ts'
import { conversationReceiver, type EventReceiver, OpenSubscriptions } from './open-subscriptions.ts'
import type { EventsParts } from './server.ts'
import { denial, type GrantedSubscription, ownerIn, readSubscribeRequest } from './subscribe-request.ts'
import { Subscription, type SubscriptionCriteria, wants, wireEvent } from './subscription.ts'
import { UndoableEvents } from './undoable.ts'

/** What the runtime is made of. */
export interface EventsRuntimeParts extends EventsParts {
  readonly opened: Store
}

/** An internal feed entry: a session has changed its subscriptions, which the process that holds its stream must know. */
const sessionChanged = '~session'
/** How often rights that may end early are rechecked. */
const verifyMs = 5_000
const pollMost = 500
/** Limit of operations in one commit when events are compensated. */
const undoneAtOnce = 500

/** The events of a server, once they are used. */
export class EventsRuntime {
  readonly polled: PollSubscriptions
  readonly undoable: UndoableEvents
  readonly #parts: EventsRuntimeParts
  readonly #feed: Feed
  readonly #tail: Tail
  readonly #table: OpenSubscriptions
  /** The scopes of each event, to detect changes. */
  #scopes: ReadonlyMap<string, string>
  /** The position of the last bookmark for all. */
  #reminded: LogPosition = 0
  /** Whether someone subscribes to a resource that events change. */
  #watching = false
  #verifying: (() => void) | undefined = undefined
  #opening = 0
  #closed = false

  constructor(parts: EventsRuntimeParts) {
    const { opened: store, clock, settings, name } = parts
    this.#parts = parts
    this.#table = new OpenSubscriptions(settings)
    this.#scopes = scopesIn(parts.events)
    this.polled = new PollSubscriptions(parts)
    this.#feed = new Feed({ store, clock, id: () => crypto.randomUUID(), name: `events/${name}`, ...settings })
    this.undoable = new UndoableEvents(parts)
    this.#tail = new Tail({
      feed: this.#feed,
      tell: (occurrences, truncated) => this.#tell(occurrences, truncated),
      failed: error => parts.trace('events-unread', error),
      size: Math.min(settings.keep, 1_000),
    })
  }

  /** Publishes an event; returns its id. The same id is published once. `place`: the step of a transaction that emits it. */
  async publish(name: string, id: string | undefined, data: EventData, place?: string): Promise<string> {
    const { keepMs } = this.#parts.settings
    const once = id === undefined ? [] : [put(`event-ids/${this.#parts.name}/${id}`, '', { ifAbsent: true, ttl: keepMs })]
    const given = { id: id ?? crypto.randomUUID(), name, data }
    const noted = place === undefined ? [] : this.undoable.noting(place, given)
    const occurrence = await this.#feed.publish(given, [...once, ...noted])
    if (occurrence === undefined && place !== undefined) await this.undoable.refuse(place)
    // If this process does not read the feed, it must notify the resource subscribers itself.
    if (occurrence !== undefined && !this.#tail.running) this.#touch(data)
    return occurrence?.id ?? (id as string)
  }

  /** The store operation that publishes an event to one owner, for a larger commit. */
  publishing(name: string, payload: Params, owner: string): Op {
    return this.#feed.publishing({ id: crypto.randomUUID(), name, data: { payload, owner } satisfies EventData })
  }

  /** Store operations that compensate the events of a step: each is followed by one that names it. */
  async undo(place: string): Promise<readonly Op[]> {
    const undone = await this.undoable.undo(place)
    // If this process does not read the feed, it must notify the resource subscribers itself.
    if (!this.#tail.running) for (const { occurrence } of undone) this.#touch(occurrence.data)
    const ops = undone.flatMap(({ note, occurrence }) => [this.#feed.publishing(occurrence), remove(note)])
    // Committed in parts; if the rollback is repeated, subscribers recognise duplicates by id.
    while (ops.length > undoneAtOnce) await this.#parts.opened.commit(ops.splice(0, undoneAtOnce))
    return ops
  }

  /** Starts reading the feed, for resource subscribers of this process. */
  watch(): Promise<void> {
    this.#watching = true
    return this.#tail.start()
  }

  /** Opens a subscription; nothing is sent before `pump()`. */
  async subscribe(asker: Asker, wire: WireSubscription, receiver: EventReceiver, owner?: string): Promise<Opening> {
    this.#opening++
    try {
      const opening = await this.#subscribe(asker, owner ?? (await ownerIn(asker)), wire, receiver)
      if (opening.subscription === undefined) receiver.close()
      return opening
    } finally {
      this.#opening--
      this.#rest()
    }
  }

  /** Opens a subscription that ends with a session or connection. */
  subscribeOn(conversation: Conversation, asker: Asker, wire: WireSubscription, owner?: string): Promise<Opening> {
    return this.subscribe(asker, wire, conversationReceiver(conversation, this.#parts.engine()), owner)
  }

  async #subscribe(asker: Asker, owner: string, wire: WireSubscription, receiver: EventReceiver): Promise<Opening> {
    const granted = await readSubscribeRequest(this.#parts, asker, owner, wire)
    if ('denied' in granted) return { response: granted.denied }
    const { subscription_id: id, supported_events: supported = [] } = granted.response
    await this.#tail.start()
    const era = await this.#feed.era()
    const from = await this.#begin(era, wire.cursor)
    if (from === undefined)
      return { response: denial(id, supported, 'cursor is not a cursor of this server. Leave it out to start now') }
    const refusal = this.#closed ? 'The server is closing' : this.#table.refusal(granted.wish, receiver)
    if (refusal !== undefined) return { response: denial(id, supported, refusal) }
    return this.#open(asker, granted, receiver, era, from)
  }

  #open(
    { caller }: Asker,
    { wish, response, recheck, guarded, expires }: GrantedSubscription,
    receiver: EventReceiver,
    era: string,
    from: Start,
  ): Opening {
    const { clock, trace } = this.#parts
    let cancel = (): void => {}
    const subscription = new Subscription(
      wish,
      {
        feed: this.#feed,
        tail: this.#tail,
        era,
        receiver,
        recheck,
        guarded,
        failed: error => trace('events-unread', error, caller),
        ended: ended => {
          cancel()
          this.#table.delete(ended)
          this.#rest()
        },
      },
      from.position,
      from.lost,
    )
    cancel = clock.setTimeout(() => subscription.terminate('expired'), Math.min(expires - clock.now(), 2 ** 31 - 1), true)
    this.#table.add(subscription, guarded)
    this.#verifySoon()
    const place = { cursor: cursorText(era, from.position), ...(from.lost ? { truncated: true } : {}) }
    return { subscription, response: { ...response, ...place } }
  }

  /** The position of a cursor; undefined if invalid. Without a cursor: the end of the feed. */
  async #begin(era: string, cursor: string | undefined): Promise<Start | undefined> {
    if (cursor === undefined) return { position: await this.#feed.end(), lost: false }
    const found = readCursor(era, cursor)
    if (found === undefined) return undefined
    // A cursor of another feed: everything that is kept is new.
    if (found === 'lost') return { position: await this.#oldest(), lost: true }
    const { truncated } = await this.#feed.read(found, { limit: 1 })
    return { position: found, lost: truncated }
  }

  /** The position before the oldest kept event. */
  async #oldest(): Promise<LogPosition> {
    const { occurrences, cursor } = await this.#feed.read(undefined, { limit: 1 })
    return (occurrences[0]?.cursor ?? cursor + 1) - 1
  }

  /** The open subscription of an owner. */
  find(owner: string, id: string): Subscription | undefined {
    return this.#table.find(owner, id)
  }

  /** Reads a page of events for a polling client. */
  async poll(
    wish: Omit<SubscriptionCriteria, 'id' | 'account'>,
    id: string,
    cursor: string | undefined,
    limit: number,
  ): Promise<WirePolled> {
    const era = await this.#feed.era()
    const start = await this.#begin(era, cursor)
    if (start === undefined)
      throw new McpError('invalid-params', 'params.cursor is not a cursor of this server. Leave it out to start now')
    const page = await this.#feed.read(start.position, { limit: Math.min(limit, pollMost), filter: one => wants(wish, one) })
    const lost = start.lost || page.truncated
    let told = start.position
    const events = page.occurrences.map((occurrence, at) => {
      const event = wireEvent(occurrence, id, era, told, lost && at === 0)
      told = occurrence.cursor
      return event
    })
    const { pollSeconds } = this.#parts.settings
    return { events, cursor: cursorText(era, page.cursor), truncated: lost, more: page.more, poll_interval_seconds: pollSeconds }
  }

  /** Events were changed: ends subscriptions whose events are gone, and rechecks those whose scopes changed. */
  changed(): void {
    const { events, clock } = this.#parts
    const scopes = scopesIn(events)
    for (const subscription of this.#table.all()) {
      const names = [...subscription.wish.events]
      if (!names.some(name => events.get(name) !== undefined)) subscription.terminate('withdrawn')
      else if (names.some(name => scopes.get(name) !== this.#scopes.get(name))) {
        subscription.doubt()
        this.#table.guarded.add(subscription)
        clock.setTimeout(() => void subscription.verify().catch(error => this.#parts.trace('events-unverified', error)), 0, true)
      }
    }
    this.#scopes = scopes
    this.#verifySoon()
  }

  /** Tells other processes that a session has changed its subscriptions. */
  async sessionChanged(session: string): Promise<void> {
    await this.#feed.publish({ name: sessionChanged, data: { session } })
  }

  close(): void {
    this.#closed = true
    for (const subscription of this.#table.all()) subscription.terminate('shutdown')
    this.#verifying?.()
    this.#tail.stop()
  }

  #tell(occurrences: readonly Occurrence[], truncated: boolean): void {
    if (truncated) for (const subscription of this.#table.all()) subscription.miss()
    for (const occurrence of occurrences) {
      if (occurrence.name === sessionChanged)
        this.#parts.engine().sharing?.refresh((occurrence.data as { session: string }).session)
      for (const subscription of this.#table.of(occurrence.name)) subscription.offer(occurrence)
      this.#touch(occurrence.data as EventData)
    }
    const distance = Math.ceil(this.#parts.settings.keep / 4)
    const { end } = this.#tail
    if (end - this.#reminded < distance) return
    this.#reminded = end
    for (const subscription of this.#table.all()) subscription.remind(end, distance)
  }

  /** Notifies subscribers of the resources that have changed. */
  #touch({ touches }: EventData): void {
    if (touches === undefined) return
    const { port } = this.#parts
    for (const uri of touches) port(subscriptionsPort).updated(uri)
  }

  /** Stops reading the feed when nobody needs it. */
  #rest(): void {
    if (this.#table.size === 0 && this.#opening === 0 && !this.#watching) this.#tail.stop()
  }

  #verifySoon(): void {
    if (this.#verifying !== undefined || this.#closed || this.#table.guarded.size === 0) return
    this.#verifying = this.#parts.clock.setTimeout(() => void this.#verify(), verifyMs, true)
  }

  async #verify(): Promise<void> {
    const { trace } = this.#parts
    for (const subscription of [...this.#table.guarded])
      await subscription.verify().catch(error => trace('events-unverified', error))
    this.#verifying = undefined
    this.#verifySoon()
  }
}

function scopesIn(events: Catalog<EventEntry>): ReadonlyMap<string, string> {
  return new Map(events.snapshot.entries.map(({ name, facts }) => [name, (facts.scopes ?? []).join(' ')]))
}

// Where a subscription starts.
interface Start {
  readonly position: LogPosition
  readonly lost: boolean
}

/** The result of a subscription request; without a subscription it was denied. */
interface Opening {
  readonly response: WireSubscribed
  readonly subscription?: Subscription
}
