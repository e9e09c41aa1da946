/**
 * The search of a finder: local sources first, then remote ones, whose answers are cached for a while. Separate from
 * `finder.ts`, so that it is loaded only by the first search.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import {
  type Confidence,
  catalogEntries,
  fit,
  fitting,
  type ListedServer,
  listedServerOf,
  type Recommended,
  recommendedOf,
  registryPage,
  surestFirst,
} from '../../features/reliability/recommendations/client.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { parse } from '../../jsonrpc/parse.ts'
import { judgeDestination } from '../../transports/outbound/destination.ts'
import { createOutbound, type OutboundOptions } from '../../transports/outbound/outbound.ts'
import type { Client } from '../client.ts'
import type { FinderOptions } from './finder.ts'

/** One search: the query, the most candidates, and whether remote sources are asked. */
type Search = (wish: string, limit: number, remote: boolean, signal: AbortSignal | undefined) => Promise<Found>

/** Makes the search. `known`: the servers of local manifests. */
export function createSearch(options: FinderOptions, known: readonly KnownServer[], ttlMs: number): Search {
  const { clock = realClock, servers = [], outbound = {} } = options
  const trusted = new Set<unknown>(options.trusted)
  const local: SourceOptions = { ...outbound, trusted: name => trusted.has(name) }
  const manifests = known.map(server => ofManifest(server, local))
  const remotes = remotesOf(options, local)
  const stored = cachedFor(clock, ttlMs)
  const ask = (source: string, key: string, make: () => Promise<Found>): Promise<Found> =>
    stored(`${source} ${key}`, make).catch(error => ({ candidates: [], faults: [finderFaultOf(source, error)] }))

  return async (wish, limit, remote, signal) => {
    // Answers are shared by concurrent searches, so an aborted search only stops waiting.
    const all = (asked: readonly Promise<Found>[]): Promise<Found[]> => unlessAborted(Promise.all(asked), signal)
    const named = servers.map((server, at) =>
      ask(server.server?.name ?? 'a server', `${at} ${limit} ${wish}`, () =>
        ofServer(server, wish, limit, { ...outbound, trusted: () => isTrusted(server, servers, trusted) }),
      ),
    )
    const near = sorted(joinedFindings([...manifests.map(find => find(wish)), ...(await all(named))]))
    if (!remote || near.candidates.length >= limit) return first(near, limit)
    const far = await all(remotes.map(([source, askIt]) => ask(source, wish, () => askIt(wish))))
    return first(sorted(joinedFindings([near, ...far])), limit)
  }
}

/**
 * A connection cannot be forged, but a name can, since servers choose it. A name counts only if one server alone has it, and if
 * it is not a URL, which would name a registry or site.
 */
function isTrusted(server: Recommender, servers: readonly Recommender[], known: ReadonlySet<unknown>): boolean {
  if (known.has(server)) return true
  const name = server.server?.name
  if (name === undefined || !known.has(name) || URL.canParse(name)) return false
  return servers.filter(other => other.server?.name === name).length === 1
}

function remotesOf(options: FinderOptions, local: SourceOptions): readonly (readonly [string, Ask])[] {
  const { registries = [], catalogs = [], cards = [] } = options
  const remotes = new Remotes(local)
  return [
    ...registries.map(url => [url, remotes.registry(url)] as const),
    ...catalogs.map(url => [url, remotes.catalog(url)] as const),
    ...cards.map(url => [url, remotes.card(url)] as const),
  ]
}

/**
 * If several sources report a server, trusted ones win, whatever the confidence of the others; then the highest confidence.
 * Missing details come from the others.
 */
function sorted({ candidates: told, faults }: Found): Found {
  const candidates = told.toSorted((one, other) => Number(other.trusted) - Number(one.trusted))
  const vouchedFor = new Set(told.filter(({ trusted }) => trusted).map(({ name }) => name))
  const surest = surestFirst(
    candidates.filter(({ name, trusted }) => trusted || !vouchedFor.has(name)),
    ({ confidence }) => confidence,
    ({ name }) => name,
  )
  const complete = surest.map(candidate => {
    if (candidate.remotes.length > 0 || candidate.packages.length > 0) return candidate
    const more = candidates.find(({ name, remotes, packages }) => name === candidate.name && remotes.length + packages.length > 0)
    return more === undefined ? candidate : completed(candidate, more)
  })
  return { candidates: complete, faults }
}

/** Adds details of another source. An address is trusted only if its source is. */
function completed(candidate: Candidate, more: Candidate): Candidate {
  const { remotes, packages, title, description, version } = more
  return {
    ...candidate,
    title: candidate.title ?? title,
    description: candidate.description ?? description,
    version: candidate.version ?? version,
    remotes,
    packages,
    trusted: candidate.trusted && more.trusted,
    warnings: [...candidate.warnings, ...more.warnings],
  }
}

function first({ candidates, faults }: Found, limit: number): Found {
  return { candidates: candidates.slice(0, limit), faults }
}

/** The most answers that are kept. */
const mostStored = 256

