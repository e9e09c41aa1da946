/** The search of a finder: what is at hand first, then strangers; what they answered is kept for a while. */

import { type Clock, realClock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { surestFirst } from '../../features/reliability/recommendations/client.ts'
import type { Candidate, Found } from './candidate.ts'
import type { FinderOptions } from './finder.ts'
import { type LocalOptions, ofManifest, ofServer, type Recommender } from './local.ts'
import { type Ask, finderFaultOf, joinedFindings, Remotes } from './remote.ts'

export type Search = (wish: string, limit: number, remote: boolean, signal: AbortSignal | undefined) => Promise<Found>

export function createSearch(options: FinderOptions, ttlMs: number): Search {
  const { clock = realClock, servers = [], outbound = {} } = options
  const known = new Set<unknown>(options.trusted)
  const local: LocalOptions = { ...outbound, trusted: name => known.has(name) }
  const manifests = (options.manifests ?? []).map(value => ofManifest(value, local))
  const remotes = remotesOf(options, local)
  const kept = new Kept<Found>(clock, ttlMs)
  const ask = (source: string, key: string, make: () => Promise<Found>): Promise<Found> =>
    kept.get(`${source} ${key}`, make).catch(error => ({ candidates: [], faults: [finderFaultOf(source, error)] }))

  return async (wish, limit, remote, signal) => {
    // What is asked is asked for all who want to know it: one who gives up leaves it to the others.
    const all = (asked: readonly Promise<Found>[]): Promise<Found[]> => unlessAborted(Promise.all(asked), signal)
    const named = servers.map((server, at) =>
      ask(server.server?.name ?? 'a server', `${at} ${limit} ${wish}`, () =>
        ofServer(server, wish, limit, { ...outbound, trusted: () => isTrusted(server, servers, known) }),
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
