/**
 * Room at one server that all clients of a gateway share: to that server they are one caller, with the limits of one. A client has at
 * most as much as it leaves free, so that whoever comes next finds room, however much one of them asks for.
 */
import { callerAccount, Tally } from '../core/occupancy.ts'
import { problem } from '../core/problem.ts'
import { quoted } from '../core/suggestion.ts'
import type { Conversation } from '../engine/conversation.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { UpstreamPlace } from './addresses.ts'

/** Room at each server, for all clients together. One client has at most as much of it as it leaves free: alone, half. */
export interface ShareOptions {
  /** Calls under way at one server, those included whose callers are asked something. Default 64, which is what servers of this package take. */
  readonly calls?: number
  /** Calls that wait for their turn at a server that works for one caller at a time. Default 1,000. */
  readonly waiting?: number
  /** Resources that are watched at one server. Default 1,000, which is what servers of this package take. */
  readonly subscriptions?: number
}

/** How much room there is at each server where the options do not say it. */
export const defaultShares: Required<ShareOptions> = { calls: 64, waiting: 1_000, subscriptions: 1_000 }

/** The options with their defaults. Throws where one is unknown or too small. */
export function sharesOf(options: ShareOptions = {}): Required<ShareOptions> {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(defaultShares, name))
      throw new TypeError(`shares.${name} is not known: there is ${Object.keys(defaultShares).join(', ')}`)
    if (!(Number.isSafeInteger(value) && value >= 2))
      throw new TypeError(`shares.${name} is ${String(value)}: give a whole number of at least 2`)
  }
  return { ...defaultShares, ...options }
}

/** Identifies a client among those that share something. */
export type Sharer = object | string

/** Who shares: a user, with whatever OAuth clients, of which anybody can register many; else a pipe. Whoever comes over the network without a token cannot be told from others without one. */
export function sharerOf(caller: Caller): Sharer {
  const { principal, carrier, connection } = caller
  if (principal !== undefined) return callerAccount(caller)
  return carrier === 'stdio' || carrier === 'memory' ? connection : nameless
}

const nameless = {}

/** Counts slots by client. One client gets at most as many as it leaves free. */
export class SlotShares {
  readonly most: number
  readonly #held = new Tally<Sharer>()
  #all = 0

  constructor(most: number) {
    this.most = most
  }

  /** How much of it somebody has. */
  of(sharer: Sharer): number {
    return this.#held.of(sharer)
  }

  /** False: it has its share, or there is nothing left. */
  take(sharer: Sharer): boolean {
    if (this.#held.of(sharer) >= this.most - this.#all) return false
    this.add(sharer)
    return true
  }

  /** Without asking whether there is room. */
  add(sharer: Sharer): void {
    this.#all++
    this.#held.add(sharer, 1)
  }

  /** Leaving without having taken a slot has no effect. */
  leave(sharer: Sharer): void {
    if (this.#held.of(sharer) === 0) return
    this.#all--
    this.#held.add(sharer, -1)
  }
}

// How many resources of one server each client watches. What several watch is watched there once, and counts for one of them. Who
// wants more than its share is refused before anything is subscribed to.

/** One resource, at a server. */
interface Watched {
  readonly upstream: string
  /** Who watches it, and how often. */
  readonly by: Map<Sharer, number>
  /** For whom it counts. */
  counts: Sharer
}

/** Refuses subscriptions beyond a client's share of those at one server. */
export class WatchShares {
  readonly #most: number
  readonly #find: (uri: string) => UpstreamPlace | undefined
  readonly #shares = new Map<string, SlotShares>()
  readonly #watched = new Map<string, Watched>()
  /** By conversation and address: what lets go of it. */
  readonly #held = new WeakMap<Conversation, Map<string, () => void>>()

  constructor(most: number, find: (uri: string) => UpstreamPlace | undefined) {
    this.#most = most
    this.#find = find
  }

  readonly layer: Layer = {
    // Behind all that may refuse it.
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

  /** The slot is released again where the subscription fails. */
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

  /** It lasts as long as it is listened. */
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

  /** What one conversation watches; all of it is released when the conversation ends. */
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

  #letGo(conversation: Conversation, uri: string): void {
    const held = this.#held.get(conversation)
    held?.get(uri)?.()
    held?.delete(uri)
  }

  /** Gives what lets go of it; throws where there is no room for it. */
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

  /** When the client for whom it counts stops watching, it counts for another one that still does. */
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
    // Somebody else goes on with it.
    watched.counts = next
    shares?.add(next)
  }
}

/** The refusal of a client that has its share. */
function full(upstream: string, shares: SlotShares, sharer: Sharer): Error {
  const held = shares.of(sharer)
  const where = upstream === '' ? 'that no server offers now' : `of the server ${quoted(upstream)}`
  return problem(
    'RATE_LIMIT_EXCEEDED',
    `You watch ${held} resources ${where}, which is your share: all clients together may watch ${shares.most} (shares.subscriptions)`,
    {
      retryAfter: 10_000,
      suggestion: 'Stop watching some of them, or ask whoever runs the gateway to raise shares.subscriptions',
      details: { upstream, held, limit: shares.most },
    },
  )
}
