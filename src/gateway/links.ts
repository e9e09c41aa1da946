/**
 * Addresses that servers give their callers inside results. They are told under those that clients know here, and what stands in no
 * list is remembered for whoever was told, so that it is read where it comes from. Callers of whom nothing is known are told apart by
 * the address alone: what they are told begins with a secret.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { callerAccount, Tally } from '../core/occupancy.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { UpstreamPlace } from './addresses.ts'
import type { GatewayCatalog } from './catalog.ts'
import { prefixedUri } from './names.ts'

/** Addresses that one caller was told, and callers that are remembered. */
const mostOfOne = 1_000
const mostCallers = 1_000

/** What one caller was told. */
interface Told {
  /** Whose share of the memory it takes. */
  readonly account: string
  /** Nothing says whose it is. */
  readonly nobodys: boolean
  readonly places: Map<string, UpstreamPlace>
}

export class Links {
  readonly #catalog: Pick<GatewayCatalog, 'address' | 'resource'>
  readonly #key = randomBytes(32)
  /** By caller, who longest was told nothing first. */
  readonly #told = new Map<object | string, Told>()
  readonly #accounts = new Tally<string>()

  constructor(catalog: Pick<GatewayCatalog, 'address' | 'resource'>) {
    this.#catalog = catalog
  }

  /** The address under which this caller can read what the upstream calls so. */
  address(upstream: string, own: string, exchange: Exchange): string {
    const listed = this.#catalog.address(upstream, own)
    if (listed !== undefined) return listed
    const shown = this.#shown(upstream, own, exchange)
    this.#keep(exchange, shown, { upstream, own })
    return shown
  }

  /** What this caller was told of. */
  find(uri: string, exchange: Exchange): UpstreamPlace | undefined {
    const caller = callerOf(exchange)
    if (caller !== undefined) return this.#told.get(caller)?.places.get(uri)
    // Perhaps it comes from another network than before: who knows the address was told.
    for (const { nobodys, places } of this.#told.values()) if (nobodys && places.has(uri)) return places.get(uri)
    return undefined
  }

  #shown(upstream: string, own: string, exchange: Exchange): string {
    if (callerOf(exchange) === undefined) return prefixedUri(upstream, own, this.#secret(upstream, own))
    const told = this.find(own, exchange)
    const taken = this.#catalog.resource(own) !== undefined || (told !== undefined && told.upstream !== upstream)
    return taken ? prefixedUri(upstream, own) : own
  }

  /** The same for all who are told the same, and to be had in no other way. */
  #secret(upstream: string, own: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([upstream, own]))
      .digest('hex')
      .slice(0, 32)
  }

  /** Whoever is told much loses what it was told itself, and nobody else's. */
  #keep(exchange: Exchange, uri: string, place: UpstreamPlace): void {
    const account = callerAccount(exchange.caller)
    const known = callerOf(exchange)
    const caller = known ?? `nobody ${account}`
    const before = this.#told.get(caller)
    const told = before ?? { account, nobodys: known === undefined, places: new Map<string, UpstreamPlace>() }
    if (before === undefined) this.#accounts.add(account, 1)
    this.#told.delete(caller)
    this.#told.set(caller, told)
    if (this.#told.size > mostCallers) this.#makeRoom()
    const { places } = told
    places.delete(uri)
    places.set(uri, place)
    const [oldest] = places.keys()
    if (places.size > mostOfOne && oldest !== undefined) places.delete(oldest)
  }

  /** Of the account that has most, the one who longest was told nothing. */
  #makeRoom(): void {
    let found: readonly [caller: object | string, account: string] | undefined
    for (const [caller, { account }] of this.#told)
      if (found === undefined || this.#accounts.of(account) > this.#accounts.of(found[1])) found = [caller, account]
    if (found === undefined) return
    this.#told.delete(found[0])
    this.#accounts.add(found[1], -1)
  }
}

/** What one was told is nobody else's to read. Undefined: a request without a token, session or connection, and nothing says whose it is. */
function callerOf({ caller, conversation }: Exchange): object | string | undefined {
  return caller.principal?.id ?? conversation.session ?? conversation.connection
}
