/** Answering what clients ask of events, on session wires by requests and on stateless ones by a listen. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/revision.ts'
import { describeEvents } from './describe.ts'
import { filterFault } from './filter.ts'
import type { WireDelivery, WirePolled, WireSubscribed, WireSubscription } from './messages.ts'
import { conversationOutlet, listenOutlet } from './outlet.ts'
import type { PollSubscription } from './poll-subscriptions.ts'
import type { EventsRuntime } from './runtime.ts'
import type { EventsParts, EventsSettings } from './server.ts'
import type { SessionSubscriptions } from './session-subscriptions.ts'
import { denial, hearable, isSomebody, ownerIn, readSubscribeRequest, tellsTo } from './subscribe-request.ts'
import type { Subscription } from './subscription.ts'

interface MethodParts extends EventsParts {
  readonly settings: EventsSettings
  readonly books: SessionSubscriptions
  /** The ways that there are to hear of events on a wire. */
  readonly delivery: (revision: Revision) => readonly WireDelivery[]
}

type Answer = (runtime: EventsRuntime, parts: MethodParts, exchange: Exchange) => Promise<unknown>

/** Opens what one listen request asks for. */
export async function listen(
  runtime: EventsRuntime,
  parts: MethodParts,
  exchange: Exchange,
  wishes: readonly WireSubscription[],
  send: <P>(method: Method<P, undefined>, params: P) => void,
) {
  const accepted: WireSubscribed[] = []
  const open: Subscription[] = []
  const owner = await ownerIn(exchange)
  for (const wish of wishes) {
    if (!parts.settings.push || wish.delivery === 'poll') {
      accepted.push(await unpushed(runtime, parts, exchange, owner, wish))
      continue
    }
    const { response, subscription } = await runtime.subscribe(exchange, wish, listenOutlet(exchange, send), owner)
    accepted.push(response)
    if (subscription !== undefined) open.push(subscription)
  }
  return {
    accepted,
    start: () => {
      for (const subscription of open) subscription.pump()
    },
    lapse: () => {
      for (const subscription of open) subscription.terminate('revoked')
    },
    close: () => {
      for (const subscription of open) subscription.close()
    },
  }
}

const subscribe: Answer = async (runtime, parts, exchange) => {
  const wire = exchange.params as unknown as WireSubscription
  const owner = await ownerIn(exchange)
  const { conversation, engine, peer } = exchange
  const lasts = conversation.connection !== undefined || conversation.session !== undefined
  // Where each request stands alone only a listen has a way back.
  if (!parts.settings.push || wire.delivery === 'poll' || !lasts || peer.revision.era === 'request')
    return unpushed(runtime, parts, exchange, owner, wire)
  const opening = await runtime.subscribe(exchange, wire, conversationOutlet(conversation, engine), owner)
  const { subscription } = opening
  if (subscription !== undefined) {
    await parts.books.note(runtime, conversation, subscription, wire, opening.response)
    // After the answer, where both go the same way.
    parts.clock.setTimeout(() => subscription.pump(), 0, true)
  }
  return opening.response
}

const unsubscribe: Answer = async (runtime, { books }, exchange) => {
  const id = exchange.params['subscription_id'] as string
  const owner = await ownerIn(exchange)
  runtime.find(owner, id)?.close()
  if (isSomebody(owner)) await runtime.polled.forget(owner, id)
  await books.forget(runtime, exchange.conversation, id)
  return { subscription_id: id, status: 'cancelled' }
}

const poll: Answer = async (runtime, parts, exchange): Promise<WirePolled> => {
  const { subscription_id: id, cursor, filter, limit = 100, events } = exchange.params as unknown as PollParams
  const owner = await ownerIn(exchange)
  const named = id === undefined || events !== undefined ? undefined : await wishNamed(runtime, owner, id)
  if (limit <= 0) throw new McpError('invalid-params', 'params.limit must be a number above 0')
  const names = events ?? [...(named?.events ?? parts.events.snapshot.entries.map(({ name }) => name))]
  const { heard, reasons } = await hearable({ ...parts, now: parts.clock.now }, exchange, names)
  if (heard.length === 0) throw new McpError('invalid-params', `params.events: ${reasons.join('; ') || 'name at least one'}`)
  const wanted = filter ?? named?.filter
  const fault =
    wanted === undefined
      ? undefined
      : filterFault(
          wanted,
          heard.map(({ payload }) => payload?.json),
        )
  if (fault !== undefined) throw new McpError('invalid-params', `params.${fault}`)
  return runtime.poll(
    { owner, events: new Set(heard.map(({ name }) => name)), filter: wanted, tells: tellsTo(parts, exchange) },
    id ?? '',
    cursor ?? named?.cursor,
    limit,
  )
}

/** What is polled for under an id. To poll for all that happens because it is unknown would be another thing than was asked for. */
async function wishNamed(runtime: EventsRuntime, owner: string, id: string): Promise<Pick<PollSubscription, 'filter'> & Named> {
  const open = runtime.find(owner, id)
  if (open !== undefined) return open.wish
  const kept = isSomebody(owner) ? await runtime.polled.find(owner, id) : undefined
  if (kept !== undefined) return kept
  throw new McpError('invalid-params', 'params.subscription_id names no subscription, or none any more: give events')
}

interface Named {
  readonly events: Iterable<string>
  readonly cursor?: string
}

/** Those that the caller would be given; nobody learns of others by their absence. */
const list: Answer = async (_, parts, exchange) => {
  const names = parts.events.snapshot.entries.map(({ name }) => name)
  const { heard } = await hearable({ ...parts, now: parts.clock.now }, exchange, names)
  return { events: describeEvents(heard, parts.delivery(exchange.peer.revision)) }
}

export const methods = { list, subscribe, unsubscribe, poll }

interface PollParams {
  readonly subscription_id?: string
  readonly events?: readonly string[]
  readonly filter?: Params
  readonly cursor?: string
  readonly limit?: number
}

/** Nothing can be pushed: what may be polled for, and from where. */
async function unpushed(
  runtime: EventsRuntime,
  parts: MethodParts,
  exchange: Exchange,
  owner: string,
  wire: WireSubscription,
): Promise<WireSubscribed> {
  const granted = await readSubscribeRequest({ ...parts, now: parts.clock.now }, exchange, owner, wire)
  if ('denied' in granted) return granted.denied
  const { cursor } = wire.cursor === undefined ? await runtime.poll(granted.wish, '', undefined, 1) : { cursor: wire.cursor }
  const { subscription_id: id, supported_events: supported = [] } = granted.response
  const refusal = wire.delivery === 'poll' && isSomebody(owner) ? await runtime.polled.keep(owner, granted, cursor) : undefined
  if (refusal !== undefined) return denial(id, supported, refusal)
  return { ...granted.response, cursor, supported: false, poll_interval_seconds: parts.settings.pollSeconds }
}
