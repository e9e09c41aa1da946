/**
 * Builds manifests: collects what the server offers, writes one document per revision and audience, and caches it. Loaded when the
 * manifest is first requested.
 */
import { digest } from '../../../core/digest.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { requestAs, requestInternally } from '../../../engine/internal-calls.ts'
import { NS } from '../../../engine/method.ts'
import { type CacheHint, ListPage } from '../../../engine/paging.ts'
import type { Side } from '../../../engine/plan.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { type Revision, stepsDown, type Wire } from '../../../revisions/index.ts'
import { ratesPort } from '../../mcp/rates/messages.ts'
import type { ReadResourceResult } from '../../mcp/resources/messages.ts'
import { listTools, type Tool, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort, type WireEventType } from '../events/messages.ts'
import { permissionsPort } from '../permissions/messages.ts'
import { recommendationsPort } from '../recommendations/messages.ts'
import {
  entryOf,
  extensionTokens,
  getManifest,
  manifestExtension,
  manifestUri,
  manifestVersion,
  type WireManifest,
  type WireManifestResult,
  type WireManifestTool,
} from './messages.ts'
import type { ManifestOptions } from './server.ts'

/** What documents are made of: the server's features, and the options of the manifest. */
interface DocumentParts {
  readonly kit: ServerKit
  readonly options: ManifestOptions
  readonly cache: CacheHint
  /** The manifest's own side. */
  readonly own: Side
  /** Describes the offered events for a revision. */
  readonly describe: (revision: Revision) => readonly WireEventType[]
}

/** A finished document. */
type BuiltDocument = Awaited<ReturnType<typeof built>>

// Serialised documents, by manifest.
const texts = new WeakMap<object, string>()

/** The manifests of a server: one for callers that see all tools, and individual ones for others. */
export class Documents {
  readonly #parts: DocumentParts

  constructor(parts: DocumentParts) {
    this.#parts = parts
  }

  /** The manifest for callers that see all tools. */
  whole(revision: Revision): Promise<BuiltDocument> {
    return this.#stored(revision).coming
  }

  /** Its revision, if it is already built. */
  known(revision: Revision): string | undefined {
    return this.#stored(revision).built?.revision
  }

  /** Answers `manifest/get`. Changed counters are no reason to send the whole document again. */
  async answer(exchange: Exchange): Promise<unknown> {
    const { built, manifest, cache } = await this.#of(exchange)
    const { revision } = built
    const isCurrent = exchange.params['if_revision'] === revision
    if (manifest === built.manifest) return isCurrent ? { not_modified: true, revision, ...cache } : built.page
    const { rate_limits } = manifest
    return isCurrent ? { not_modified: true, revision, rate_limits, ...cache } : { revision, manifest, ...cache }
  }

  /** The manifest as a resource. */
  async contents(exchange: Exchange): Promise<ReadResourceResult> {
    const { built, manifest, cache } = await this.#of(exchange)
    const _meta = { [manifestExtension]: { revision: built.revision } }
    const entry = { uri: manifestUri, mimeType: 'application/json', text: JSON.stringify(manifest), _meta }
    return { contents: [entry], ...cache }
  }

  /** The manifest for a plain HTTP request, always complete. */
  async text(caller: Caller) {
    const capabilities = { extensions: { [manifestExtension]: {} } }
    const result = await requestAs(this.#parts.kit.engine(), getManifest, {}, caller, capabilities)
    const { manifest, revision, ttlMs, cacheScope } = result as WireManifestResult
    const text = texts.get(manifest) ?? JSON.stringify(manifest)
    texts.set(manifest, text)
    return { text, tag: revision, maxAgeMs: ttlMs, cacheScope }
  }

  /** The manifest for a caller, and how it may be cached. */
  async #of(exchange: Exchange) {
    const { kit, options, cache: shared } = this.#parts
    const { revision } = exchange.peer
    const isFiltered = kit.filtered()
    const counts = options.counters === true
    // A personal document must not be shared between callers.
    const cache: CacheHint = isFiltered || counts ? { ttlMs: shared.ttlMs, cacheScope: 'private' } : shared
    const built = isFiltered ? await this.#only(revision, await visibleTools(exchange), cache) : await this.whole(revision)
    const { manifest } = built
    if (!counts) return { built, manifest, cache }
    const rate_limits = { ...manifest.rate_limits, ...countersOf(kit, exchange) }
    return { built, manifest: { ...manifest, rate_limits }, cache }
  }

