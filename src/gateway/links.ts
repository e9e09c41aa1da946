/**
 * Addresses that servers give their callers inside results. They are told under those that clients know here, and what stands in no
 * list is remembered for whoever was told, so that it is read where it comes from.
 */
import type { Exchange } from '../engine/exchange.ts'
import type { Place } from './addresses.ts'
import type { Catalog } from './catalog.ts'
import { prefixedUri } from './names.ts'

/** Addresses that one caller was told, and callers that are remembered. */
const mostOfOne = 1_000
const mostCallers = 1_000

export class Links {
  readonly #catalog: Pick<Catalog, 'address' | 'resource'>
  /** By caller, who longest was told nothing first. */
  readonly #told = new Map<object | string, Map<string, Place>>()

  constructor(catalog: Pick<Catalog, 'address' | 'resource'>) {
    this.#catalog = catalog
  }

  /** The address under which this caller can read what the upstream calls so. */
  address(upstream: string, own: string, exchange: Exchange): string {
    const listed = this.#catalog.address(upstream, own)
    if (listed !== undefined) return listed
    const told = this.find(own, exchange)
    const taken = this.#catalog.resource(own) !== undefined || (told !== undefined && told.upstream !== upstream)
    const shown = taken ? prefixedUri(upstream, own) : own
    this.#keep(callerOf(exchange), shown, { upstream, own })
    return shown
  }

  /** What this caller was told of. */
  find(uri: string, exchange: Exchange): Place | undefined {
    return this.#told.get(callerOf(exchange))?.get(uri)
  }

  /** Whoever is told much loses what it was told itself, and nobody else's. */
  #keep(caller: object | string, uri: string, place: Place): void {
    const own = this.#told.get(caller) ?? new Map<string, Place>()
    renew(this.#told, caller, own, mostCallers)
    renew(own, uri, place, mostOfOne)
  }
}

/** Puts it last, and lets go of the first where there are too many. */
function renew<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > most && oldest !== undefined) map.delete(oldest)
}

/** What one was told is nobody else's to read. Only of requests without a token, session or connection nothing says whose they are. */
function callerOf({ caller, conversation }: Exchange): object | string {
  return caller.principal?.id ?? conversation.session ?? conversation.connection ?? ''
}
