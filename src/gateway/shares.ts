/**
 * Fair shares of an upstream's capacity. To the upstream all clients of the gateway are one caller with one set of limits. A client gets at
 * most as much as it leaves free, so that the next client always finds room. `SlotShares` counts calls, `WatchShares` subscriptions.
 */
import { callerAccount } from '../core/accounts.ts'
import { Tally } from '../core/occupancy.ts'
import { problem } from '../core/problem.ts'
import { quoted } from '../core/suggestion.ts'
import type { Conversation } from '../engine/conversation.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { UpstreamPlace } from './addresses.ts'

/**
 * Capacity at each upstream, for all clients together. One client gets at most as much as it leaves free: alone, half.
 * @defaults {defaultShares}
 * @integer
 * @minimum 2
 */
export interface ShareOptions {
  /** Calls that run at the upstream, including those that wait for an answer of a client. */
  readonly calls?: number
  /** Calls that wait for their turn at an upstream that serves one client at a time. */
  readonly waiting?: number
  /** Resources that are watched at the upstream. */
  readonly subscriptions?: number
}

/** The default capacity. */
export const defaultShares: Required<ShareOptions> = { calls: 64, waiting: 1_000, subscriptions: 1_000 }

/** The options with their defaults. Throws where one is unknown or below 2. */
export function sharesOf(options: ShareOptions = {}): Required<ShareOptions> {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(defaultShares, name))
      throw new TypeError(`shares.${name} is not known. Use ${Object.keys(defaultShares).join(', ')}`)
    if (!(Number.isSafeInteger(value) && value >= 2))
      throw new TypeError(`shares.${name} must be a whole number of at least 2, not ${String(value)}`)
  }
  return { ...defaultShares, ...options }
}

/** Identifies a client for counting. */
export type Sharer = object | string

/**
 * The sharer of a caller: its account, across OAuth clients, because anyone can register many of those; on a pipe the connection. All
 * callers over the network without a token are one sharer, since they cannot be told apart.
 */
export function sharerOf(caller: Caller): Sharer {
  const { principal, carrier, connection } = caller
  if (principal !== undefined) return callerAccount(caller)
  return carrier === 'stdio' || carrier === 'memory' ? connection : nameless
}

/** The sharer of callers without a token. */
const nameless = {}

/** Counts slots by client. One client gets at most as many as it leaves free. */
export class SlotShares {
  /** All slots. */
  readonly most: number
  readonly #held = new Tally<Sharer>()
  /** Slots taken by all clients. */
  #all = 0

  constructor(most: number) {
    this.most = most
  }

  /** How many slots a client holds. */
  of(sharer: Sharer): number {
    return this.#held.of(sharer)
  }

