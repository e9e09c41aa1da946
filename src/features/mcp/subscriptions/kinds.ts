/** The kinds that every server has: a list that changes, and resources that do. */
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { type Awaitable, isRecord } from '../../../jsonrpc/message.ts'
import { watchedLength } from '../resources/messages.ts'
import type { ListenKind, Send } from './listeners.ts'

/** A kind, and those who were granted it. */
interface ListKind extends ListenKind {
  readonly listeners: Iterable<Listening>
}

/** The way to one who listens, and the request by which that one does. */
type Listening = readonly [send: Send, exchange: Exchange]

export function listKind(list: string): ListKind {
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
export function updateKind(
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
    `${where} holds a URI of ${length} characters; to be watched it may have ${watchedLength}`,
  )
}

function tooMany(count: number, limit: number): McpError {
  return new McpError(
    'invalid-params',
    `${where} names ${count} URIs, the limit is ${limit} (subscriptions); listen for the rest in another request`,
  )
}
