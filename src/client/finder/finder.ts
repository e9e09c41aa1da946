/**
 * `createFinder`: finds servers for a capability, first in local manifests and connected servers, then in registries and
 * catalogs that the host allows. It never connects or installs anything: that is up to the host, and every candidate names its
 * source.
 */
import { type Clock, type Duration, toMilliseconds } from '../../core/clock.ts'
import { checkOptions, type KindsOf } from '../../core/options.ts'
import { importManifest, readManifest } from '../../features/reliability/manifest/client.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { OutboundOptions } from '../../transports/outbound/outbound.ts'
import type { Client } from '../client.ts'
import type { Candidate, createSearch, Found, KnownServer, Recommender } from './search.ts'

/** Where a finder searches, and which sources it trusts. */
export interface FinderOptions {
  /** Manifests of servers that the host knows, as documents. Default: none. */
  readonly manifests?: readonly unknown[]
  /** Connected servers, which are asked for recommendations. Default: none. */
  readonly servers?: readonly Recommender[]
  /** Registries with the official API (`/v0.1/servers`). Default: none, so that no query leaves this machine. */
  readonly registries?: readonly string[]
  /** Sites whose `/.well-known/mcp/catalog.json` is read. Default: none. */
  readonly catalogs?: readonly string[]
  /** Addresses of servers whose card (`…/server-card`) is read. Default: none. */
  readonly cards?: readonly string[]
  /**
   * Trusted sources: connections in `servers`, addresses from above, and names of servers. Servers choose their own names, so a
   * name that two of `servers` share is not trusted. Default: none.
   */
  readonly trusted?: readonly (string | Recommender)[]
  /** How long answers are cached. Default 5 min. */
  readonly ttl?: Duration
  /** Rules for requests to other machines: see the guide on hardening. Default: public https addresses only. */
  readonly outbound?: OutboundOptions
  /** For tests: the time. Default: the real one. */
  readonly clock?: Clock
}

/** The options of one search. */
export interface FindOptions {
  /** The most candidates, 1 to 100. Default 10. */
  readonly limit?: number
  /** Whether to ask registries, catalogs and cards if local sources are not enough. Default true. */
  readonly remote?: boolean
  /** Cancels the search. */
  readonly signal?: AbortSignal
}

/** Finds servers for a capability; made by `createFinder`. */
export interface Finder {
  /** Searches. The best candidates come first, each server once. No candidate is not an error. */
  find(capability: string, options?: FindOptions): Promise<Found>
  /** Compares a candidate with what the server says about itself, once the host has connected to it. */
  check(candidate: Candidate, client: Pick<Client, 'server'>): Candidate
}

const kinds: KindsOf<FinderOptions> = {
  manifests: 'list',
  servers: 'list',
  registries: 'list',
  catalogs: 'list',
  cards: 'list',
  trusted: 'list',
  ttl: 'any',
  outbound: 'object',
  clock: 'object',
}

const wishLength = 1_000

/**
 * Creates a finder, which searches manifests, connected servers, registries, catalogs and server cards for a capability. It never
 * connects to what it finds.
 * @example const { candidates } = await createFinder({ servers: [mcp] }).find('design mockup')
 */
export function createFinder(options: FinderOptions = {}): Finder {
  checkOptions('createFinder', options, kinds)
  options.manifests?.forEach(readManifest)
  const ttlMs = toMilliseconds(options.ttl ?? '5m', 'ttl')
  let loading: Promise<ReturnType<typeof createSearch>> | undefined
  return {
    find: async (capability, { limit = 10, remote = true, signal } = {}) => {
      const wish = checkedWish(capability)
      if (!(Number.isSafeInteger(limit) && limit >= 1 && limit <= 100))
        throw new TypeError('limit must be a whole number from 1 to 100')
      loading ??= import('./search.ts').then(search =>
        search.createSearch(options, (options.manifests ?? []).map(knownServer), ttlMs),
      )
      return (await loading)(wish, limit, remote, signal)
    },
    check: (candidate, { server }) => checkedAgainst(candidate, server),
  }
}

/** What the search uses of a manifest. */
function knownServer(manifest: unknown): KnownServer {
  const { tools, about } = importManifest(manifest)
  const words = tools.snapshot.entries.map(({ name, description = '' }) => `${name} ${description}`)
  return { server: about.server, tools: words, recommendations: about.recommendations ?? [] }
}

function checkedWish(capability: string): string {
  if (typeof capability === 'string' && /[\p{L}\p{N}]/u.test(capability) && capability.length <= wishLength) return capability
  throw new TypeError(`find needs the capability in words, at most ${wishLength} characters, such as find('design mockup')`)
}

/** Registries name servers as `com.example/tracker`; most servers report only the last part. */
function checkedAgainst(candidate: Candidate, server: Client['server']): Candidate {
  const { name, version, warnings } = candidate
  const said: string[] = []
  if (server === undefined) said.push('The server does not report its name and version')
  else {
    const short = name.slice(name.lastIndexOf('/') + 1)
    if (server.name !== name && server.name !== short)
      said.push(`The recommended server is named "${clip(name)}", but this one reports the name "${clip(server.name)}"`)
    if (version !== undefined && server.version !== version)
      said.push(`Version ${clip(version)} was recommended, but the server reports version ${clip(server.version)}`)
  }
  return { ...candidate, warnings: [...warnings, ...said] }
}
