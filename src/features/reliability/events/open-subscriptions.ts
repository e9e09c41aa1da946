/** The open subscriptions of this process, indexed by owner, id and event; their limits; and the outlets that they send to. */
import { canonicalJson } from '../../../core/digest.ts'
import { leftOf, Tally } from '../../../core/occupancy.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { EventsParts } from './server.ts'
import type { Subscription, SubscriptionCriteria } from './subscription.ts'

const none: ReadonlySet<Subscription> = new Set()

/** All subscriptions of this process. */
export class OpenSubscriptions {
  readonly #limits: EventsParts['settings']
  readonly #owners = new Map<string, Map<string, Subscription>>()
  readonly #names = new Map<string, Set<Subscription>>()
  readonly #all = new Set<Subscription>()
  /** Subscriptions per account, because anonymous callers can appear as any number of owners. */
  readonly #accounts = new Tally<string>()
  /** Subscriptions whose right may end early. */
  readonly guarded = new Set<Subscription>()

  constructor(limits: EventsParts['settings']) {
    this.#limits = limits
  }

  get size(): number {
    return this.#all.size
  }

  all(): readonly Subscription[] {
    return [...this.#all]
  }

  /** The subscriptions that want this event. */
  of(event: string): ReadonlySet<Subscription> {
    return this.#names.get(event) ?? none
  }

  find(owner: string, id: string): Subscription | undefined {
    return this.#owners.get(owner)?.get(id)
  }

  /** Why a subscription cannot be opened; undefined if it can. An identical one with the same id is replaced. */
  refusal(wish: SubscriptionCriteria, receiver: EventReceiver): string | undefined {
    const { perCaller, total } = this.#limits
    const before = this.find(wish.owner, wish.id)
    if (before !== undefined) {
      if (!isSame(before.wish, wish))
        return `You have another subscription with the id "${clip(wish.id)}". Use another id, or end that subscription first`
      // An identical subscription replaces the older one, from whatever connection.
      if (before.receiver.to === receiver.to) before.close()
      else before.terminate('replaced')
      return undefined
    }
    if ((this.#owners.get(wish.owner)?.size ?? 0) >= perCaller)
      return `You have ${perCaller} event subscriptions (the limit, events.perCaller). End one, or request more events in one subscription`
    const mine = this.#accounts.of(wish.account)
    if (mine > 0 && leftOf(total, this.size, mine) === 0)
      return `You have ${mine} event subscriptions, which is your share of the limit for all callers (events.total). End one, or retry later`
    if (this.size >= total) return `${total} event subscriptions are open (the limit, events.total). Retry later`
    return undefined
  }

  add(subscription: Subscription, guarded: boolean): void {
    const { owner, account, id, events } = subscription.wish
    this.#all.add(subscription)
    this.#accounts.add(account, 1)
    this.#owners.set(owner, (this.#owners.get(owner) ?? new Map()).set(id, subscription))
    for (const event of events) this.#names.set(event, (this.#names.get(event) ?? new Set()).add(subscription))
    if (guarded) this.guarded.add(subscription)
  }

  delete(subscription: Subscription): void {
    const { owner, account, id, events } = subscription.wish
    if (this.#all.delete(subscription)) this.#accounts.add(account, -1)
    this.guarded.delete(subscription)
    const ids = this.#owners.get(owner)
    if (ids?.get(id) === subscription) ids.delete(id)
    if (ids?.size === 0) this.#owners.delete(owner)
    for (const event of events) {
      const set = this.#names.get(event)
      set?.delete(subscription)
      if (set?.size === 0) this.#names.delete(event)
    }
  }
}

function isSame(a: SubscriptionCriteria, b: SubscriptionCriteria): boolean {
  return (
    a.events.size === b.events.size &&
    [...a.events].every(event => b.events.has(event)) &&
    canonicalJson(a.filter ?? {}) === canonicalJson(b.filter ?? {})
  )
}

/** Where a subscription sends its notifications. */
export interface EventReceiver {
  /** Identifies the receiver. */
  readonly to: object
  /** Whether the receiver is connected and not blocked. */
  readonly ready: boolean
  send<P>(method: Method<P, undefined>, params: P): void
  /** Calls back once when it may be ready again. */
  whenReady(fn: () => void): void
  /** Nothing more is sent. */
  close(): void
}

/** Sends on the stream of a listen request. */
export function listenReceiver(exchange: Exchange, send: EventReceiver['send']): EventReceiver {
  const { reply } = exchange
  return {
    to: exchange,
    get ready() {
      return !reply.closed && reply.blocked !== true
    },
    send,
    whenReady: fn => reply.onFree?.(fn),
    close: () => {},
  }
}

/** Sends on a session or connection. Over HTTP there may be no open stream for a while. */
export function conversationReceiver(conversation: Conversation, engine: Engine): EventReceiver {
  let waiting: (() => void) | undefined
  const wake = (): void => {
    const fn = waiting
    waiting = undefined
    fn?.()
  }
  const off = conversation.onHeard(wake)
  return {
    to: conversation,
    get ready() {
      const { ended, ready, push, connection, heard } = conversation
      if (ended || !ready) return false
      return connection === undefined ? heard && push?.blocked !== true : connection.blocked !== true
    },
    send: (method, params) => {
      engine.notify(conversation, method, params)
    },
    whenReady: fn => {
      waiting = fn
      const { connection, push, heard } = conversation
      if (connection !== undefined) connection.onFree?.(wake)
      else if (heard) push?.onFree?.(wake)
    },
    close: () => {
      waiting = undefined
      off()
    },
  }
}
