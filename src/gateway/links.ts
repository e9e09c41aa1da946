/**
 * Addresses that servers give their callers inside results. They are told under those that clients know here, and what stands in no
 * list is remembered for whoever was told, so that it is read where it comes from.
 */
import type { Exchange } from '../engine/exchange.ts'
import type { Catalog } from './catalog.ts'
import { prefixedUri } from './names.ts'

/** Where something is that clients read under another address. */
export interface Place {
  readonly upstream: string
  readonly own: string
}

const most = 10_000

export class Links {
  readonly #catalog: Pick<Catalog, 'address' | 'resource'>
  readonly #told = new Map<string, Place>()

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
    this.#keep(keyOf(shown, exchange), { upstream, own })
    return shown
  }

  /** What this caller was told of. */
  find(uri: string, exchange: Exchange): Place | undefined {
    return this.#told.get(keyOf(uri, exchange))
  }

  #keep(key: string, place: Place): void {
    this.#told.delete(key)
    this.#told.set(key, place)
    const [oldest] = this.#told.keys()
    if (this.#told.size > most && oldest !== undefined) this.#told.delete(oldest)
  }
}

/** What one was told is nobody else's to read. */
function keyOf(uri: string, { caller, conversation }: Exchange): string {
  return `${caller.principal?.id ?? conversation.session ?? ''}\0${uri}`
}
