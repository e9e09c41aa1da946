/**
 * Telling clients what changed, in every world at once: unasked on session wires, to subscribers of a resource, to those
 * who listen on stateless wires, and as differences on the dialect. What changes in one turn of the loop is told once.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { promptsChanged } from '../prompts/messages.ts'
import { resourcesChanged, resourceUpdated } from '../resources/messages.ts'
import { toolsChanged } from '../tools/messages.ts'
import { dialectChanges, type Offered } from './dialect.ts'
import { type ListenerLimits, type ListenKind, Listeners, type Publish } from './listeners.ts'
import { listen } from './messages.ts'

export type ListName = 'tools' | 'prompts' | 'resources'

export interface SubscriptionsOptions {
  /** Asked for when something is told; it need not exist before. */
  readonly engine: () => Engine
  readonly clock: Clock
  readonly limits: ListenerLimits & {
    /** URIs in one listen request. */
    readonly subscriptions: number
  }
  readonly offered: Offered
  /** Who subscribed to a resource in its session. */
  readonly subscribers: (uri: string) => Iterable<Conversation>
}

export interface SubscriptionsServer {
  readonly side: Side
  /** A list is another one now. */
  changed(list: ListName): void
  /** The content of a resource is another one now. */
  updated(uri: string): void
  /** Adds a member to what a listen may ask for, and gives the way to those who were granted it. */
  kind<G>(kind: ListenKind<G>): Publish<G>
  /** Tells what is still to be told, then ends all subscriptions in good order. */
  close(): void
}

const lists = { tools: toolsChanged, prompts: promptsChanged, resources: resourcesChanged }
const always = (): boolean => true

export function subscriptionsServer(options: SubscriptionsOptions): SubscriptionsServer {
  const listeners = new Listeners(options.limits)
  const dialect = dialectChanges(options.offered)
  const listKind = (list: ListName): Publish<true> =>
    listeners.add({ member: `${list}ListChanged`, grant: (wish, exchange) => (wish === true && declares(exchange, list, 'listChanged') ? true : undefined) })
  const publishList = { tools: listKind('tools'), prompts: listKind('prompts'), resources: listKind('resources') }
  const publishUpdate = listeners.add(updateKind(options.limits.subscriptions))

  const tellList = (engine: Engine, list: ListName): void => {
    for (const conversation of hearers(engine)) {
      if (conversation.peer?.revision.id !== 's3') engine.notify(conversation, lists[list], {})
      else if (list !== 'prompts') dialect[list](engine, conversation)
    }
    publishList[list](lists[list], {}, always, lists[list].name)
  }
  const tellUpdate = (engine: Engine, uri: string): void => {
    for (const conversation of options.subscribers(uri)) if (hears(conversation)) engine.notify(conversation, resourceUpdated, { uri })
    if (engine.spoken.dialect !== undefined) {
      for (const conversation of hearers(engine)) if (conversation.peer?.revision.id === 's3') dialect.updated(engine, conversation, uri)
    }
    publishUpdate(resourceUpdated, { uri }, (uris) => uris.has(uri), `${resourceUpdated.name} ${uri}`)
  }
  const pending = coalescing(options, () => anyone(options.engine(), listeners), tellList, tellUpdate)
  return {
    ...pending,
    kind: (kind) => listeners.add(kind),
    close: () => {
      pending.flush()
      listeners.close()
    },
    side: { handlers: [[listen, (exchange: Exchange) => listeners.open(exchange)]], layers: [dialect.layer] },
  }
}

interface Pending {
  changed(list: ListName): void
  updated(uri: string): void
  flush(): void
}

function coalescing(
  { engine, clock }: SubscriptionsOptions,
  audience: () => boolean,
  tellList: (engine: Engine, list: ListName) => void,
  tellUpdate: (engine: Engine, uri: string) => void,
): Pending {
  const changed = new Set<ListName>()
  const updated = new Set<string>()
  let cancel: (() => void) | undefined
  const flush = (): void => {
    cancel?.()
    cancel = undefined
    const due = [[...changed], [...updated]] as const
    changed.clear()
    updated.clear()
    for (const list of due[0]) tellList(engine(), list)
    for (const uri of due[1]) tellUpdate(engine(), uri)
  }
  const note = <T>(set: Set<T>, what: T): void => {
    if (!audience()) return
    set.add(what)
    cancel ??= clock.setTimeout(flush, 0, true)
  }
  return { flush, changed: (list) => note(changed, list), updated: (uri) => note(updated, uri) }
}

function updateKind(limit: number): ListenKind<ReadonlySet<string>> {
  return {
    member: 'resourceSubscriptions',
    grant: (wish, exchange) => {
      if (!declares(exchange, 'resources', 'subscribe')) return undefined
      const uris = new Set(wish as readonly string[])
      if (uris.size <= limit) return uris
      throw new McpError('invalid-params', `params.notifications.resourceSubscriptions names ${uris.size} URIs, the limit is ${limit}; listen for the rest in another request`)
    },
    show: (uris) => [...uris],
  }
}

/** Only what is announced is granted. */
function declares({ engine, peer }: Exchange, capability: string, member: string): boolean {
  const declared = engine.capabilities(peer.revision)[capability]
  return isRecord(declared) && declared[member] === true
}

/** Whoever comes later reads what is there then; while a server is being set up there is nobody to tell. */
function anyone({ connected, sessions }: Engine, listeners: Listeners): boolean {
  return listeners.size > 0 || connected.size > 0 || !sessions.all()[Symbol.iterator]().next().done
}

/** Conversations of session wires that are open and can be spoken to unasked. */
function* hearers(engine: Engine): Iterable<Conversation> {
  for (const conversation of engine.connected) if (hears(conversation)) yield conversation
  for (const conversation of engine.sessions.all()) if (hears(conversation)) yield conversation
}

function hears({ ready, ended, connection, push }: Conversation): boolean {
  return ready && !ended && (connection !== undefined || push?.closed === false)
}
