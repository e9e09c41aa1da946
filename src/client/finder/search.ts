/** The search of a finder: what is at hand first, then strangers; what they answered is kept for a while. */
import { type Clock, realClock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import {
  type CatalogEntry,
  type Confidence,
  catalogEntries,
  fit,
  fitting,
  type ListedServer,
  listedServerOf,
  type Recommended,
  type Remote,
  recommendedOf,
  registryPage,
  type ServerPackage,
  surestFirst,
  weaker,
} from '../../features/reliability/recommendations/client.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { parse } from '../../jsonrpc/parse.ts'
import { judgeDestination } from '../../transports/outbound/destination.ts'
import { createOutbound, type OutboundOptions } from '../../transports/outbound/outbound.ts'
import type { Client } from '../client.ts'
import type { FinderOptions } from './finder.ts'

/** Searches once: a wish, the most candidates, whether strangers are asked. */
export type Search = (wish: string, limit: number, remote: boolean, signal: AbortSignal | undefined) => Promise<Found>

/** Loaded by the first search. `known`: the servers of the manifests at hand. */
export function createSearch(options: FinderOptions, known: readonly KnownServer[], ttlMs: number): Search {
  const { clock = realClock, servers = [], outbound = {} } = options
  const trusted = new Set<unknown>(options.trusted)
  const local: LocalOptions = { ...outbound, trusted: name => trusted.has(name) }
  const manifests = known.map(server => ofManifest(server, local))
  const remotes = remotesOf(options, local)
  const kept = new Kept<Found>(clock, ttlMs)
  const ask = (source: string, key: string, make: () => Promise<Found>): Promise<Found> =>
    kept.get(`${source} ${key}`, make).catch(error => ({ candidates: [], faults: [finderFaultOf(source, error)] }))

  return async (wish, limit, remote, signal) => {
    // What is asked is asked for all who want to know it: one who gives up leaves it to the others.
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
 * A connection cannot be copied; a name can, for a server gives it to itself: it counts where one alone has it, and where it is no address,
 * by which registries and sites are named.
 */
function isTrusted(server: Recommender, servers: readonly Recommender[], known: ReadonlySet<unknown>): boolean {
  if (known.has(server)) return true
  const name = server.server?.name
  if (name === undefined || !known.has(name) || URL.canParse(name)) return false
  return servers.filter(other => other.server?.name === name).length === 1
}

function remotesOf(options: FinderOptions, local: LocalOptions): readonly (readonly [string, Ask])[] {
  const { registries = [], catalogs = [], cards = [] } = options
  const remotes = new Remotes(local)
  return [
    ...registries.map(url => [url, remotes.registry(url)] as const),
    ...catalogs.map(url => [url, remotes.catalog(url)] as const),
    ...cards.map(url => [url, remotes.card(url)] as const),
  ]
}

/**
 * Of a server that several tell of, those who are trusted count before those who are not, however sure these are; then the surest.
 * What he does not know is taken from the others.
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

/** An address is worth as much trust as whoever told it. */
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

/** Answers that are good for a while: asked for once, however many want them. What failed is asked for again. */
interface Entry<T> {
  readonly answer: Promise<T>
  readonly expires: number
}

class Kept<T> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #clock: Clock
  readonly #ttlMs: number
  readonly #max: number

  constructor(clock: Clock, ttlMs: number, max = 256) {
    this.#clock = clock
    this.#ttlMs = ttlMs
    this.#max = max
  }

  get(key: string, make: () => Promise<T>): Promise<T> {
    const found = this.#entries.get(key)
    if (found !== undefined && found.expires > this.#clock.now()) return found.answer
    this.#entries.delete(key)
    if (this.#entries.size >= this.#max) this.#entries.delete(this.#entries.keys().next().value as string)
    const entry = { answer: make(), expires: this.#clock.now() + this.#ttlMs }
    this.#entries.set(key, entry)
    entry.answer.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    })
    return entry.answer
  }
}

// What is known without asking strangers: manifests at hand, and what connected servers recommend.

/** Of a client what the finder needs of it. */
export type Recommender = Pick<Client, 'recommend' | 'server'>

interface LocalOptions extends OutboundOptions {
  readonly trusted: (name: string) => boolean
}

/** What a manifest at hand tells of its own server, and of those it recommends. */
export interface KnownServer {
  readonly server: { readonly name: string; readonly description?: string | undefined; readonly version: string }
  /** The names and descriptions of its tools. */
  readonly tools: readonly string[]
  readonly recommendations: Parameters<typeof fitting>[1]
}

function ofManifest({ server, tools, recommendations }: KnownServer, options: LocalOptions): (wish: string) => Found {
  const { name, description, version } = server
  const text = [name, description, ...tools].join(' ')
  const source: CandidateSource = { kind: 'manifest', name }
  return wish => {
    const confidence = fit(wish, text)
    // Whoever gave us the manifest knows the server.
    const own = confidence === undefined ? [] : [{ ...blank(name, confidence, source, true), description, version }]
    const others = fitting(wish, recommendations).map(recommendedOf)
    return { candidates: [...own, ...named(others, source, options)], faults: [] }
  }
}

async function ofServer(server: Recommender, wish: string, limit: number, options: LocalOptions): Promise<Found> {
  const source: CandidateSource = { kind: 'server', name: server.server?.name ?? '' }
  const recommended = await server.recommend(wish, { limit })
  return { candidates: named(recommended, source, options), faults: [] }
}

/** What a server names has no address yet; one to read about it must be one that may be read. */
function named(recommended: readonly Recommended[], source: CandidateSource, options: LocalOptions): readonly Candidate[] {
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

// A server that may be able to do what is wanted, and who says so. Words about it, no way into it: whoever wants it connects himself.

/** Who tells of a candidate. */
export interface CandidateSource {
  /** A manifest at hand, a connected server, a registry, a site's catalog, or a server's own card. */
  readonly kind: 'manifest' | 'server' | 'registry' | 'catalog' | 'card'
  /** The name of the server, or the address. */
  readonly name: string
}

/** A server that may have the capability, and who says so. */
export interface Candidate {
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly version: string | undefined
  readonly confidence: Confidence
  /** Who says so. */
  readonly source: CandidateSource
  /** Whether the option `trusted` names that source. Else it is the word of a stranger: show it as such. */
  readonly trusted: boolean
  /** Where it can be reached, as far as told. */
  readonly remotes: readonly Remote[]
  /** What would have to be installed to run it. */
  readonly packages: readonly ServerPackage[]
  /** Where it is described, if that was told. */
  readonly registryUrl: string | undefined
  /** How one gets in, if that was told. */
  readonly authFlow: string | undefined
  /** What the user should know before he decides. */
  readonly warnings: readonly string[]
}

/** A source that did not answer as it should: the others do all the same. */
export interface FinderFault {
  readonly source: string
  readonly reason: string
}

/** What a search found, and which sources failed. */
export interface Found {
  readonly candidates: readonly Candidate[]
  readonly faults: readonly FinderFault[]
}

// Reading registries, catalogs and cards, all through the outbound guard; addresses that they name must pass it too.

/** Answers are lists of descriptions; more than this is something else. */
const answerBytes = 1024 * 1024
/** Words of a wish that are searched for, pages of each, and cards of one catalog. */
const most = { words: 3, pages: 3, cards: 16 } as const

interface RemoteOptions extends OutboundOptions {
  readonly trusted: (name: string) => boolean
}

/** Asks one source for a wish. Throws where the source as a whole is at fault. */
type Ask = (wish: string) => Promise<Found>

class Remotes {
  readonly #options: RemoteOptions
  readonly #outbound: ReturnType<typeof createOutbound>

  constructor({ trusted, ...options }: RemoteOptions) {
    this.#options = { trusted, ...options }
    this.#outbound = createOutbound({ maxBytes: answerBytes, ...options })
  }

  /** A registry that has the official API, below this address. */
  registry(base: string): Ask {
    return async wish => {
      return joinedFindings(await Promise.all(searched(wish).map(word => this.#search(base, word, wish))))
    }
  }

  /** The catalog of a site, and the cards that it names. */
  catalog(site: string): Ask {
    return async wish => {
      const { href } = new URL('/.well-known/mcp/catalog.json', site)
      const fitting = catalogEntries(await this.#json(href)).filter(({ about }) => fit(wish, about) !== undefined)
      const source = { kind: 'catalog', name: site } as const
      const read = async ({ url = '', card }: CatalogEntry): Promise<Found> =>
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
    const odd = skipped === 0 ? [] : [{ source: base, reason: `${skipped} of its entries describe no server` }]
    return { candidates, faults: [...faults, ...odd] }
  }

  async #json(url: string): Promise<unknown> {
    const response = await this.#outbound(url, { headers: { accept: 'application/json' } })
    if (!response.ok) throw new TypeError(`It answered with status ${response.status}`)
    return parse(await response.text())
  }

  /** `least`: for those that fit by no whole word, but were found all the same. */
  #told(listed: readonly ListedServer[], wish: string, source: CandidateSource, least?: Confidence): Found {
    const faults: FinderFault[] = []
    // Only who is on this machine himself may lead there.
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
      // Who can be reached only where nobody may go is no candidate.
      if (remotes.length === 0 && packages.length === 0 && server.remotes.length > 0) return []
      const warnings = deprecated ? ['Its publisher has withdrawn it: look for another one'] : []
      const confidence = deprecated ? 'low' : weaker(fits, 'high')
      const trusted = this.#options.trusted(source.name)
      const about = { name, title, description, version, confidence, source, trusted, remotes, packages, warnings }
      return [{ ...about, registryUrl: undefined, authFlow: undefined }]
    })
    return { candidates, faults }
  }
}

/** Registries search names for one piece of text, and few names hold a sentence: the longest words of it say most. */
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
