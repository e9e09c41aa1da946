/**
 * Server side of the manifest: `manifest/get`, a resource, the revision in the handshake, and the option `pagination` of tools. The
 * builder is loaded on first use.
 */
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { type CacheOptions, cacheHint } from '../../mcp/caching/messages.ts'
import { discover, initialize } from '../../mcp/lifecycle/messages.ts'
import { readResource, resourcesPort } from '../../mcp/resources/messages.ts'
import { subscriptionsPort } from '../../mcp/subscriptions/messages.ts'
import { type Tool, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { type AuthMethod, getManifest, manifestExtension, manifestUri, manifestVersion } from './messages.ts'
import type { Documents } from './runtime.ts'

/** Options of the manifest. */
export interface ManifestOptions {
  /** How callers authenticate. Default: nothing is stated. */
  readonly auth?: readonly AuthMethod[]
  /** Descriptions of scopes, by name. Scopes that tools need are listed in any case. Default: none. */
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

/** The server feature: the manifest, and the option `pagination` of tools. */
export const manifestFeature = defineServerFeature<ManifestServerOptions>({
  name: 'manifest',
  options: { manifest: 'any' },
  setup: (kit, { manifest: option }) => {
    const tools = kit.port(toolsPort)
    tools.extend({ kinds: { pagination: 'object' }, meta: paginationMeta })
    if (option === undefined || option === false) return {}
    const options: ManifestOptions = option === true ? {} : option
    checkOptions('manifest', options, optionKinds)
    const cache = cacheHint(options.cache, kit.cache)
    let documents: Documents | undefined
    const load = async (): Promise<Documents> => {
      if (documents !== undefined) return documents
      const [{ Documents }, describe] = await Promise.all([import('./runtime.ts'), kit.port(eventsPort).describing()])
      documents ??= new Documents({ kit, options, cache, own: side, describe })
      return documents
    }
    const side: Side = {
      handlers: [[getManifest, async (exchange: Exchange) => (await load()).answer(exchange)]],
      layers: [
        {
          // The handshake contains the revision, so the document must be built first.
          stage: 'enter',
          methods: [initialize.name, discover.name],
          when: exchange => !kit.filtered() && documents?.known(exchange.peer.revision) === undefined,
          run: async (exchange, next) => {
            await (await load()).whole(exchange.peer.revision)
            return next()
          },
        },
        {
          stage: 'execute',
          methods: [readResource.name],
          when: ({ params }) => params['uri'] === manifestUri,
          run: async exchange => (await load()).contents(exchange),
        },
      ],
      capabilities: wire => {
        // If callers see different tools, no single revision applies.
        const revision = kit.filtered() ? undefined : documents?.known(wire)
        return extensionCapability(wire, manifestExtension, { manifest_version: manifestVersion, ...given({ revision }) })
      },
    }
    const changed = (): void => kit.port(subscriptionsPort).updated(manifestUri)
    const read = async (caller: Caller) => (await load()).text(caller)
    return {
      sides: [side],
      ...(options.http === true ? { beside: { document: { path: '/capabilities', read } } } : {}),
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
  description: 'All tools and events of this server, with the scopes, confirmation, cost and limits of each',
  mimeType: 'application/json',
}

// Pagination of tools, checked against their schemas.

/** The option of a tool. */
export interface PaginationToolOption {
  /** The argument and the output member that hold cursors, if results are paginated. Default: not paginated. */
  readonly pagination?: {
    /** The name of the argument that takes the cursor. */
    readonly cursor: string
    /** The name of the output member that holds the next cursor. */
    readonly next: string
  }
}

/** The `_meta` of the tool. Throws if the schemas lack these members. */
function paginationMeta(
  tool: string,
  { pagination }: PaginationToolOption,
  { inputSchema, outputSchema }: Pick<Tool, 'inputSchema' | 'outputSchema'>,
): Readonly<Record<string, unknown>> | undefined {
  if (pagination === undefined) return undefined
  const where = `The pagination of tool "${clip(tool)}"`
  checkOptions(where, pagination, { cursor: 'string', next: 'string' })
  const { cursor, next } = pagination
  if (!declares(inputSchema, cursor)) throw new TypeError(`${where}: the input schema has no property "${clip(String(cursor))}"`)
  if (!declares(outputSchema, next)) throw new TypeError(`${where}: the output schema has no property "${clip(String(next))}"`)
  return { [manifestExtension]: { supports_pagination: true } }
}

function declares(schema: Readonly<Record<string, unknown>> | undefined, member: string): boolean {
  const properties = schema?.['properties']
  return isRecord(properties) && Object.hasOwn(properties, member)
}
