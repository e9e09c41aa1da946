/**
 * Subscriptions of those who poll, and want to name by an id what they poll for. They lie in the store, so that any process
 * answers the next poll; whoever asks for nothing for long is forgotten.
 */
import { canonicalJson, digestText } from '../../../core/digest.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { put, remove, type Store } from '../../../stores/store.ts'
import type { GrantedSubscription } from './subscribe-request.ts'

interface PollSubscriptionsParts {
  readonly opened: Store
  /** The server's name. */
  readonly name: string
  readonly clock: { now(): number }
  readonly settings: { readonly perCaller: number }
}

/** What is polled for under an id. */
export interface PollSubscription {
  readonly events: readonly string[]
  readonly filter?: Params | undefined
  /** Where it began. */
  readonly cursor: string
  /** Milliseconds since the epoch. */
  readonly expires: number
}

const idleMs = 3_600_000

export class PollSubscriptions {
  readonly #parts: PollSubscriptionsParts

  constructor(parts: PollSubscriptionsParts) {
    this.#parts = parts
  }

  /** Why it cannot be; undefined where it is kept. */
  async keep(owner: string, { wish, expires }: GrantedSubscription, cursor: string): Promise<string | undefined> {
    const { opened, settings } = this.#parts
    const said = { events: [...wish.events].sort(), ...(wish.filter === undefined ? {} : { filter: wish.filter }) }
    const before = await this.find(owner, wish.id)
    if (before !== undefined && canonicalJson({ ...before, cursor, expires }) !== canonicalJson({ ...said, cursor, expires }))
      return `You have another subscription with the id "${clip(wish.id)}"; choose another id, or end that one first`
    const held = await opened.scan(this.#prefix(owner), { limit: settings.perCaller })
    if (before === undefined && held.length >= settings.perCaller)
      return `You have ${settings.perCaller} event subscriptions, which is the limit (events.perCaller); end one, or ask for more events in one`
    await this.#write(owner, wish.id, { ...said, cursor, expires })
    return undefined
  }

  /** Undefined where there is none, or none any more. A look is a use. */
  async find(owner: string, id: string): Promise<PollSubscription | undefined> {
    const { opened, clock } = this.#parts
    const entry = await opened.get(await this.#key(owner, id))
    const found: unknown = entry === undefined ? undefined : JSON.parse(entry.value)
    if (!isRecord(found)) return undefined
    // Written by this package, into a store that is its own.
    const polled = found as unknown as PollSubscription
    if (polled.expires <= clock.now()) return undefined
    if ((entry?.expires ?? 0) - clock.now() < idleMs / 2) await this.#write(owner, id, polled)
    return polled
  }

  async forget(owner: string, id: string): Promise<void> {
    await this.#parts.opened.commit([remove(await this.#key(owner, id))])
  }

  async #write(owner: string, id: string, polled: PollSubscription): Promise<void> {
    const { opened, clock } = this.#parts
    const ttl = Math.min(idleMs, polled.expires - clock.now())
    if (ttl > 0) await opened.commit([put(await this.#key(owner, id), JSON.stringify(polled), { ttl })])
  }

  #prefix(owner: string): string {
    return `event-polls/${this.#parts.name}/${owner}/`
  }

  /** Ids are whatever clients like. */
  async #key(owner: string, id: string): Promise<string> {
    return this.#prefix(owner) + (await digestText(id)).slice(0, 22)
  }
}
