/** Reading registries, catalogs and cards, all through the outbound guard; addresses that they name must pass it too. */
import { type Confidence, fit, weaker } from '../../features/reliability/recommendations/client.ts'
import {
  type CatalogEntry,
  catalogEntries,
  type ListedServer,
  listedServerOf,
  registryPage,
} from '../../features/reliability/recommendations/listing.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { parse } from '../../jsonrpc/parse.ts'
import { judgeDestination } from '../../transports/outbound/destination.ts'
import { createOutbound, type OutboundOptions } from '../../transports/outbound/outbound.ts'
import type { Candidate, CandidateSource, FinderFault, Found } from './candidate.ts'

/** Answers are lists of descriptions; more than this is something else. */
const answerBytes = 1024 * 1024
/** Words of a wish that are searched for, pages of each, and cards of one catalog. */
const most = { words: 3, pages: 3, cards: 16 } as const

interface RemoteOptions extends OutboundOptions {
  readonly trusted: (name: string) => boolean
}

/** Asks one source for a wish. Throws where the source as a whole is at fault. */
export type Ask = (wish: string) => Promise<Found>

export class Remotes {
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

export function joinedFindings(found: readonly Found[]): Found {
  return { candidates: found.flatMap(each => each.candidates), faults: found.flatMap(each => each.faults) }
}

export function finderFaultOf(source: string, error: unknown): FinderFault {
  return { source: clip(source), reason: clip(error instanceof Error ? error.message : String(error), 300) }
}
