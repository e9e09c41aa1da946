/** Who watches which resource, on wires where a conversation subscribes: found by URI, forgotten with the conversation. */
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { watchedLength } from './messages.ts'

export interface Subscribers {
  add(conversation: Conversation, uri: string): void
  remove(conversation: Conversation, uri: string): void
  of(uri: string): Iterable<Conversation>
  readonly memory: Memory<unknown>
}

const nobody: ReadonlySet<Conversation> = new Set()

/** `limit`: URIs per conversation. */
export function createSubscribers(limit: number): Subscribers {
  const watchers = new Map<string, Set<Conversation>>()
  const drop = (conversation: Conversation, uri: string): void => {
    const set = watchers.get(uri)
    if (set?.delete(conversation) === true && set.size === 0) watchers.delete(uri)
  }
  const watched: Memory<Set<string>> = {
    make: conversation => {
      const uris = new Set<string>()
      conversation.onEnd(() => {
        for (const uri of uris) drop(conversation, uri)
      })
      return uris
    },
    key: 'subscriptions',
    save: uris => [...uris],
    restore: (uris, saved, conversation) => {
      const wanted = new Set(Array.isArray(saved) ? saved.filter(uri => typeof uri === 'string') : [])
      for (const uri of uris) if (!wanted.has(uri)) drop(conversation, uri)
      uris.clear()
      for (const uri of wanted) watch(conversation, uris, uri)
    },
  }
  const watch = (conversation: Conversation, uris: Set<string>, uri: string): void => {
    uris.add(uri)
    watchers.set(uri, (watchers.get(uri) ?? new Set()).add(conversation))
  }
  return {
    memory: watched,
    add: (conversation, uri) => {
      // Nothing can be pushed to a request that stands alone, and nothing would ever end it.
      if (conversation.connection === undefined && conversation.session === undefined) {
        throw new McpError(
          'invalid-request',
          'A subscription needs a session; send initialize first, and the session id with every request',
        )
      }
      if (uri.length > watchedLength)
        throw new McpError(
          'invalid-params',
          `params.uri has ${uri.length} characters; to be watched it may have ${watchedLength}`,
        )
      const uris = conversation.recall(watched)
      if (uris.has(uri)) return
      if (uris.size >= limit)
        throw new McpError(
          'busy',
          `${limit} subscriptions are open, which is the limit (subscriptions); unsubscribe from one first`,
        )
      watch(conversation, uris, uri)
    },
    remove: (conversation, uri) => {
      if (conversation.remembered(watched)?.delete(uri) === true) drop(conversation, uri)
    },
    of: uri => watchers.get(uri) ?? nobody,
  }
}
