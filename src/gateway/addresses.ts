/**
 * Which server an address belongs to. Servers are asked in the order of the file, always: whoever comes back, is added later or lists
 * something anew takes no address from one that stands before it, and one that is away keeps what it has.
 */

import { createHmac, randomBytes } from 'node:crypto'
import { callerAccount, Tally } from '../core/occupancy.ts'
import type { Exchange } from '../engine/exchange.ts'
import { parseTemplate, type Template } from '../features/mcp/resources/template.ts'
import type { GatewayCatalog } from './catalog.ts'
import { exposedUris, fitsEveryAddress, type Names, prefixedUri } from './names.ts'
import type { Offer } from './upstreams/offer.ts'

/** Where something is that clients know under some address. */
export interface UpstreamPlace {
  readonly upstream: string
  /** Its address there. */
  readonly own: string
}

/** A template of a server, with the text under which clients know it. */
interface KnownTemplate {
  readonly exposed: string
  readonly own: string
  readonly template: Template
}

/** What one server has. */
interface Held {
  readonly upstream: string
  readonly uris: ReadonlyMap<string, string>
  readonly templates: readonly KnownTemplate[]
  /** Those that others have too, as it writes them: what they fit is nobody's under that address, and no later server's either. */
  readonly contested: readonly Template[]
}

/** Finds the server and its own address for every resource address that clients use, and the other way round. */
export class Addresses {
  /** In the order of the file. */
  #held: readonly Held[] = []
  /** By the address that clients know. */
  #exact = new Map<string, UpstreamPlace>()
  /** By their text, those of the last look; undefined: it cannot be matched. */
  #parsed = new Map<string, Template | undefined>()
  /** Under which addresses resources and templates are shown. */
  uris: Names = new Map()
  templates: Names = new Map()

  /** What servers have now, or had when they went away, in the order of the file. */
  renew(offers: ReadonlyMap<string, Pick<Offer, 'resources' | 'templates'>>): void {
    const before = this.#parsed
    this.#parsed = new Map()
    const order = [...offers.keys()]
    const own = new Map([...offers].map(([upstream, { templates }]) => [upstream, templates.map(each => each.uriTemplate)]))
    this.templates = exposedUris(own)
    const held = order.map(upstream => this.#templatesOf(upstream, before))
    const contested = this.#contested(own, before)
    const uris = new Map([...offers].map(([upstream, { resources }]) => [upstream, resources.map(({ uri }) => uri)]))
    const earlier = new Map(
      order.map((upstream, at) => {
        const fit = held.slice(0, at).flatMap(known => known.map(({ template }) => template))
        return [upstream, [...fit, ...order.slice(0, at).flatMap(name => contested.get(name) ?? [])]]
      }),
    )
    this.uris = exposedUris(uris, (upstream, uri) => fits(earlier.get(upstream) ?? [], uri))
    this.#held = order.map((upstream, at) => ({
      upstream,
      uris: this.uris.get(upstream) ?? new Map<string, string>(),
      templates: held[at] ?? [],
      contested: contested.get(upstream) ?? [],
    }))
    this.#exact = new Map()
    for (const { upstream, uris: known } of this.#held)
      for (const [uri, exposed] of known) if (!this.#exact.has(exposed)) this.#exact.set(exposed, { upstream, own: uri })
  }

  /** The server that answers for an address, whether it is there now or not; undefined where none does. */
  find(uri: string): UpstreamPlace | undefined {
    const exact = this.#exact.get(uri)
    if (exact !== undefined) return exact
    for (const { upstream, uris, templates, contested } of this.#held) {
      const found = matching(templates, uri)
      if (found !== undefined) return { upstream, own: uri.slice(found.exposed.length - found.own.length) }
      // Several list it, so that it is nobody's under this address: no template of another one gets it either.
      if (uris.has(uri) || fits(contested, uri)) return undefined
    }
    return undefined
  }

  /** The address under which clients reach what a server calls so; undefined where there is none. */
  of(upstream: string, own: string): string | undefined {
    const listed = this.uris.get(upstream)?.get(own)
    if (listed !== undefined) return listed
    const held = this.#held.find(each => each.upstream === upstream)
    for (const { exposed, own: text, template } of held?.templates ?? []) {
      const front = exposed.slice(0, exposed.length - text.length)
      // Under it another server may answer that stands before this one.
      if (template.match(`${front}${own}`) !== undefined && this.find(`${front}${own}`)?.upstream === upstream)
        return `${front}${own}`
    }
    return undefined
  }

  /** The templates of a server that can be matched. */
  #templatesOf(upstream: string, before: ReadonlyMap<string, Template | undefined>): readonly KnownTemplate[] {
    const known: KnownTemplate[] = []
    for (const [own, exposed] of this.templates.get(upstream) ?? []) {
      const template = this.#parse(exposed, before)
      if (template !== undefined) known.push({ exposed, own, template })
    }
    return known
  }

  /** By server, the templates that another one has under the same text. Which leave the scheme open are nobody's way to an address. */
  #contested(
    own: ReadonlyMap<string, readonly string[]>,
    before: ReadonlyMap<string, Template | undefined>,
  ): ReadonlyMap<string, readonly Template[]> {
    const counts = new Map<string, number>()
    for (const texts of own.values()) for (const text of new Set(texts)) counts.set(text, (counts.get(text) ?? 0) + 1)
    const contested = (text: string): boolean => (counts.get(text) ?? 0) > 1 && !fitsEveryAddress(text)
    const parsedOf = (text: string): readonly Template[] => [this.#parse(text, before)].filter(each => each !== undefined)
    return new Map([...own].map(([upstream, texts]) => [upstream, texts.filter(contested).flatMap(parsedOf)]))
  }

  /** Templates of the last look are not parsed again. */
  #parse(text: string, before: ReadonlyMap<string, Template | undefined>): Template | undefined {
    const template = before.has(text) ? before.get(text) : parsed(text)
    this.#parsed.set(text, template)
    return template
  }
}

function fits(templates: readonly Template[], uri: string): boolean {
  return templates.some(template => template.match(uri) !== undefined)
}

function matching(templates: readonly KnownTemplate[], uri: string): KnownTemplate | undefined {
  return templates.find(({ template }) => template.match(uri) !== undefined)
}

/** Undefined for what is no template: it is listed, but nothing is found by it. */
function parsed(text: string): Template | undefined {
  try {
    return parseTemplate(text)
  } catch {
    return undefined
  }
}

// Addresses that servers give their callers inside results. They are told under those that clients know here, and what stands in no
// list is remembered for whoever was told, so that it is read where it comes from. Callers of whom nothing is known are told apart by
// the address alone: what they are told begins with a secret.

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

/** Remembers, per caller, addresses that servers gave in results and that no list holds. */
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

  /** As its server writes it where that names nothing else here, else with a prefix. */
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
