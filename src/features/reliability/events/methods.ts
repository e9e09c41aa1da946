/**
 * Handlers of the event methods: `event/*` on session wires, and the member of `subscriptions/listen` on stateless ones. Also keeps the
 * subscriptions of clients that poll.
 */
import { canonicalJson, digestText } from '../../../core/digest.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Infer } from '../../../jsonrpc/shape.ts'
import type { Revision } from '../../../revisions/revision.ts'
import { put, remove } from '../../../stores/store.ts'
import { describeEvents, filterFault } from './filter.ts'
import type { pollEvents, WireDelivery, WirePolled, WireSubscribed, WireSubscription } from './messages.ts'
import { type EventReceiver, listenReceiver } from './open-subscriptions.ts'
import type { EventsRuntime, EventsRuntimeParts } from './runtime.ts'
import type { EventsParts } from './server.ts'
import type { sessionSubscriptions } from './session-subscriptions.ts'
import {
  denial,
  type GrantedSubscription,
  isSomebody,
  ownerIn,
  readSubscribeRequest,
  receivableEvents,
  tellsTo,
} from './subscribe-request.ts'
import type { Subscription } from './subscription.ts'

interface MethodParts extends EventsParts {
  readonly subscriptionRecords: ReturnType<typeof sessionSubscriptions>
  /** The ways of delivery on a wire. */
  readonly delivery: (revision: Revision) => readonly WireDelivery[]
}

type Answer = (runtime: EventsRuntime, parts: MethodParts, exchange: Exchange) => Promise<unknown>

/** Opens the subscriptions of a listen request. */
export async function listen(
  runtime: EventsRuntime,
  parts: MethodParts,
  exchange: Exchange,
  wishes: readonly WireSubscription[],
  send: EventReceiver['send'],
) {
  const accepted: WireSubscribed[] = []
  const open: Subscription[] = []
  const owner = await ownerIn(exchange)
  for (const wish of wishes) {
    if (!parts.settings.push || wish.delivery === 'poll') {
      accepted.push(await unpushed(runtime, parts, exchange, owner, wish))
      continue
    }
    const { response, subscription } = await runtime.subscribe(exchange, wish, listenReceiver(exchange, send), owner)
    accepted.push(response)
    if (subscription !== undefined) open.push(subscription)
  }
  const each = (act: (subscription: Subscription) => void) => () => {
    for (const subscription of open) act(subscription)
  }
  return {
    accepted,
    start: each(subscription => subscription.pump()),
    lapse: each(subscription => subscription.terminate('revoked')),
    close: each(subscription => subscription.close()),
  }
}

const subscribe: Answer = async (runtime, parts, exchange) => {
  const wire = exchange.params as unknown as WireSubscription
  const owner = await ownerIn(exchange)
  const { conversation, peer } = exchange
  const lasts = conversation.connection !== undefined || conversation.session !== undefined
  // On stateless wires only a listen request has a stream to push on.
  if (!parts.settings.push || wire.delivery === 'poll' || !lasts || peer.revision.era === 'request')
    return unpushed(runtime, parts, exchange, owner, wire)
  const opening = await runtime.subscribeOn(conversation, exchange, wire, owner)
  const { subscription } = opening
  if (subscription !== undefined) {
    await parts.subscriptionRecords.note(runtime, conversation, subscription, wire, opening.response)
    // Deferred, so that the response is sent first.
    parts.clock.setTimeout(() => subscription.pump(), 0, true)
  }
  return opening.response
}

const unsubscribe: Answer = async (runtime, { subscriptionRecords }, exchange) => {
  const id = exchange.params['subscription_id'] as string
  const owner = await ownerIn(exchange)
  runtime.find(owner, id)?.close()
  if (isSomebody(owner)) await runtime.polled.forget(owner, id)
  await subscriptionRecords.forget(runtime, exchange.conversation, id)
  return { subscription_id: id, status: 'cancelled' }
}

const poll: Answer = async (runtime, parts, exchange): Promise<WirePolled> => {
  const { subscription_id: id, cursor, filter, limit = 100, events } = exchange.params as Infer<typeof pollEvents.params>
  const owner = await ownerIn(exchange)
  const named = id === undefined || events !== undefined ? undefined : await wishNamed(runtime, owner, id)
  if (limit <= 0) throw new McpError('invalid-params', 'params.limit must be a number above 0')
  const names = events ?? [...(named?.events ?? parts.events.snapshot.entries.map(({ name }) => name))]
  const { heard, reasons } = await receivableEvents(parts, exchange, names)
  if (heard.length === 0)
    throw new McpError('invalid-params', `params.events: ${reasons.join('; ') || 'name at least one event'}`)
  const wanted = filter ?? named?.filter
  const schemas = heard.map(({ payload }) => payload?.json)
  const fault = filterFault(wanted, schemas)
  if (fault !== undefined) throw new McpError('invalid-params', `params.${fault}`)
  return runtime.poll(
    { owner, events: new Set(heard.map(({ name }) => name)), filter: wanted, tells: tellsTo(parts, exchange) },
    id ?? '',
    cursor ?? named?.cursor,
    limit,
  )
}