  /** False: the client has its share, or no slot is free. */
  take(sharer: Sharer): boolean {
    if (this.#held.of(sharer) >= this.most - this.#all) return false
    this.add(sharer)
    return true
  }

  /** Takes a slot without checking. */
  add(sharer: Sharer): void {
    this.#all++
    this.#held.add(sharer, 1)
  }

  /** Frees a slot. Has no effect for a client that holds none. */
  leave(sharer: Sharer): void {
    if (this.#held.of(sharer) === 0) return
    this.#all--
    this.#held.add(sharer, -1)
  }
}

// Watched resources. A resource that several clients watch is watched once at the upstream and counts for one of them. A subscription
// beyond the share is refused before anything is sent.

/** A watched resource. */
interface WatchedResource {
  readonly upstream: string
  /** Subscriptions by client. */
  readonly by: Map<Sharer, number>
  /** The client for which it counts. */
  counts: Sharer
}

/** Refuses subscriptions beyond a client's share at one upstream. */
export class WatchShares {
  readonly #most: number
  readonly #find: (uri: string) => UpstreamPlace | undefined
  /** By upstream. */
  readonly #shares = new Map<string, SlotShares>()
  /** By address. */
  readonly #watched = new Map<string, WatchedResource>()
  /** By conversation and address, the function that releases the slot. */
  readonly #held = new WeakMap<Conversation, Map<string, () => void>>()

  constructor(most: number, find: (uri: string) => UpstreamPlace | undefined) {
    this.#most = most
    this.#find = find
  }

  /** The layer that counts subscriptions. */
  readonly layer: Layer = {
    // After all layers that may refuse the request.
    stage: 'record',
    methods: ['resources/subscribe', 'resources/unsubscribe', 'subscriptions/listen'],
    run: async (exchange, next) => {
      const { route, params, conversation } = exchange
      if (route.method.name === 'subscriptions/listen') return this.#listening(exchange, next)
      const uri = String(params['uri'])
      if (route.method.name === 'resources/subscribe') return this.#subscribing(exchange, uri, next)
      const result = await next()
      this.#letGo(conversation, uri)
      return result
    },
  }

  /** Takes a slot, and releases it where the subscription fails. */
  async #subscribing({ conversation, caller }: Exchange, uri: string, next: () => unknown): Promise<unknown> {
    const held = this.#of(conversation)
    const known = held.has(uri)
    if (!known) held.set(uri, this.#take(uri, sharerOf(caller)))
    try {
      return await next()
    } catch (error) {
      if (!known) this.#letGo(conversation, uri)
      throw error
    }
  }

  /** Holds slots for as long as the stream is open. */
  async #listening({ params, caller }: Exchange, next: () => unknown): Promise<unknown> {
    const wishes = isRecord(params['notifications']) ? params['notifications']['resourceSubscriptions'] : undefined
    const uris = new Set(Array.isArray(wishes) ? wishes.filter(uri => typeof uri === 'string') : [])
    const taken: (() => void)[] = []
    try {
      for (const uri of uris) taken.push(this.#take(uri, sharerOf(caller)))
      return await next()
    } finally {
      for (const release of taken) release()
    }
  }

  /** The slots of one conversation; all are released when it ends. */
  #of(conversation: Conversation): Map<string, () => void> {
    const known = this.#held.get(conversation)
    if (known !== undefined) return known
    const held = new Map<string, () => void>()
    this.#held.set(conversation, held)
    conversation.onEnd(() => {
      for (const release of held.values()) release()
      held.clear()
    })
    return held
  }

  /** Releases the slot of an address. */
  #letGo(conversation: Conversation, uri: string): void {
    const held = this.#held.get(conversation)
    held?.get(uri)?.()
    held?.delete(uri)
  }

  /** Takes a slot and returns the function that releases it. Throws beyond the share. */
  #take(uri: string, sharer: Sharer): () => void {
    const upstream = this.#find(uri)?.upstream ?? ''
    const shares = this.#shares.get(upstream) ?? new SlotShares(this.#most)
    this.#shares.set(upstream, shares)
    const watched = this.#watched.get(uri)
    if (watched === undefined) {
      if (!shares.take(sharer)) throw full(upstream, shares, sharer)
      this.#watched.set(uri, { upstream, by: new Map([[sharer, 1]]), counts: sharer })
    } else watched.by.set(sharer, (watched.by.get(sharer) ?? 0) + 1)
    let over = false
    return () => {
      if (!over) this.#leave(uri, sharer)
      over = true
    }
  }

  /** Releases one subscription. When the client for which the resource counts leaves, it counts for another one that still watches. */
  #leave(uri: string, sharer: Sharer): void {
    const watched = this.#watched.get(uri)
    const count = (watched?.by.get(sharer) ?? 0) - 1
    if (watched === undefined || count > 0) return void watched?.by.set(sharer, count)
    watched.by.delete(sharer)
    const [next] = watched.by.keys()
    if (next === undefined) this.#watched.delete(uri)
    if (watched.counts !== sharer) return
    const shares = this.#shares.get(watched.upstream)
    shares?.leave(sharer)
    if (next === undefined) return
    // The slot passes to another client.
    watched.counts = next
    shares?.add(next)
  }
}

/** The refusal of a client that has its share. */
function full(upstream: string, shares: SlotShares, sharer: Sharer): Error {
  const held = shares.of(sharer)
  const where = upstream === '' ? 'of servers that are not available' : `of the server ${quoted(upstream)}`
  return problem(
    'RATE_LIMIT_EXCEEDED',
    `You subscribe to ${held} resources ${where}, which is your share of the limit (shares.subscriptions: ${shares.most} for all clients)`,
    {
      retryAfter: 10_000,
      suggestion: 'Unsubscribe from some of them, or ask the operator of the gateway to raise shares.subscriptions',
      details: { upstream, held, limit: shares.most },
    },
  )
}
