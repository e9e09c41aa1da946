/** The client's side of subscriptions: hearing what of a listen request the server honours. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import { acknowledged, type ListenFilter, subscriptionKey } from './messages.ts'

export interface SubscriptionsClientOptions {
  readonly onAcknowledged?: (honoured: ListenFilter, subscription: Id | undefined, exchange: Exchange) => void
}

export function subscriptionsClient({ onAcknowledged }: SubscriptionsClientOptions = {}): Side {
  return {
    handlers: [
      [
        acknowledged,
        (exchange: Exchange) =>
          onAcknowledged?.(exchange.params['notifications'] as ListenFilter, subscriptionOf(exchange), exchange),
      ],
    ],
  }
}

/** The listen request that brought a notification, by its id. */
export function subscriptionOf({ meta }: Exchange): Id | undefined {
  return meta?.[subscriptionKey] as Id | undefined
}
