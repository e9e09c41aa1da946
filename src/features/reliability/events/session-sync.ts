/** Opens here what another process was asked for in a session that both serve, and ends what is no longer wanted. */
import type { Conversation } from '../../../engine/conversation.ts'
import { conversationOutlet } from './outlet.ts'
import type { EventsRuntime } from './runtime.ts'
import type { EventsParts } from './server.ts'
import type { SubscriptionBook } from './session-subscriptions.ts'
import type { Subscription } from './subscription.ts'

/** `enter` writes down what was opened. */
export async function syncSession(
  parts: EventsParts,
  runtime: EventsRuntime,
  conversation: Conversation,
  book: SubscriptionBook,
  enter: (book: SubscriptionBook, id: string, subscription: Subscription) => void,
): Promise<void> {
  for (const [id, subscription] of book.open) if (!book.kept.has(id)) subscription.close()
  const asker = { caller: conversation.caller, conversation, meta: undefined }
  for (const [id, { wire, expires }] of book.kept) {
    if (book.open.has(id) || expires <= parts.clock.now() || conversation.ended) continue
    const outlet = conversationOutlet(conversation, parts.engine())
    const ttl = Math.ceil((expires - parts.clock.now()) / 1_000)
    const { subscription } = await runtime.subscribe(asker, { ...wire, ttl_seconds: ttl }, outlet)
    if (subscription === undefined) continue
    enter(book, id, subscription)
    subscription.pump()
  }
}