/** Keeps answers for a while: asked for once, however many want them. What failed is asked for again. */
function cachedFor(clock: Clock, ttlMs: number): (key: string, make: () => Promise<Found>) => Promise<Found> {
  const entries = new Map<string, { readonly answer: Promise<Found>; readonly expires: number }>()
  return (key, make) => {
    const found = entries.get(key)
    if (found !== undefined && found.expires > clock.now()) return found.answer
    entries.delete(key)
    if (entries.size >= mostStored) entries.delete(entries.keys().next().value as string)
    const entry = { answer: make(), expires: clock.now() + ttlMs }
    entries.set(key, entry)
    entry.answer.catch(() => {
      if (entries.get(key) === entry) entries.delete(key)
    })
    return entry.answer
  }
}

// What is known without asking strangers: manifests at hand, and what connected servers recommend.

/** The part of a `Client` that a finder needs. */
export type Recommender = Pick<Client, 'recommend' | 'server'>

/** The rules for addresses, and which sources are trusted. */
interface SourceOptions extends OutboundOptions {
  readonly trusted: (name: string) => boolean
}

/** What a local manifest says about its server, and about servers that it recommends. */
export interface KnownServer {
  readonly server: { readonly name: string; readonly description?: string | undefined; readonly version: string }
  /** The names and descriptions of its tools. */
  readonly tools: readonly string[]
  readonly recommendations: Parameters<typeof fitting>[1]
}

function ofManifest({ server, tools, recommendations }: KnownServer, options: SourceOptions): (wish: string) => Found {
  const { name, description, version } = server
  const text = [name, description, ...tools].join(' ')
  const source: CandidateSource = { kind: 'manifest', name }
  return wish => {
    const confidence = fit(wish, text)
    // The host supplied the manifest, so its server is trusted.
    const own = confidence === undefined ? [] : [{ ...blank(name, confidence, source, true), description, version }]
    const others = fitting(wish, recommendations).map(recommendedOf)
    return { candidates: [...own, ...named(others, source, options)], faults: [] }
  }
}

async function ofServer(server: Recommender, wish: string, limit: number, options: SourceOptions): Promise<Found> {
  const source: CandidateSource = { kind: 'server', name: server.server?.name ?? '' }
  const recommended = await server.recommend(wish, { limit })
  return { candidates: named(recommended, source, options), faults: [] }
}

/** Candidates that a server recommends. They have no address yet; the page about them must pass the outbound rules. */
function named(recommended: readonly Recommended[], source: CandidateSource, options: SourceOptions): readonly Candidate[] {
  return recommended.map(({ server, confidence, registryUrl, authFlow }) => {
    const refused = registryUrl === undefined ? undefined : judgeDestination(registryUrl, options)
    const bad = refused instanceof Error
    return {
      ...blank(server, confidence, source, options.trusted(source.name)),
      authFlow,
      registryUrl: bad ? undefined : registryUrl,
      warnings: bad ? [refused.message] : [],
    }
  })
}

function blank(name: string, confidence: Confidence, source: CandidateSource, trusted: boolean): Candidate {
  const nothing = { title: undefined, description: undefined, version: undefined, registryUrl: undefined, authFlow: undefined }
  return { name, confidence, source, trusted, ...nothing, remotes: [], packages: [], warnings: [] }
}

// The results. A candidate is a description, not a connection: the host connects to it itself.

/** Who reported a candidate. */
interface CandidateSource {
  /** A local manifest, a connected server, a registry, the catalog of a site, or the card of a server. */
  readonly kind: 'manifest' | 'server' | 'registry' | 'catalog' | 'card'
  /** The name of the server, or the address. */
  readonly name: string
}

/** A server that may have the capability, and the source that reported it. */
export interface Candidate {
  /** The name of the server. */
  readonly name: string
  /** The name that people see, if the source states one. */
  readonly title: string | undefined
  /** What the server does, in the words of the source. */
  readonly description: string | undefined
  /** The version of the server, if the source states one. */
  readonly version: string | undefined
  /** How well the server fits the capability: `high`, `medium` or `low`. */
  readonly confidence: Confidence
  /** The source that reported it. */
  readonly source: CandidateSource
  /** Whether the option `trusted` names the source. If not, tell your user that the source is unknown. */
  readonly trusted: boolean
  /** Addresses of the server, as far as known. */
  readonly remotes: ListedServer['remotes']
  /** Packages to install to run it. */
  readonly packages: ListedServer['packages']
  /** A page about it, if known. */
  readonly registryUrl: string | undefined
  /** How to sign in, if known. */
  readonly authFlow: string | undefined
  /** What the user should know before deciding. */
  readonly warnings: readonly string[]
}

/** A source that failed. The results of the others are not affected. */
interface FinderFault {
  /** The name or address of the source. */
  readonly source: string
  /** What failed, in a sentence. */
  readonly reason: string
}

/** The candidates of a search, and the sources that failed. */
export interface Found {
  /** The candidates, best first, each server once. */
  readonly candidates: readonly Candidate[]
  /** The sources that failed. Empty if all of them answered. */
  readonly faults: readonly FinderFault[]
}

