/**
 * Server side of the manifest: `manifest/get`, a resource, the revision in the handshake, and the option `pagination` of tools. The
 * builder is loaded on first use.
 */
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { CacheHint } from '../../../engine/paging.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { type CacheOptions, cacheHint } from '../../mcp/caching/messages.ts'
import { discover, initialize } from '../../mcp/lifecycle/messages.ts'
import { type ReadResourceResult, readResource, resourcesPort } from '../../mcp/resources/messages.ts'
import { subscriptionsPort } from '../../mcp/subscriptions/messages.ts'
import { type Tool, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import {
  type AuthMethod,
  getManifest,
  manifestExtension,
  manifestUri,
  manifestVersion,
  type WireManifest,
  type WireRateLimits,
} from './messages.ts'
import type { Built, DocumentParts, Documents } from './runtime.ts'

/** Options of the manifest. */
export interface ManifestOptions {
  /** How callers authenticate. */
  readonly auth?: readonly AuthMethod[]
  /** Descriptions of scopes, by name. Scopes that tools need are listed in any case. */
  readonly scopes?: Readonly<Record<string, string>>
  /** The website of this server. Default: `websiteUrl`. */
  readonly homepage?: string
  /** Tells each caller what is left of its limits; the manifest is then private. Default false. */
  readonly counters?: boolean
  /** Also serves it by GET at the endpoint's URL plus `/capabilities`. Default false. */
  readonly http?: boolean
  /** How long clients may cache it. Default: the server's setting. */
  readonly cache?: CacheOptions
}

/** The options of `createServer` that this feature reads. */
export interface ManifestServerOptions {
  /** Offers the manifest. Default: off. */
  readonly manifest?: boolean | ManifestOptions
}

const optionKinds: KindsOf<ManifestOptions> = {
  auth: 'list',
  scopes: 'object',
  homepage: 'string',
  counters: 'boolean',
  http: 'boolean',
  cache: 'object',
}

const runtime = () => import('./runtime.ts')

/** The server feature: the manifest, and the option `pagination` of tools. */
export const manifestFeature = defineServerFeature<ManifestServerOptions>({
  name: 'manifest',
  options: { manifest: 'any' },
  setup: (kit, { manifest: option }) => {
    const tools = kit.port(toolsPort)
    tools.extend({ kinds: { pagination: 'object' }, meta: paginationMeta })
    if (option === undefined || option === false) return {}
    const wanted: ManifestOptions = option === true ? {} : option
    checkOptions('manifest', wanted, optionKinds)
    const cache = cacheHint(wanted.cache, kit.cache)
    const { side } = manifestServer({
      cache,
      document: async () => (await runtime()).documentOf(kit, wanted, cache, side),
      filtered: kit.filtered,
      visible: async exchange => (await runtime()).visibleTools(exchange),
      counters: wanted.counters === true ? async exchange => (await runtime()).countersOf(kit, exchange) : undefined,
    })
    const changed = (): void => kit.port(subscriptionsPort).updated(manifestUri)
    const read = async (caller: Caller) => (await runtime()).readDocument(kit.engine(), caller)
    return {
      sides: [side],
      ...(wanted.http === true ? { beside: { document: { path: '/capabilities', read } } } : {}),
      installed: () => {
        // Only listed here; a layer answers the read.
        kit.port(resourcesPort).add(manifestUri, listedAs, () => undefined)
        tools.catalog.onChange(changed)
        kit.port(eventsPort).onChange(changed)
      },
    }
  },
})

const listedAs = {
  name: 'manifest',
  title: 'Service manifest',
  description: 'All tools and events of this server, and what is known of each: scopes, confirmation, cost, limits',
  mimeType: 'application/json',
}

interface ManifestParts {
  /** Called when the manifest is first built. */
  readonly document: () => Promise<DocumentParts>
  readonly cache: CacheHint
  /** Whether callers may see different tools. */
  readonly filtered: () => boolean
  /** The tools that a caller sees. */
  readonly visible: (exchange: Exchange) => Promise<readonly Tool[]>
  /** What is left of a caller's limits; undefined if not told. */
  readonly counters: ((exchange: Exchange) => Promise<WireRateLimits>) | undefined
}

interface ManifestServer {
  readonly side: Side
  /** The manifest for a caller, and how it may be cached. */
  of(exchange: Exchange): Promise<{ readonly built: Built; readonly manifest: WireManifest; readonly cache: CacheHint }>
}

function manifestServer(parts: ManifestParts): ManifestServer {
  let documents: Documents | undefined
  const load = async (): Promise<Documents> => {
    if (documents !== undefined) return documents
    const [{ Documents }, document] = await Promise.all([import('./runtime.ts'), parts.document()])
    documents ??= new Documents(document)
    return documents
  }
  // If callers see different tools, no single revision applies.
  const known = (revision: Revision): string | undefined => (parts.filtered() ? undefined : documents?.known(revision))
  const of: ManifestServer['of'] = async exchange => {
    const { revision } = exchange.peer
    const tools = parts.filtered() ? await parts.visible(exchange) : undefined
    const cache = tools === undefined && parts.counters === undefined ? parts.cache : personal(parts.cache)
    const loaded = await load()
    const built = tools === undefined ? await loaded.whole(revision) : await loaded.of(revision, tools, cache)
    const { manifest } = built
    if (parts.counters === undefined) return { built, manifest, cache }
    return {
      built,
      cache,
      manifest: { ...manifest, rate_limits: { ...manifest.rate_limits, ...(await parts.counters(exchange)) } },
    }
  }
  return {
    of,
    side: {
      handlers: [[getManifest, async (exchange: Exchange) => answer(await of(exchange), exchange.params['if_revision'])]],
      layers: [
        {
          // The handshake contains the revision, so the document must be built first.
          stage: 'enter',
          methods: [initialize.name, discover.name],
          when: exchange => !parts.filtered() && known(exchange.peer.revision) === undefined,
          run: async (exchange, next) => {
            await (await load()).whole(exchange.peer.revision)
            return next()
          },
        },
        {
          stage: 'execute',
          methods: [readResource.name],
          when: ({ params }) => params['uri'] === manifestUri,
          run: async exchange => contents(await of(exchange)),
        },
      ],
      capabilities: revision => declaration(revision, manifestExtension, settings(known(revision))),
    },
  }
}

// A personal document must not be shared between callers.
const personal = ({ ttlMs }: CacheHint): CacheHint => ({ ttlMs, cacheScope: 'private' })

function settings(revision: string | undefined): Readonly<Record<string, unknown>> {
  return { manifest_version: manifestVersion, ...(revision === undefined ? {} : { revision }) }
}

type Given = Awaited<ReturnType<ManifestServer['of']>>

/** Changed counters are no reason to send the whole document again. */
function answer({ built, manifest, cache }: Given, kept: unknown): unknown {
  const { revision } = built
  if (manifest === built.manifest) return kept === revision ? { not_modified: true, revision, ...cache } : built.page
  const { rate_limits } = manifest
  return kept === revision ? { not_modified: true, revision, rate_limits, ...cache } : { revision, manifest, ...cache }
}

// The manifest as a resource.
function contents({ built, manifest, cache }: Given): ReadResourceResult {
  const _meta = { [manifestExtension]: { revision: built.revision } }
  const entry = { uri: manifestUri, mimeType: 'application/json', text: JSON.stringify(manifest), _meta }
  return { contents: [entry], ...cache }
}

// Pagination of tools, checked against their schemas.

/** The option of a tool. */
export interface Paginated {
  /** Its results are paginated: the argument with the cursor, and the output member with the next one. */
  readonly pagination?: { readonly cursor: string; readonly next: string }
}

interface Schemas {
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema?: Readonly<Record<string, unknown>>
}

/** The `_meta` of the tool. Throws if the schemas lack these members. */
function paginationMeta(
  tool: string,
  { pagination }: Paginated,
  { inputSchema, outputSchema }: Schemas,
): Readonly<Record<string, unknown>> | undefined {
  if (pagination === undefined) return undefined
  const where = `The pagination of tool "${clip(tool)}"`
  checkOptions(where, pagination, { cursor: 'string', next: 'string' })
  const { cursor, next } = pagination
  if (!declares(inputSchema, cursor)) throw new TypeError(`${where}: its input has no "${clip(String(cursor))}"`)
  if (!declares(outputSchema, next)) throw new TypeError(`${where}: its output has no "${clip(String(next))}"`)
  return { [manifestExtension]: { supports_pagination: true } }
}

function declares(schema: Readonly<Record<string, unknown>> | undefined, member: string): boolean {
  const properties = schema?.['properties']
  return isRecord(properties) && Object.hasOwn(properties, member)
}
