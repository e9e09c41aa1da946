/**
 * Telling clients what changed, in every world at once: unasked on session wires, to subscribers of a resource, to those
 * who listen on stateless wires, and as differences on the dialect. What changes in one turn of the loop is told once.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Asker, Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isRecord, isThenable } from '../../../jsonrpc/message.ts'
import { admission, authorizationPort, type GrantedRights, type Scopes } from '../authorization/messages.ts'
import { promptsChanged, promptsPort } from '../prompts/messages.ts'
import { resourcesChanged, resourcesPort, resourceUpdated, watchedLength } from '../resources/messages.ts'
import { toolsChanged, toolsPort } from '../tools/messages.ts'
import { dialectChanges } from './dialect.ts'
import { Listeners } from './listeners.ts'
import { type ListenKind, listen, type Send, subscriptionsPort } from './messages.ts'

type ListName = 'tools' | 'prompts' | 'resources'

interface SubscriptionsOptions {
  /** Asked for when something is told; it need not exist before. */
  readonly engine: () => Engine
  readonly clock: Clock
  readonly limits: ConstructorParameters<typeof Listeners>[0] & {
    /** URIs in one listen request. */
    readonly subscriptions: number
  }
  readonly offered: Parameters<typeof dialectChanges>[0]
  /** Who subscribed to a resource in its session, and whether a grant let one in, which ends it by itself. */
  readonly subscribers: {
    of(uri: string): Iterable<Conversation>
    isAdmitted(conversation: Conversation, uri: string): boolean
  }
  /** Whether a caller may hear of a resource. Default: each may. */
  readonly watchable?: (exchange: Exchange, uri: string) => Awaitable<boolean>
  /** Whether one who was let in, by no grant, may hear of it now. Undefined: nobody need be asked about. */
  readonly hears?: (uri: string) => ((asker: Asker) => Awaitable<boolean>) | undefined
  /** Told when the first begins to listen for a resource, and when the last has stopped. */
  readonly watched?: (uri: string, watched: boolean) => void
  /** Ends what is listened to when what let it in is over. */
  readonly lapsing?: GrantedRights['listens']
}

/** Telling clients what changed: `server.resourceUpdated`, and what `subscriptions/listen` can ask for. */
export const subscriptionsFeature = defineServerFeature<object>({
  name: 'subscriptions',
  setup(kit) {
    const { engine, clock, limits } = kit
    const [tools, resources, prompts] = [kit.port(toolsPort), kit.port(resourcesPort), kit.port(promptsPort)]
    const rights = (): GrantedRights | undefined => kit.port(authorizationPort).rights
    const hears = (asker: Asker, uri: string, scopes: Scopes): Awaitable<boolean> => rights()?.hears(asker, uri, scopes) ?? true
    const { side, kind, updated, changed, close } = subscriptionsServer({
      engine,
      clock,
      limits,
      subscribers: resources.subscribers,
      watchable: (exchange, uri) => hears(exchange, uri, resources.scopes(uri)),
      hears: uri => {
        const scopes = resources.scopes(uri)
        return scopes && (asker => hears(asker, uri, scopes))
      },
      lapsing: (exchange, ended) => rights()?.listens(exchange, ended),
      watched: (uri, watched) => {
        for (const fn of engine().onWatch) fn(uri, watched)
      },
      offered: {
        tools: () => tools.catalog.snapshot.entries.map(({ tool }) => tool),
        resources: () => resources.resources.snapshot.entries.map(({ resource }) => resource),
      },
    })
    tools.catalog.onChange(() => changed('tools'))
    prompts.onChange(() => changed('prompts'))
    for (const catalog of [resources.resources, resources.templates]) catalog.onChange(() => changed('resources'))
    return {
      sides: [side],
      provides: provide(subscriptionsPort, { kind, updated }),
      server: { resourceUpdated: updated },
      stop: close,
    }
  },
})

const lists = { tools: toolsChanged, prompts: promptsChanged, resources: resourcesChanged }

