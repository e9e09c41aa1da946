/** Offering the manifest: by a method, as a resource, and by its revision in the handshake. What writes it is loaded when first asked for. */
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

/** What an author may say of it. */
export interface ManifestOptions {
  /** How callers get in. */
  readonly auth?: readonly AuthMethod[]
  /** What scopes are for, by name. Those that tools need are listed in any case. */
  readonly scopes?: Readonly<Record<string, string>>
  /** Where to read about this server. Default: `websiteUrl`. */
  readonly homepage?: string
  /** Tells each caller what is left of its own limits; such a manifest is for that caller alone. Default false. */
  readonly counters?: boolean
  /** Serves it by GET at the address of the server, followed by `/capabilities`. Default false. */
  readonly http?: boolean
  /** How long clients may keep it. Default: as the server says for all. */
  readonly cache?: CacheOptions
}

/** The options of `createServer` for it. */
export interface ManifestServerOptions {
  /** Tells clients in one document what there is and what is known of it. Default: none. */
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

/** The manifest of a server: where what it says comes from. The option `pagination` of tools. */
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
        // What reads it stands before every handler.
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
  /** Asked for when it is first written. */
  readonly document: () => Promise<DocumentParts>
  readonly cache: CacheHint
  /** Whether callers may see different tools. */
  readonly filtered: () => boolean
  /** The tools that a caller may see. */
  readonly visible: (exchange: Exchange) => Promise<readonly Tool[]>
  /** What is left of a caller's limits; undefined where nobody is told. */
  readonly counters: ((exchange: Exchange) => Promise<WireRateLimits>) | undefined
}

interface ManifestServer {
  readonly side: Side
  /** The manifest for the caller of an exchange, and who may keep it. */
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
  // Where callers see different tools, no revision holds for all.
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
          // The opening names the revision, which takes a moment to find out.
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

const personal = ({ ttlMs }: CacheHint): CacheHint => ({ ttlMs, cacheScope: 'private' })

function settings(revision: string | undefined): Readonly<Record<string, unknown>> {
  return { manifest_version: manifestVersion, ...(revision === undefined ? {} : { revision }) }
}

type Given = Awaited<ReturnType<ManifestServer['of']>>

/** What counts from call to call is no reason to send all the rest again. */
function answer({ built, manifest, cache }: Given, kept: unknown): unknown {
  const { revision } = built
  if (manifest === built.manifest) return kept === revision ? { not_modified: true, revision, ...cache } : built.page
  const { rate_limits } = manifest
  return kept === revision ? { not_modified: true, revision, rate_limits, ...cache } : { revision, manifest, ...cache }
}

function contents({ built, manifest, cache }: Given): ReadResourceResult {
  const _meta = { [manifestExtension]: { revision: built.revision } }
  const entry = { uri: manifestUri, mimeType: 'application/json', text: JSON.stringify(manifest), _meta }
  return { contents: [entry], ...cache }
}

// A tool whose results come in pages: believed where its schemas have what that takes.

/** The option of a tool. */
export interface Paginated {
  /** Its results come in pages: which argument says where one begins, and which member of the output where the next one does. */
  readonly pagination?: { readonly cursor: string; readonly next: string }
}

interface Schemas {
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema?: Readonly<Record<string, unknown>>
}

/** What a list tells of it. Throws where the schemas know no such thing. */
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
