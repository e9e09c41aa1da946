/**
 * The subscriptions of a session or connection, which end with it. If several processes serve a session, the one that handles a request
 * may not hold the stream; the other learns of the change through the feed and opens the subscription.
 */
import type { Conversation, ConversationSlot } from '../../../engine/conversation.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { WireSubscribed, WireSubscription } from './messages.ts'
import type { EventsRuntime } from './runtime.ts'
import type { EventsParts } from './server.ts'
import type { Subscription } from './subscription.ts'

/** A subscription as other processes read it. */
interface StoredSubscription {
  readonly wire: WireSubscription
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** The subscriptions of one conversation: stored ones, and those open in this process. */
interface SubscriptionBook {
  readonly stored: Map<string, StoredSubscription>
  readonly open: Map<string, Subscription>
}

/** Keeps the subscriptions of conversations. */
export function sessionSubscriptions(parts: EventsParts, load: () => Promise<EventsRuntime>) {
  const memory: ConversationSlot<SubscriptionBook> = {
    make: conversation => {
      const book: SubscriptionBook = { stored: new Map(), open: new Map() }
      conversation.onEnd(() => {
        for (const subscription of book.open.values()) subscription.close()
      })
      return book
    },
    key: 'events',
    save: ({ stored }) => Object.fromEntries(stored),
    restore: (book, saved, conversation) => {
      book.stored.clear()
      for (const [id, stored] of Object.entries(isRecord(saved) ? saved : {})) book.stored.set(id, stored as StoredSubscription)
      sync(conversation, book).catch(error => parts.trace('events-not-taken-up', error))
    },
  }
  // Opens and closes subscriptions after another process has changed them.
  const sync = async (conversation: Conversation, { open, stored }: SubscriptionBook): Promise<void> => {
    const runtime = await load()
    for (const [id, subscription] of open) if (!stored.has(id)) subscription.close()
    const asker = { caller: conversation.caller, conversation, meta: undefined }
    for (const [id, { wire, expires }] of stored) {
      const left = expires - parts.clock.now()
      if (open.has(id) || left <= 0 || conversation.ended) continue
      const renewed = { ...wire, ttl_seconds: Math.ceil(left / 1_000) }
      const { subscription } = await runtime.subscribeOn(conversation, asker, renewed)
      if (subscription === undefined) continue
      enter(open, id, subscription)
      subscription.pump()
    }
  }
  // Persists the session and tells the other processes.
  const share = async (runtime: EventsRuntime, conversation: Conversation): Promise<void> => {
    if (conversation.persist === undefined || conversation.session === undefined) return
    await conversation.persist(memory as ConversationSlot<unknown>)
    await runtime.sessionChanged((await parts.engine().sharing?.nameOf(conversation.session)) ?? '')
  }
  return {
    /** Makes them part of what a session remembers. */
    memory: memory as ConversationSlot<unknown>,
    /** Records a new subscription. */
    note: async (
      runtime: EventsRuntime,
      conversation: Conversation,
      opened: Subscription,
      wire: WireSubscription,
      { subscription_id: id, cursor, expires_at: until = '' }: WireSubscribed,
    ): Promise<void> => {
      const book = conversation.recall(memory)
      if (conversation.ended) return opened.close()
      enter(book.open, id, opened)
      book.stored.set(id, { wire: { ...wire, subscription_id: id, cursor }, expires: Date.parse(until) })
      for (const [other, { expires }] of book.stored) if (expires <= parts.clock.now()) book.stored.delete(other)
      await share(runtime, conversation)
    },
    /** Removes a subscription. */
    forget: async (runtime: EventsRuntime, conversation: Conversation, id: string): Promise<void> => {
      if (conversation.remembered(memory)?.stored.delete(id) === true) await share(runtime, conversation)
    },
  }
}

function enter(open: SubscriptionBook['open'], id: string, subscription: Subscription): void {
  open.set(id, subscription)
  subscription.onEnd(() => {
    if (open.get(id) === subscription) open.delete(id)
  })
}
