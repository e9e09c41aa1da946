/**
 * Builds manifests: collects what the server offers, writes one document per revision and audience, and caches it. Loaded when the
 * manifest is first requested.
 */
import type { Snapshot } from '../../../core/catalog.ts'
import { digest } from '../../../core/digest.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { requestAs, requestInternally } from '../../../engine/internal-calls.ts'
import { NS } from '../../../engine/method.ts'
import { type CacheHint, ListPage } from '../../../engine/paging.ts'
import type { Side } from '../../../engine/plan.ts'
import type { BesideEndpoint, ServerKit } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Implementation, type Revision, stepsDown, type Wire } from '../../../revisions/index.ts'
import { ratesPort } from '../../mcp/rates/messages.ts'
import { listTools, type Tool, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort, type WireEventType } from '../events/messages.ts'
import { permissionsPort } from '../permissions/messages.ts'
import { recommendationsPort, type WireRecommendation } from '../recommendations/messages.ts'
import {
  type AuthMethod,
  type ExtensionToken,
  entryOf,
  extensionTokens,
  getManifest,
  manifestExtension,
  manifestVersion,
  type WireAuth,
  type WireManifest,
  type WireManifestResult,
  type WireManifestTool,
  type WireRateLimits,
} from './messages.ts'
import type { ManifestOptions } from './server.ts'

/** The document for plain HTTP requests. */
type ManifestText = Awaited<ReturnType<NonNullable<BesideEndpoint['document']>['read']>>

/** Collects the inputs of the document from the server's features. */
export async function documentOf(
  kit: ServerKit,
  { auth, scopes, homepage }: ManifestOptions,
  cache: CacheHint,
  own: Side,
): Promise<DocumentParts> {
  const { info, spoken } = kit.engine()
  const tools = kit.port(toolsPort)
  const events = kit.port(eventsPort)
  const { sessionMs } = kit.port(permissionsPort)
  const { callsPerMinute } = kit.port(ratesPort)
  return {
    info,
    // The draft dialect reports another wire's version, so all are listed.
    spoken: [...spoken.requests, ...spoken.sessions],
    snapshot: () => tools.catalog.snapshot,
    extensions: (revision: Revision) => extensionsOf(kit.sides(), own, revision),
    homepage,
    methods: auth,
    scopes,
    sessionTtlSeconds: sessionMs && Math.floor(sessionMs / 1000),
    rateLimits: callsPerMinute === undefined ? undefined : { requests_per_minute: callsPerMinute },
    recommendations: kit.port(recommendationsPort).listed,
    events: { version: events.version, listed: await events.describing() },
    cache,
  }
}

/** The extensions that all sides but the manifest itself declare at this revision. */
function extensionsOf(sides: readonly Side[], own: Side, revision: Revision): readonly string[] {
  const declared = sides.filter(side => side !== own).map(side => side.capabilities?.(revision) ?? {})
  const places = declared.flatMap(({ extensions, experimental }) => [extensions, experimental])
  return places.flatMap(place => (isRecord(place) ? Object.keys(place) : []))
}