/** The subscription behind an id. An unknown id is an error: polling for everything instead would not be what was asked. */
async function wishNamed(runtime: EventsRuntime, owner: string, id: string): Promise<NamedWish> {
  const open = runtime.find(owner, id)
  if (open !== undefined) return open.wish
  const stored = isSomebody(owner) ? await runtime.polled.find(owner, id) : undefined
  if (stored !== undefined) return stored
  throw new McpError('invalid-params', 'params.subscription_id names no open subscription. Give params.events instead')
}

interface NamedWish {
  readonly events: Iterable<string>
  readonly filter?: Params | undefined
  readonly cursor?: string
}

/** Lists only events that the caller may subscribe to. */
const list: Answer = async (_, parts, exchange) => {
  const names = parts.events.snapshot.entries.map(({ name }) => name)
  const { heard } = await receivableEvents(parts, exchange, names)
  return { events: describeEvents(heard, parts.delivery(exchange.peer.revision)) }
}

/** The handlers of the extension's methods. */
export const methods = { list, subscribe, unsubscribe, poll }

/** Answers a subscription that cannot be pushed: what to poll for, and from which cursor. */
async function unpushed(
  runtime: EventsRuntime,
  parts: MethodParts,
  exchange: Exchange,
  owner: string,
  wire: WireSubscription,
): Promise<WireSubscribed> {
  const granted = await readSubscribeRequest(parts, exchange, owner, wire)
  if ('denied' in granted) return granted.denied
  const { cursor } = wire.cursor === undefined ? await runtime.poll(granted.wish, '', undefined, 1) : { cursor: wire.cursor }
  const { subscription_id: id, supported_events: supported = [] } = granted.response
  const refusal = wire.delivery === 'poll' && isSomebody(owner) ? await runtime.polled.keep(owner, granted, cursor) : undefined
  if (refusal !== undefined) return denial(id, supported, refusal)
  return { ...granted.response, cursor, supported: false, poll_interval_seconds: parts.settings.pollSeconds }
}

/** A stored subscription of a polling client. */
interface PollSubscription {
  readonly events: readonly string[]
  readonly filter?: Params | undefined
  /** Where it started. */
  readonly cursor: string
  /** Milliseconds since the epoch. */
  readonly expires: number
}

const idleMs = 3_600_000

/** The subscriptions of clients that poll. */
export class PollSubscriptions {
  readonly #parts: EventsRuntimeParts

  constructor(parts: EventsRuntimeParts) {
    this.#parts = parts
  }

  /** Stores a subscription; returns why not, or undefined. */
  async keep(owner: string, { wish, expires }: GrantedSubscription, cursor: string): Promise<string | undefined> {
    const { opened, settings } = this.#parts
    const said = { events: [...wish.events].sort(), ...(wish.filter === undefined ? {} : { filter: wish.filter }) }
    const before = await this.find(owner, wish.id)
    if (before !== undefined && canonicalJson({ ...before, cursor, expires }) !== canonicalJson({ ...said, cursor, expires }))
      return `You have another subscription with the id "${clip(wish.id)}". Use another id, or end that subscription first`
    const held = await opened.scan(this.#prefix(owner), { limit: settings.perCaller })
    if (before === undefined && held.length >= settings.perCaller)
      return `You have ${settings.perCaller} event subscriptions (the limit, events.perCaller). End one, or request more events in one subscription`
    await this.#write(owner, wish.id, { ...said, cursor, expires })
    return undefined
  }

  /** Finds a subscription and extends its lifetime; undefined if there is none. */
  async find(owner: string, id: string): Promise<PollSubscription | undefined> {
    const { opened, clock } = this.#parts
    const entry = await opened.get(await this.#key(owner, id))
    const found: unknown = entry === undefined ? undefined : JSON.parse(entry.value)
    if (!isRecord(found)) return undefined
    // The store contains only what this class has written.
    const polled = found as unknown as PollSubscription
    if (polled.expires <= clock.now()) return undefined
    if ((entry?.expires ?? 0) - clock.now() < idleMs / 2) await this.#write(owner, id, polled)
    return polled
  }

  async forget(owner: string, id: string): Promise<void> {
    await this.#parts.opened.commit([remove(await this.#key(owner, id))])
  }

  async #write(owner: string, id: string, polled: PollSubscription): Promise<void> {
    const { opened, clock } = this.#parts
    const ttl = Math.min(idleMs, polled.expires - clock.now())
    if (ttl > 0) await opened.commit([put(await this.#key(owner, id), JSON.stringify(polled), { ttl })])
  }

  #prefix(owner: string): string {
    return `event-polls/${this.#parts.name}/${owner}/`
  }

  /** Hashed, because ids are arbitrary strings of clients. */
  async #key(owner: string, id: string): Promise<string> {
    return this.#prefix(owner) + (await digestText(id)).slice(0, 22)
  }
}