/** Makes the server's side of subscriptions. */
export function subscriptionsServer(options: SubscriptionsOptions) {
  const listeners = new Listeners(options.limits, options.lapsing)
  const dialect = dialectChanges(options.offered)
  const kinds = { tools: listKind('tools'), prompts: listKind('prompts'), resources: listKind('resources') }
  const updates = updateKind(options.limits.subscriptions, options.watchable, options.watched)
  for (const kind of [...Object.values(kinds), updates]) listeners.add(kind)

  const tellList = (engine: Engine, list: ListName): void => {
    const method = lists[list]
    const notices = engine.listAudience?.(list) ?? everybody
    for (const conversation of listAudience(engine)) {
      if (conversation.peer?.revision.dialect === true) {
        // The dialect tells what came and went; other wires only that something did.
        if (list !== 'prompts') dialect[list](engine, conversation)
      } else if (notices(conversation.caller)) engine.notify(conversation, method, {})
    }
    for (const [send, { caller }] of kinds[list].listeners) if (notices(caller)) send(method, {}, method.name)
  }
  const tellUpdate = (engine: Engine, uri: string): void => {
    const { subscribers, hears: asked } = options
    const told = telling(engine, uri, asked?.(uri))
    for (const conversation of subscribers.of(uri))
      if (hears(conversation))
        told(askerIn(conversation), subscribers.isAdmitted(conversation, uri), () =>
          engine.notify(conversation, resourceUpdated, { uri }),
        )
    if (engine.spoken.dialect !== undefined) {
      for (const conversation of listAudience(engine))
        if (conversation.peer?.revision.dialect === true)
          told(askerIn(conversation), false, () => dialect.updated(engine, conversation, uri))
    }
    for (const [send, exchange] of updates.of(uri))
      told(exchange, exchange.get(admission) !== undefined, () =>
        send(resourceUpdated, { uri }, `${resourceUpdated.name} ${uri}`),
      )
  }
  const pending = coalescing(options, () => anyone(options.engine(), listeners), tellList, tellUpdate)
  const side: Side = { handlers: [[listen, exchange => listeners.open(exchange)]], layers: [dialect.layer] }
  return {
    side,
    /** A list is another one now. */
    changed: pending.changed,
    /** The content of a resource is another one now. */
    updated: pending.updated,
    /** Adds a member to what a listen may ask for. */
    kind: (kind: ListenKind): void => listeners.add(kind),
    /** Tells what is still to be told, then ends all subscriptions in good order. */
    close: (): void => {
      pending.flush()
      listeners.close()
    },
  }
}

function everybody(): boolean {
  return true
}

/** Who was let in before may not hear of it any more: by other rules, another token, or what the resource needs now. */
function telling(engine: Engine, uri: string, may: ((asker: Asker) => Awaitable<boolean>) | undefined) {
  return (asker: Asker, admitted: boolean, tell: () => void): void => {
    if (engine.shows?.(asker.caller, 'resource', uri) === false) return
    const yes = admitted || may === undefined || may(asker)
    if (isThenable(yes))
      yes.then(
        heard => heard && tell(),
        error => engine.trace('resource-not-told', error),
      )
    else if (yes) tell()
  }
}

function askerIn(conversation: Conversation): Asker {
  return { caller: conversation.caller, conversation, meta: undefined }
}

function coalescing(
  { engine, clock }: SubscriptionsOptions,
  audience: () => boolean,
  tellList: (engine: Engine, list: ListName) => void,
  tellUpdate: (engine: Engine, uri: string) => void,
) {
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
    set.add(what)
    cancel ??= clock.setTimeout(flush, 0, true)
  }
  return {
    flush,
    changed: (list: ListName): void => {
      if (audience()) note(changed, list)
      // Whoever knows what has changed need not remember it for later.
      else engine().listAudience?.(list)
    },
    updated: (uri: string): void => {
      if (audience()) note(updated, uri)
    },
  }
}