  /** The manifest for a caller that sees only these tools. */
  #only(revision: Revision, tools: readonly Tool[], cache: CacheHint): Promise<BuiltDocument> {
    const { catalog } = this.#parts.kit.port(toolsPort)
    const offered = tools.map(tool => ({ ...catalog.get(tool.name), tool }))
    return built(manifestOf(this.#parts, revision, offered), cache)
  }

  /** A cached document: pending, then finished. */
  #stored(revision: Revision) {
    const { kit, cache } = this.#parts
    const current = kit.port(toolsPort).catalog.snapshot
    // Extensions and events can change independently of the tools.
    const key = `manifest ${revision.id} ${kit.port(eventsPort).version()} ${extensionsOf(this.#parts, revision).join()}`
    return current.memo(key, () => {
      const coming = built(manifestOf(this.#parts, revision, current.entries), cache)
      const stored = { coming, built: undefined as BuiltDocument | undefined }
      coming.then(
        done => {
          stored.built = done
        },
        () => {},
      )
      return stored
    })
  }
}

/** The extensions that all sides but the manifest itself declare at this revision. */
function extensionsOf({ kit, own }: DocumentParts, revision: Revision): readonly string[] {
  const declared = kit
    .sides()
    .filter(side => side !== own)
    .map(side => side.capabilities?.(revision) ?? {})
  const places = declared.flatMap(({ extensions, experimental }) => [extensions, experimental])
  return places.flatMap(place => (isRecord(place) ? Object.keys(place) : []))
}

/** All pages of the tool list, as this caller sees them. */
async function visibleTools(exchange: Exchange): Promise<readonly Tool[]> {
  const all: Tool[] = []
  let cursor: string | undefined
  do {
    const page = await requestInternally(exchange, listTools, cursor === undefined ? {} : { cursor })
    all.push(...page.tools)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return all
}

/** What is left of a caller's rate limit. */
function countersOf({ clock, port }: ServerKit, exchange: Exchange): NonNullable<WireManifest['rate_limits']> {
  const left = port(ratesPort).callsLeft(exchange)
  if (left === undefined) return {}
  return { remaining: Math.floor(left.tokens), resets_at: new Date(clock.now() + left.fullInMs).toISOString() }
}

/** An offered tool, with facts that its `_meta` does not contain. */
interface OfferedTool {
  readonly tool: Tool
  readonly facts?: { readonly rate?: { readonly perSecond: number } }
}

// The revision is the digest of the document.
async function built(manifest: WireManifest, cache: CacheHint) {
  const revision = `sha256:${await digest(manifest)}`
  const result = { revision, manifest, ...cache }
  // The response is serialised once.
  return { revision, manifest, page: new ListPage(result, () => JSON.stringify(result)) }
}

// Assembles the document; empty sections are left out.
function manifestOf(parts: DocumentParts, revision: Revision, offered: readonly OfferedTool[]): WireManifest {
  const { kit, describe } = parts
  const tools = entriesOf(revision, offered)
  const events = describe(revision)
  const { callsPerMinute } = kit.port(ratesPort)
  const { listed: recommendations } = kit.port(recommendationsPort)
  return {
    manifest_version: manifestVersion,
    server: serverOf(parts, revision),
    ...given({ auth: authOf(parts, tools, events) }),
    tools,
    supported_extensions: tokensOf(extensionsOf(parts, revision)),
    ...(callsPerMinute === undefined ? {} : { rate_limits: { requests_per_minute: callsPerMinute } }),
    ...(recommendations.length === 0 ? {} : { recommendations }),
    ...(events.length === 0 ? {} : { events }),
  }
}

/** Schemas as this revision lists them, and all facts, even those that older revisions omit from their lists. */
function entriesOf(revision: Revision, offered: readonly OfferedTool[]): readonly WireManifestTool[] {
  const down = stepsDown(listTools.resultDown, revision)
  const canonical: Wire = { tools: offered.map(({ tool }) => tool) }
  const listed = down === undefined ? canonical : down(canonical)
  // The oldest dialect returns a bare array.
  const shown = (Array.isArray(listed) ? listed : listed['tools']) as readonly Tool[]
  return offered.map(({ tool, facts }, at) => entryOf(tool, shown[at], limitOf(facts?.rate)))
}

function limitOf(rate: { readonly perSecond: number } | undefined): Readonly<Record<string, unknown>> {
  return rate === undefined ? {} : { rate_limits: { requests_per_minute: Math.floor(rate.perSecond * 60) } }
}

const semver = /^\d+\.\d+\.\d+/

function serverOf({ kit, options }: DocumentParts, revision: Revision): WireManifest['server'] {
  const { info, spoken } = kit.engine()
  const { name, version, description, websiteUrl } = info
  // The draft dialect reports another wire's version, so all are listed.
  const all = [...spoken.requests, ...spoken.sessions]
  return {
    name,
    // The format requires three numbers; any other version is appended.
    version: semver.test(version) ? version : `0.0.0+${version}`,
    mcp_spec_version: revision.wire,
    mcp_spec_versions: all.map(({ wire }) => wire),
    ...given({ description, homepage: options.homepage ?? websiteUrl }),
    ...(all.some(({ batch }) => batch) ? { supports_batch: true } : {}),
  }
}

/** All scopes that tools or events need, described or not. */
function authOf(
  { kit, options }: DocumentParts,
  tools: readonly WireManifestTool[],
  events: readonly WireEventType[],
): WireManifest['auth'] {
  const { auth: methods, scopes: described = {} } = options
  const { sessionMs } = kit.port(permissionsPort)
  const sessionTtlSeconds = sessionMs && Math.floor(sessionMs / 1000)
  const grants = new Map<string, string[]>(Object.keys(described).map(scope => [scope, []]))
  for (const { name, required_scopes: needed = [] } of tools)
    for (const scope of needed) grants.set(scope, [...(grants.get(scope) ?? []), name])
  for (const scope of events.flatMap(({ required_scopes: needed = [] }) => needed)) grants.set(scope, grants.get(scope) ?? [])
  if (methods === undefined && sessionTtlSeconds === undefined && grants.size === 0) return undefined
  const scopes = [...grants].map(([name, unlocked]) => ({
    name,
    description: (Object.hasOwn(described, name) ? described[name] : undefined) ?? name,
    grants: unlocked,
  }))
  const listed = scopes.length === 0 ? undefined : scopes
  return given({ methods, scopes: listed, session_ttl_seconds: sessionTtlSeconds })
}

type Token = (typeof extensionTokens)[number]

/** Names of our extensions in the common format; some have none. */
const words: ReadonlyMap<string, readonly Token[]> = new Map([
  [`${NS}/streaming`, ['streaming', 'progress_notifications']],
  [`${NS}/idempotency`, ['idempotency']],
  [`${NS}/transactions`, ['transactions']],
  [`${NS}/state`, ['session_state']],
  [`${NS}/intent`, ['intent_hints']],
  [`${NS}/provenance`, ['provenance']],
  [`${NS}/confirmation`, ['human_in_the_loop']],
  [`${NS}/data-references`, ['data_references']],
  [`${NS}/events`, ['subscribe_notify']],
  [`${NS}/recommendations`, ['server_recommendations']],
  [`${NS}/problem`, ['structured_errors']],
  [`${NS}/media`, ['multimodal_signatures']],
])

function tokensOf(extensions: readonly string[]): readonly Token[] {
  const enabled = new Set(extensions.flatMap(id => words.get(id) ?? []))
  return extensionTokens.filter(token => enabled.has(token))
}
