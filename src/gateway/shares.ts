/**
 * Room at one server that all clients of a gateway share: to that server they are one caller, with the limits of one. A client has at
 * most as much as it leaves free, so that whoever comes next finds room, however much one of them asks for.
 */
import { callerAccount, Tally } from '../core/occupancy.ts'
import type { Caller } from '../jsonrpc/connection.ts'

/** Room at each server, for all clients together. One client has at most as much of it as it leaves free: alone, half. */
export interface ShareOptions {
  /** Calls under way at one server, those included whose callers are asked something. Default 64, which is what servers of this package take. */
  readonly calls?: number
  /** Calls that wait for their turn at a server that works for one caller at a time. Default 1,000. */
  readonly waiting?: number
  /** Resources that are watched at one server. Default 1,000, which is what servers of this package take. */
  readonly subscriptions?: number
}

export const defaultShares: Required<ShareOptions> = { calls: 64, waiting: 1_000, subscriptions: 1_000 }

export function sharesOf(options: ShareOptions = {}): Required<ShareOptions> {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(defaultShares, name))
      throw new TypeError(`shares.${name} is not known: there is ${Object.keys(defaultShares).join(', ')}`)
    if (!(Number.isSafeInteger(value) && value >= 2))
      throw new TypeError(`shares.${name} is ${String(value)}: give a whole number of at least 2`)
  }
  return { ...defaultShares, ...options }
}

export type Sharer = object | string

/** Who shares: a user, with whatever OAuth clients, of which anybody can register many; else a pipe. Whoever comes over the network without a token cannot be told from others without one. */
export function sharerOf(caller: Caller): Sharer {
  const { principal, carrier, connection } = caller
  if (principal !== undefined) return callerAccount(caller)
  return carrier === 'stdio' || carrier === 'memory' ? connection : nameless
}

const nameless = {}

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

  leave(sharer: Sharer): void {
    if (this.#held.of(sharer) === 0) return
    this.#all--
    this.#held.add(sharer, -1)
  }
}
