/**
 * Maps resource addresses (URIs) between clients and upstreams: `Addresses` for resources and templates that upstreams list, `Links` for
 * addresses that appear only inside results. Upstreams have priority in the order of the config, whether they are connected or not, so
 * that an upstream which reconnects or changes its lists never takes an address from one before it.
 */

import { createHmac, randomBytes } from 'node:crypto'
import { callerAccount } from '../core/accounts.ts'
import { Tally } from '../core/occupancy.ts'
import type { Exchange } from '../engine/exchange.ts'
import { parseTemplate, type Template } from '../features/mcp/resources/template.ts'
import { distinct, hashOf, holdersOf } from '../host/servers/names.ts'
import type { GatewayCatalog } from './catalog.ts'
import type { Names } from './names.ts'
import type { Offer } from './upstreams/offer.ts'

/** The location of a resource whose exposed address clients use. */
export interface UpstreamPlace {
  readonly upstream: string
  /** The address that the upstream itself uses. */
  readonly own: string
}

/** A template of an upstream, with the text under which clients see it. */
interface KnownTemplate {
  readonly exposed: string
  readonly own: string
  readonly template: Template
}

/** The addresses of one upstream. */
interface UpstreamAddresses {
  readonly upstream: string
  readonly uris: ReadonlyMap<string, string>
  readonly templates: readonly KnownTemplate[]
  /** Templates that another upstream has too, in the upstream's own spelling. An address that they match belongs to no upstream. */
  readonly contested: readonly Template[]
}

/** Translates between the resource addresses that clients use and those of the upstreams. */
export class Addresses {
  /** In the order of the config. */
  #held: readonly UpstreamAddresses[] = []
  /** Listed resources by the address that clients use. */
  #exact = new Map<string, UpstreamPlace>()
  /** Parsed templates of the last `renew`, by their text; undefined for a text that cannot be parsed. */
  #parsed = new Map<string, Template | undefined>()
  /** For each upstream, the exposed address by its own address. */
  uris: Names = new Map()
  /** The same for templates. */
  templates: Names = new Map()

  /** Recomputes all addresses from the current lists, or the last known lists of upstreams that are down. Keys are in config order. */
  renew(offers: ReadonlyMap<string, Pick<Offer, 'resources' | 'templates'>>): void {
    const before = this.#parsed
    this.#parsed = new Map()
    const order = [...offers.keys()]
    const own = new Map([...offers].map(([upstream, { templates }]) => [upstream, templates.map(each => each.uriTemplate)]))
    this.templates = exposedUris(own)
    // Templates first: a resource gets a prefix where a template of an earlier upstream would match its address.
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

  /** The upstream that serves an address, connected or not; undefined where none does. */
  find(uri: string): UpstreamPlace | undefined {
    const exact = this.#exact.get(uri)
    if (exact !== undefined) return exact
    for (const { upstream, uris, templates, contested } of this.#held) {
      const found = templates.find(({ template }) => template.match(uri) !== undefined)
      if (found !== undefined) return { upstream, own: uri.slice(found.exposed.length - found.own.length) }
      // Several upstreams list this address, so none of them serves it without a prefix; a later template must not catch it either.
      if (uris.has(uri) || fits(contested, uri)) return undefined
    }
    return undefined
  }

  /** The address that clients use for an upstream's own address; undefined where there is none. */
  of(upstream: string, own: string): string | undefined {
    const listed = this.uris.get(upstream)?.get(own)
    if (listed !== undefined) return listed
    const held = this.#held.find(each => each.upstream === upstream)
    for (const { exposed, own: text, template } of held?.templates ?? []) {
      const front = exposed.slice(0, exposed.length - text.length)
      // An earlier upstream may answer for this address.
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

  /** By upstream, the templates that another upstream lists too. Templates without a fixed scheme are ignored: they are always prefixed. */
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

  /** Reuses the result of the last `renew` where there is one. */
  #parse(text: string, before: ReadonlyMap<string, Template | undefined>): Template | undefined {
    const template = before.has(text) ? before.get(text) : parsed(text)
    this.#parsed.set(text, template)
    return template
  }
}

/** Whether any of the templates matches. */
function fits(templates: readonly Template[], uri: string): boolean {
  return templates.some(template => template.match(uri) !== undefined)
}

/** Undefined for an invalid template: it is listed, but no address matches it. */
function parsed(text: string): Template | undefined {
  try {
    return parseTemplate(text)
  } catch {
    return undefined
  }
}

/**
 * Exposed addresses by upstream and own address. Where two upstreams share an address, the upstream's name goes before the scheme, with a
 * hash where two names are alike. An address that looks prefixed for another upstream, fits everything or is `taken` also gets one.
 */
export function exposedUris(
  offered: ReadonlyMap<string, Iterable<string>>,
  taken: (server: string, uri: string) => boolean = () => false,
): Names {
  const own = distinct(offered)
  const holders = holdersOf(own)
  const schemes = schemesOf(own.keys())
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, uris] of own) {
    // An address that starts like another upstream's prefix would be mistaken for it.
    const free = (uri: string): boolean =>
      holders.get(uri) === 1 && !isBorrowed(uri, server, schemes) && !fitsEveryAddress(uri) && !taken(server, uri)
    all.set(server, new Map(uris.map(uri => [uri, free(uri) ? uri : `${schemes.get(server)}+${uri}`])))
  }
  return all
}