/** Whoever comes later reads what is there then; while a server is being set up there is nobody to tell. */
function anyone({ connected, sessions }: Engine, listeners: Listeners): boolean {
  return listeners.size > 0 || connected.size > 0 || !sessions.all()[Symbol.iterator]().next().done
}

/** Conversations of session wires that are open and can be spoken to unasked. */
function* listAudience(engine: Engine): Iterable<Conversation> {
  for (const conversation of engine.connected) if (hears(conversation)) yield conversation
  for (const conversation of engine.sessions.all()) if (hears(conversation)) yield conversation
}

function hears({ ready, ended, connection, push }: Conversation): boolean {
  return ready && !ended && (connection !== undefined || push?.closed === false)
}

// The kinds that every server has: a list that changes, and resources that do.

/** A kind, and those who were granted it. */
interface ListKind extends ListenKind {
  readonly listeners: Iterable<Listening>
}

/** The way to one who listens, and the request by which that one does. */
type Listening = readonly [send: Send, exchange: Exchange]

function listKind(list: string): ListKind {
  const listeners = new Map<Send, Exchange>()
  return {
    listeners,
    member: `${list}ListChanged`,
    open: (exchange, wanted, send) => {
      if (wanted !== true || !declares(exchange, list, 'listChanged')) return undefined
      return { accepted: true, start: () => listeners.set(send, exchange), close: () => listeners.delete(send) }
    },
  }
}

interface UpdateKind extends ListenKind {
  /** Those who watch it, and who they are: what they may hear of can be less by now. */
  of(uri: string): Iterable<Listening>
}

const nobody: readonly Listening[] = []

/** `limit`: URIs in one request. `watchable`: whether the caller may hear of a resource; of the others nothing is granted. `watched`: told of the first who watches one, and of the last who stops. */
function updateKind(
  limit: number,
  watchable: (exchange: Exchange, uri: string) => Awaitable<boolean> = () => true,
  watched?: (uri: string, watched: boolean) => void,
): UpdateKind {
  const watchers = new Map<string, Map<Send, Exchange>>()
  const drop = (uri: string, send: Send): void => {
    const set = watchers.get(uri)
    if (set?.delete(send) !== true || set.size > 0) return
    watchers.delete(uri)
    watched?.(uri, false)
  }
  const add = (uri: string, send: Send, exchange: Exchange): void => {
    const others = watchers.get(uri)
    if (others === undefined) watched?.(uri, true)
    watchers.set(uri, (others ?? new Map<Send, Exchange>()).set(send, exchange))
  }
  return {
    of: uri => watchers.get(uri) ?? nobody,
    member: 'resourceSubscriptions',
    open: async (exchange, wanted, send) => {
      if (!declares(exchange, 'resources', 'subscribe')) return undefined
      const named = [...new Set(wanted as readonly string[])]
      if (named.length > limit) throw tooMany(named.length, limit)
      const longest = named.reduce((most, uri) => Math.max(most, uri.length), 0)
      if (longest > watchedLength) throw tooLong(longest)
      const allowed = await Promise.all(named.map(uri => watchable(exchange, uri)))
      const uris = named.filter((_, i) => allowed[i])
      return {
        accepted: uris,
        start: () => {
          for (const uri of uris) add(uri, send, exchange)
        },
        close: () => {
          for (const uri of uris) drop(uri, send)
        },
      }
    },
  }
}

/** Only what is announced is granted. */
function declares({ engine, peer }: Exchange, capability: string, member: string): boolean {
  const declared = engine.capabilities(peer.revision)[capability]
  return isRecord(declared) && declared[member] === true
}

const where = 'params.notifications.resourceSubscriptions'

function tooLong(length: number): McpError {
  return new McpError(
    'invalid-params',
    `${where} contains a URI of ${length} characters; the limit for subscriptions is ${watchedLength}`,
  )
}

function tooMany(count: number, limit: number): McpError {
  return new McpError(
    'invalid-params',
    `${where} names ${count} URIs; the limit is ${limit} (subscriptions). Subscribe to the rest in another request`,
  )
}