// Remote sources: registries, catalogs and cards, read through the outbound guard. Addresses that they name must pass it too.

/** The largest answer of a source. */
const answerBytes = 1024 * 1024
/** Words of a query that are searched for, pages per word, and cards per catalog. */
const most = { words: 3, pages: 3, cards: 16 } as const

/** Asks one source. Throws if the source as a whole fails. */
type Ask = (wish: string) => Promise<Found>

/** Reads remote sources. */
class Remotes {
  readonly #options: SourceOptions
  readonly #outbound: ReturnType<typeof createOutbound>

  constructor({ trusted, ...options }: SourceOptions) {
    this.#options = { trusted, ...options }
    this.#outbound = createOutbound({ maxBytes: answerBytes, ...options })
  }

  /** A registry with the official API below this address. */
  registry(base: string): Ask {
    return async wish => joinedFindings(await Promise.all(searched(wish).map(word => this.#search(base, word, wish))))
  }

  /** The catalog of a site, and the cards that it names. */
  catalog(site: string): Ask {
    return async wish => {
      const { href } = new URL('/.well-known/mcp/catalog.json', site)
      const fitting = catalogEntries(await this.#json(href)).filter(({ about }) => fit(wish, about) !== undefined)
      const source = { kind: 'catalog', name: site } as const
      const read = async ({ url = '', card }: (typeof fitting)[number]): Promise<Found> =>
        this.#told([listedServerOf(card ?? (await this.#json(url)))], wish, source)
      const cards = fitting
        .slice(0, most.cards)
        .map(entry => read(entry).catch(error => ({ candidates: [], faults: [finderFaultOf(entry.url ?? site, error)] })))
      return joinedFindings(await Promise.all(cards))
    }
  }

  /** The card of the server at this address. */
  card(server: string): Ask {
    return async wish => {
      const listed = listedServerOf(await this.#json(`${server.replace(/\/$/, '')}/server-card`))
      return this.#told([listed], wish, { kind: 'card', name: server })
    }
  }

  async #search(base: string, word: string, wish: string): Promise<Found> {
    const source = { kind: 'registry', name: base } as const
    const listed: ListedServer[] = []
    let skipped = 0
    let cursor: string | undefined
    for (let pages = 0; pages < most.pages; pages++) {
      const url = new URL(`${base.replace(/\/$/, '')}/v0.1/servers`)
      url.search = new URLSearchParams({ search: word, version: 'latest', limit: '50', ...(cursor && { cursor }) }).toString()
      const page = registryPage(await this.#json(url.href))
      listed.push(...page.servers)
      skipped += page.skipped
      cursor = page.next
      if (cursor === undefined) break
    }
    const { candidates, faults } = this.#told(listed, wish, source, 'low')
    const odd =
      skipped === 0 ? [] : [{ source: base, reason: `Skipped entries that are not valid server descriptions: ${skipped}` }]
    return { candidates, faults: [...faults, ...odd] }
  }

  async #json(url: string): Promise<unknown> {
    const response = await this.#outbound(url, { headers: { accept: 'application/json' } })
    if (!response.ok) throw new TypeError(`The registry answered with HTTP status ${response.status}`)
    return parse(await response.text())
  }

  /** Turns listed servers into candidates. `least`: the confidence of entries that match no whole word. */
  #told(listed: readonly ListedServer[], wish: string, source: CandidateSource, least?: Confidence): Found {
    const faults: FinderFault[] = []
    // Only a source on this machine may name addresses on this machine.
    const own = judgeDestination(source.name, this.#options)
    const rule = { ...this.#options, loopback: !(own instanceof Error) && own.loopback }
    const candidates = listed.flatMap((server): Candidate[] => {
      const { name, title, description, version, packages, deprecated } = server
      const fits = fit(wish, [name, title, description].join(' ')) ?? least
      if (fits === undefined) return []
      const remotes = server.remotes.filter(({ url }) => {
        const judged = judgeDestination(url, rule)
        if (judged instanceof Error) faults.push({ source: source.name, reason: `${clip(name)}: ${judged.message}` })
        return !(judged instanceof Error)
      })
      // A server whose only addresses are refused cannot be used.
      if (remotes.length === 0 && packages.length === 0 && server.remotes.length > 0) return []
      const warnings = deprecated ? ['The publisher has marked this server as deprecated. Look for another one'] : []
      const confidence = deprecated ? 'low' : fits
      const trusted = this.#options.trusted(source.name)
      return [{ ...blank(name, confidence, source, trusted), title, description, version, remotes, packages, warnings }]
    })
    return { candidates, faults }
  }
}

/** Registries match a single text against names, so only the longest words of the query are used. */
function searched(wish: string): readonly string[] {
  const words = [...new Set(wish.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]
  return words.sort((one, other) => other.length - one.length).slice(0, most.words)
}

function joinedFindings(found: readonly Found[]): Found {
  return { candidates: found.flatMap(each => each.candidates), faults: found.flatMap(each => each.faults) }
}

function finderFaultOf(source: string, error: unknown): FinderFault {
  return { source: clip(source), reason: clip(error instanceof Error ? error.message : String(error), 300) }
}