/** Whether an address starts with the scheme prefix of another upstream. */
function isBorrowed(uri: string, server: string, schemes: ReadonlyMap<string, string>): boolean {
  const at = uri.indexOf('+')
  if (at <= 0 || at > uri.indexOf(':')) return false
  const front = uri.slice(0, at).toLowerCase()
  for (const [other, word] of schemes) if (other !== server && word === front) return true
  return false
}

/** Whether a template leaves the scheme open and so would match addresses of any upstream. */
function fitsEveryAddress(template: string): boolean {
  const at = template.indexOf('{')
  return at !== -1 && !template.slice(0, at).includes(':')
}

/** A unique scheme per upstream. Schemes start with a letter and ignore case. */
function schemesOf(servers: Iterable<string>): ReadonlyMap<string, string> {
  const words = [...servers].map(server => [server, scheme(server)] as const)
  const counted = new Map<string, number>()
  for (const [, word] of words) counted.set(word, (counted.get(word) ?? 0) + 1)
  return new Map(words.map(([server, word]) => [server, counted.get(word) === 1 ? word : `${word}-${hashOf(server)}`]))
}

/** A prefixed address for a resource that is in no list. `mark`: what makes it unique. */
function prefixedUri(server: string, uri: string, mark = hashOf(`${server}\0${uri}`)): string {
  return `${scheme(server)}-${mark}+${uri}`
}

/** An upstream's name as a URI scheme. */
function scheme(server: string): string {
  const word = server.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')
  return /^[a-z]/.test(word) ? word : `x-${word}`
}

// Links: addresses that upstreams return inside results. Clients get the address that works at the gateway. An address that is in no
// list is remembered for the caller that received it, so that this caller can read it. A caller without a token, session or connection
// cannot be recognised, so its addresses contain a secret instead.

/** Addresses remembered per caller. */
const mostOfOne = 1_000
/** Callers for which addresses are remembered. */
const mostCallers = 1_000

/** The addresses that one caller received. */
interface CallerAddresses {
  /** The account that is charged for the memory. */
  readonly account: string
  /** True where the caller cannot be identified. */
  readonly anonymous: boolean
  /** By the address that the caller received. */
  readonly places: Map<string, UpstreamPlace>
}

/** Remembers, per caller, addresses from results that are in no list. */
export class Links {
  readonly #catalog: Pick<GatewayCatalog, 'address' | 'resource'>
  /** Signs addresses for callers that cannot be identified. */
  readonly #key = randomBytes(32)
  /** By caller, least recently updated first. */
  readonly #told = new Map<object | string, CallerAddresses>()
  readonly #accounts = new Tally<string>()

  constructor(catalog: Pick<GatewayCatalog, 'address' | 'resource'>) {
    this.#catalog = catalog
  }

  /** The address under which this caller can read an upstream's resource. Remembers it where it is not listed. */
  address(upstream: string, own: string, exchange: Exchange): string {
    const listed = this.#catalog.address(upstream, own)
    if (listed !== undefined) return listed
    const shown = this.#shown(upstream, own, exchange)
    this.#keep(exchange, shown, { upstream, own })
    return shown
  }

  /** The resource behind an address that this caller received before. */
  find(uri: string, exchange: Exchange): UpstreamPlace | undefined {
    const caller = callerOf(exchange)
    if (caller !== undefined) return this.#told.get(caller)?.places.get(uri)
    // The caller may arrive from another network than before; it knows the secret in the address, so it received the address.
    for (const { anonymous, places } of this.#told.values()) if (anonymous && places.has(uri)) return places.get(uri)
    return undefined
  }

  /** The upstream's own address if it is not taken at the gateway, otherwise with a prefix. */
  #shown(upstream: string, own: string, exchange: Exchange): string {
    if (callerOf(exchange) === undefined) return prefixedUri(upstream, own, this.#secret(upstream, own))
    const told = this.find(own, exchange)
    const taken = this.#catalog.resource(own) !== undefined || (told !== undefined && told.upstream !== upstream)
    return taken ? prefixedUri(upstream, own) : own
  }

  /** The same for every caller, and not guessable without the key. */
  #secret(upstream: string, own: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([upstream, own]))
      .digest('hex')
      .slice(0, 32)
  }

  /** Records an address. At the limit a caller loses its own oldest address, never one of another caller. */
  #keep(exchange: Exchange, uri: string, place: UpstreamPlace): void {
    const account = callerAccount(exchange.caller)
    const known = callerOf(exchange)
    const caller = known ?? `nobody ${account}`
    const before = this.#told.get(caller)
    const told = before ?? { account, anonymous: known === undefined, places: new Map<string, UpstreamPlace>() }
    if (before === undefined) this.#accounts.add(account, 1)
    this.#told.delete(caller)
    this.#told.set(caller, told)
    if (this.#told.size > mostCallers) this.#freeCapacity()
    const { places } = told
    places.delete(uri)
    places.set(uri, place)
    const [oldest] = places.keys()
    if (places.size > mostOfOne && oldest !== undefined) places.delete(oldest)
  }

  /** Drops the least recently updated caller of the account that has the most callers. */
  #freeCapacity(): void {
    let found: readonly [caller: object | string, account: string] | undefined
    for (const [caller, { account }] of this.#told)
      if (found === undefined || this.#accounts.of(account) > this.#accounts.of(found[1])) found = [caller, account]
    if (found === undefined) return
    this.#told.delete(found[0])
    this.#accounts.add(found[1], -1)
  }
}

/** Identifies a caller. Undefined for a request without a token, session or connection. */
function callerOf({ caller, conversation }: Exchange): object | string | undefined {
  return caller.principal?.id ?? conversation.session ?? conversation.connection
}
