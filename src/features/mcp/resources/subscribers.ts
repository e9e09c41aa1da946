/** Who watches which resource, on wires where a conversation subscribes: found by URI, forgotten with the conversation. */
import type { Conversation, ConversationSlot } from '../../../engine/conversation.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { PresentedGrant } from '../authorization/messages.ts'
import { watchedLength } from './messages.ts'

/** Which conversations have subscribed to which resources. */
export type Subscribers = ReturnType<typeof createSubscribers>

type AdmittingGrant = Pick<PresentedGrant, 'owner' | 'id'>

/** Options of the table of subscribers. */
interface SubscribersOptions {
  /** URIs per conversation. */
  readonly limit: number
  /** Calls `ended` when a grant is over. Gives what to call when nobody cares any more. */
  readonly lapses: (admission: AdmittingGrant, ended: (reason: string) => void) => () => void
  /** Told when the first begins to watch a resource, and when the last has stopped. */
  readonly watched: (uri: string, watched: boolean) => void
  /** Told what has ended with a grant. */
  readonly lapsed: (conversation: Conversation, uris: readonly string[], reason: string) => void
}

const nobody: ReadonlySet<Conversation> = new Set()

/** What one conversation watches: by URI the grant that let it in, if one did. */
type WatchedResources = Map<string, AdmittingGrant | undefined>

/** Makes an empty table of subscribers. */
export function createSubscribers({ limit, lapses, lapsed, watched: told }: SubscribersOptions) {
  const watchers = new Map<string, Set<Conversation>>()
  const drop = (conversation: Conversation, uri: string): void => {
    const set = watchers.get(uri)
    if (set?.delete(conversation) !== true || set.size > 0) return
    watchers.delete(uri)
    told(uri, false)
  }
  /** By conversation and grant: what lets go of listening for its end. */
  const ends = new WeakMap<WatchedResources, Map<string, () => void>>()
  const watched: ConversationSlot<WatchedResources> = {
    make: conversation => {
      const uris: WatchedResources = new Map()
      ends.set(uris, new Map())
      conversation.onEnd(() => {
        for (const uri of uris.keys()) drop(conversation, uri)
        for (const release of ends.get(uris)?.values() ?? []) release()
      })
      return uris
    },
    key: 'subscriptions',
    save: uris => [...uris].map(([uri, by]) => (by === undefined ? uri : [uri, by.owner, by.id])),
    restore: (uris, saved, conversation) => {
      const wanted = readSaved(saved)
      for (const uri of uris.keys()) if (!wanted.has(uri)) drop(conversation, uri)
      uris.clear()
      for (const [uri, by] of wanted) watch(conversation, uris, uri, by)
      letGo(uris)
    },
  }
  const watch = (conversation: Conversation, uris: WatchedResources, uri: string, by: AdmittingGrant | undefined): void => {
    uris.set(uri, by)
    const others = watchers.get(uri)
    if (others === undefined) told(uri, true)
    watchers.set(uri, (others ?? new Set()).add(conversation))
    const held = ends.get(uris)
    if (by === undefined || held === undefined || held.has(placeOf(by))) return
    held.set(
      placeOf(by),
      lapses(by, reason => {
        const over = [...uris].filter(([, other]) => other !== undefined && placeOf(other) === placeOf(by)).map(([each]) => each)
        for (const each of over) {
          uris.delete(each)
          drop(conversation, each)
        }
        letGo(uris)
        Promise.resolve(conversation.persist?.(watched)).catch(() => {})
        if (over.length > 0) lapsed(conversation, over, reason)
      }),
    )
  }
  /** Grants by which nothing is watched any more need not be listened for. */
  const letGo = (uris: WatchedResources): void => {
    const used = new Set([...uris.values()].map(by => by && placeOf(by)))
    for (const [place, release] of ends.get(uris) ?? []) {
      if (used.has(place)) continue
      ends.get(uris)?.delete(place)
      release()
    }
  }
  return {
    memory: watched as ConversationSlot<unknown>,
    /** `by`: the grant that lets it in, by which it ends. */
    add: (conversation: Conversation, uri: string, by?: AdmittingGrant): void => {
      checkWatch(conversation, uri)
      const uris = conversation.recall(watched)
      if (!uris.has(uri) && uris.size >= limit)
        throw new McpError(
          'busy',
          `${limit} subscriptions are open, which is the limit (subscriptions); unsubscribe from one first`,
        )
      watch(conversation, uris, uri, by)
      letGo(uris)
    },
    remove: (conversation: Conversation, uri: string): void => {
      const uris = conversation.remembered(watched)
      if (uris?.delete(uri) !== true) return
      drop(conversation, uri)
      letGo(uris)
    },
    of: (uri: string): Iterable<Conversation> => watchers.get(uri) ?? nobody,
    /** Whether a grant let it in, which ends it by itself. */
    isAdmitted: (conversation: Conversation, uri: string): boolean => conversation.remembered(watched)?.get(uri) !== undefined,
  }
}

function checkWatch(conversation: Conversation, uri: string): void {
  // Nothing can be pushed to a request that stands alone, and nothing would ever end it.
  if (conversation.connection === undefined && conversation.session === undefined)
    throw new McpError(
      'invalid-request',
      'A subscription needs a session; send initialize first, and the session id with every request',
    )
  if (uri.length > watchedLength)
    throw new McpError(
      'invalid-params',
      `params.uri has ${uri.length} characters; the limit for subscriptions is ${watchedLength}`,
    )
}

function placeOf({ owner, id }: AdmittingGrant): string {
  return `${owner}/${id}`
}

/** Written by this package: a URI, or a URI with the grant that let it in. */
function readSaved(saved: unknown): WatchedResources {
  const found: WatchedResources = new Map()
  for (const each of Array.isArray(saved) ? saved : []) {
    if (typeof each === 'string') found.set(each, undefined)
    const [uri, owner, id] = Array.isArray(each) ? each : []
    if (typeof uri === 'string' && typeof owner === 'string' && typeof id === 'string') found.set(uri, { owner, id })
  }
  return found
}