/** All pages of the tool list, as this caller sees them. */
export async function visibleTools(exchange: Exchange): Promise<readonly Tool[]> {
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
export function countersOf({ clock, port }: ServerKit, exchange: Exchange): WireRateLimits {
  const left = port(ratesPort).callsLeft(exchange)
  if (left === undefined) return {}
  return { remaining: Math.floor(left.tokens), resets_at: new Date(clock.now() + left.fullInMs).toISOString() }
}

// Serialised documents, by manifest.
const texts = new WeakMap<object, string>()

/** Reads the document for a plain HTTP request, always complete. */
export async function readDocument(engine: Engine, caller: Caller): Promise<ManifestText> {
  const capabilities = { extensions: { [manifestExtension]: {} } }
  const result = (await requestAs(engine, getManifest, {}, caller, capabilities)) as WireManifestResult
  const { manifest, revision, ttlMs, cacheScope } = result
  const text = texts.get(manifest) ?? JSON.stringify(manifest)
  texts.set(manifest, text)
  return { text, tag: revision, maxAgeMs: ttlMs, cacheScope }
}

/** An offered tool, with facts that its `_meta` does not contain. */
interface Offered {
  readonly tool: Tool
  readonly facts?: { readonly rate?: { readonly perSecond: number } }
}

/** The inputs of a document. */
export interface DocumentParts {
  readonly info: Implementation
  /** All revisions that are served. */
  readonly spoken: readonly Revision[]
  readonly snapshot: () => Snapshot<Offered>
  /** The declared extensions at a revision. */
  readonly extensions: (revision: Revision) => readonly string[]
  readonly homepage?: string | undefined
  readonly methods?: readonly AuthMethod[] | undefined
  /** Descriptions of scopes, by name. */
  readonly scopes?: Readonly<Record<string, string>> | undefined
  readonly sessionTtlSeconds?: number | undefined
  readonly rateLimits?: WireRateLimits | undefined
  readonly recommendations: readonly WireRecommendation[]
  /** The offered events. */
  readonly events: OfferedEvents
  readonly cache: CacheHint
}

interface OfferedEvents {
  /** Increases with each change. */
  version(): number
  listed(revision: Revision): readonly WireEventType[]
}

/** A finished document. */
export interface Built {
  readonly revision: string
  readonly manifest: WireManifest
  /** The response, serialised once. */
  readonly page: ListPage
}

/** A cached document: pending, then finished. */
interface Kept {
  readonly coming: Promise<Built>
  built: Built | undefined
}

/** The manifests of a server: one for callers that see all tools, and individual ones for others. */
export class Documents {
  readonly #parts: DocumentParts

  constructor(parts: DocumentParts) {
    this.#parts = parts
  }

  /** The manifest for callers that see all tools. */
  whole(revision: Revision): Promise<Built> {
    return this.#kept(revision).coming
  }

  /** Its revision, if it is already built. */
  known(revision: Revision): string | undefined {
    return this.#kept(revision).built?.revision
  }

  /** The manifest for callers that see only these tools. */
  async of(revision: Revision, tools: readonly Tool[], cache: CacheHint = this.#parts.cache): Promise<Built> {
    const { snapshot } = this.#parts
    const offered = new Map(snapshot().entries.map(entry => [entry.tool.name, entry]))
    const manifest = manifestOf(
      this.#parts,
      revision,
      tools.map(tool => ({ ...offered.get(tool.name), tool })),
    )
    return built(manifest, cache)
  }

  #kept(revision: Revision): Kept {
    const { snapshot, extensions, events, cache } = this.#parts
    const current = snapshot()
    // Extensions and events can change independently of the tools.
    const key = `manifest ${revision.id} ${events.version()} ${extensions(revision).join()}`
    return current.memo(key, () => {
      const kept: Kept = { coming: built(manifestOf(this.#parts, revision, current.entries), cache), built: undefined }
      kept.coming.then(
        done => {
          kept.built = done
        },
        () => {},
      )
      return kept
    })
  }
}

// The revision is the digest of the document.
async function built(manifest: WireManifest, cache: CacheHint): Promise<Built> {
  const revision = `sha256:${await digest(manifest)}`
  const result = { revision, manifest, ...cache }
  return { revision, manifest, page: new ListPage(result, () => JSON.stringify(result)) }
}

// Assembles the document; empty sections are left out.
function manifestOf(parts: DocumentParts, revision: Revision, offered: readonly Offered[]): WireManifest {
  const tools = entriesOf(revision, offered)
  const events = parts.events.listed(revision)
  const auth = authOf(parts, tools, events)
  const { rateLimits, recommendations } = parts
  return {
    manifest_version: manifestVersion,
    server: serverOf(parts, revision),
    ...(auth === undefined ? {} : { auth }),
    tools,
    supported_extensions: tokensOf(parts.extensions(revision)),
    ...(rateLimits === undefined ? {} : { rate_limits: rateLimits }),
    ...(recommendations.length === 0 ? {} : { recommendations }),
    ...(events.length === 0 ? {} : { events }),
  }
}

/** Schemas as this revision lists them, and all facts, even those that older revisions omit from their lists. */
function entriesOf(revision: Revision, offered: readonly Offered[]): readonly WireManifestTool[] {
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

function serverOf({ info, spoken, homepage = info.websiteUrl }: DocumentParts, revision: Revision): WireManifest['server'] {
  const { name, version, description } = info
  return {
    name,
    // The format requires three numbers; any other version is appended.
    version: semver.test(version) ? version : `0.0.0+${version}`,
    mcp_spec_version: revision.wire,
    mcp_spec_versions: spoken.map(({ wire }) => wire),
    ...(description === undefined ? {} : { description }),
    ...(homepage === undefined ? {} : { homepage }),
    ...(spoken.some(({ batch }) => batch) ? { supports_batch: true } : {}),
  }
}

/** All scopes that tools or events need, described or not. */
function authOf(
  parts: DocumentParts,
  tools: readonly WireManifestTool[],
  events: readonly WireEventType[],
): WireAuth | undefined {
  const { methods, scopes: described = {}, sessionTtlSeconds } = parts
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
  return {
    ...(methods === undefined ? {} : { methods }),
    ...(scopes.length === 0 ? {} : { scopes }),
    ...(sessionTtlSeconds === undefined ? {} : { session_ttl_seconds: sessionTtlSeconds }),
  }
}

/** Names of our extensions in the common format; some have none. */
const words: ReadonlyMap<string, readonly ExtensionToken[]> = new Map([
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

function tokensOf(extensions: readonly string[]): readonly ExtensionToken[] {
  const enabled = new Set(extensions.flatMap(id => words.get(id) ?? []))
  return extensionTokens.filter(token => enabled.has(token))
}
