/** The client's side of subscriptions: following changes of lists and resources, and hearing what of a listen request is honoured. */
import { defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import { Announcements } from './announcements.ts'
import { type ChangeKind, Changes, type FollowOptions, type WatchOptions } from './changes.ts'
import {
  acknowledged,
  acknowledgements,
  announcements,
  type ClientSubscriptions,
  clientSubscriptionsPort,
  type ListenFilter,
  subscriptionKey,
} from './messages.ts'

export type { ChangeKind, FollowOptions, WatchOptions } from './changes.ts'

/** Changes that a server announces. */
export interface SubscriptionsClientApi {
  /** Yields once for each announced change of a list. The subscription lasts as long as you iterate. */
  changes(kind: ChangeKind, options?: FollowOptions): AsyncGenerator<void, void, undefined>
  /** Yields the URI of each announced update of a resource, or of a part of it. The subscription lasts as long as you iterate. */
  resourceUpdates(uri: string, options?: WatchOptions): AsyncGenerator<string, void, undefined>
}

/** Follows changes of lists and resources on every wire. */
export const subscriptionsClient = defineClientFeature<object, ClientSubscriptions>({
  name: 'subscriptions',
  provides: clientSubscriptionsPort,
  options: {},
  setup(kit) {
    const hub = new Announcements()
    let changes: Changes | undefined
    const open = (): Changes => {
      changes ??= new Changes(kit.session, hub)
      return changes
    }
    const client: SubscriptionsClientApi = {
      changes: (kind, { signal, beside } = {}) => open().ofList(kind, signal, beside),
      resourceUpdates: (uri, { signal, onWatched } = {}) => open().ofResource(uri, signal, onWatched),
    }
    return {
      client,
      port: {
        announce: (topic, uri) => {
          for (const told of kit.extensions(announcements)) told(topic, uri)
          hub.tell(topic, uri)
        },
      },
      side: subscriptionsSide({
        onAcknowledged: (honoured, id) => {
          changes?.acknowledge(honoured, id)
          for (const told of kit.extensions(acknowledgements)) told(honoured, id)
        },
      }),
      unheard: () => hub.tellDoubt(),
      refused: error => hub.fail(error),
      ended: reason => hub.end(reason),
    }
  },
})

/** What hears how much of a listen request is honoured. */
export function subscriptionsSide({
  onAcknowledged,
}: {
  readonly onAcknowledged: (honoured: ListenFilter, id: Id | undefined) => void
}): Side {
  const heard = (exchange: Exchange): void =>
    onAcknowledged(exchange.params['notifications'] as ListenFilter, subscriptionOf(exchange))
  return { handlers: [[acknowledged, heard]] }
}

/** The listen request to which a notification belongs. */
export function subscriptionOf({ meta }: Exchange): Id | undefined {
  return meta?.[subscriptionKey] as Id | undefined
}
