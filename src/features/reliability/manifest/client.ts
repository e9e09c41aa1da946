/**
 * Client side of the manifest: fetches a server's manifest, or builds a partial one from its lists. Also imports and exports manifests,
 * and converts them to camel case.
 */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, extend, type OpenedServer, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { cachePort } from '../../mcp/caching/messages.ts'
import { announcements } from '../../mcp/subscriptions/messages.ts'
import { clientToolsPort, type Tool } from '../../mcp/tools/messages.ts'
import type { WireEventType } from '../events/messages.ts'
import {
  entryOf,
  getManifest,
  manifestExtension,
  manifestPort,
  manifestShape,
  manifestUri,
  manifestVersion,
  toolOf,
  type WireManifest,
  type WireManifestResult,
} from './messages.ts'

/** What the feature adds to the client. */
export interface ManifestClientApi {
  /**
   * Everything known about the server before a call: tools with scopes, cost, risk and limits. Cached as the server allows; for servers
   * without a manifest it is built from the lists.
   */
  manifest(options?: RequestOptions): Promise<Manifest>
}

/** The client feature: caches the manifest until it expires or a change is announced, then revalidates it by its revision. */
export const manifestClient = defineClientFeature({
  name: 'manifest',
  provides: manifestPort,
  uses: [cachePort, clientToolsPort],
  options: {},
  setup(kit) {
    // Kept for revalidation after it has expired in the cache.
    let last: WireManifestResult | undefined
    const fetch = async (send: SendOptions): Promise<WireManifestResult> => {
      const cache = kit.port(cachePort)
      const place = cache.place(getManifest.name, {}, send.meta)
      const stored = cache.get(place) as WireManifestResult | undefined
      if (stored !== undefined) return stored
      const before = last
      const params = before === undefined ? {} : { if_revision: before.revision }
      const result = resultOf(await kit.session.request(getManifest, params, send), before)
      cache.put(place, result)
      last = result
      return result
    }
    const client: ManifestClientApi = {
      manifest: async options => {
        const { opened } = kit.session
        if (declaredSettings(opened, manifestExtension) !== undefined) {
          const { manifest, revision } = await fetch(kit.send(options))
          return viewOf(manifest, revision, false)
        }
        const tools: Tool[] = []
        for await (const tool of kit.port(clientToolsPort).tools()) tools.push(tool)
        return viewOf(partialManifest(opened, tools), undefined, true)
      },
    }
    return {
      client,
      port: client,
      // On stateless wires only the request for the manifest declares the extension.
      side: { capabilities: revision => (revision.era === 'session' ? extensionCapability(revision, manifestExtension) : {}) },
      extensions: [
        extend(announcements, (topic, uri) => {
          if (topic === 'tools' || (topic === 'updated' && uri === manifestUri)) kit.port(cachePort).drop(getManifest.name)
        }),
      ],
    }
  },
})

/** Checks the answer, and combines "not modified" with the cached manifest. */
function resultOf(answer: unknown, stored: WireManifestResult | undefined): WireManifestResult {
  if (!isRecord(answer) || typeof answer['revision'] !== 'string') throw bad('has no revision')
  const { revision } = answer
  const ttlMs = typeof answer['ttlMs'] === 'number' ? answer['ttlMs'] : 0
  const cacheScope = answer['cacheScope'] === 'public' ? 'public' : 'private'
  if (answer['not_modified'] !== true) return { revision, manifest: checked(answer['manifest']), ttlMs, cacheScope }
  // Without a cached copy of that revision the answer is unusable.
  if (stored?.revision !== revision) throw bad('refers to a revision that this client does not have')
  const { rate_limits } = answer
  const manifest = rate_limits === undefined ? stored.manifest : checked({ ...stored.manifest, rate_limits })
  return { revision, manifest, ttlMs, cacheScope }
}

// An invalid manifest is the server's fault, so it becomes a protocol error.
function checked(value: unknown): WireManifest {
  try {
    return readManifest(value)
  } catch (error) {
    throw new McpError('invalid-result', error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function bad(how: string): McpError {
  return new McpError('invalid-result', `The server's response to manifest/get ${how}`)
}

/** A partial manifest from what every server announces. */
function partialManifest({ serverInfo, revision }: OpenedServer, tools: readonly Tool[]): WireManifest {
  const { name = '', version = '', description, websiteUrl } = serverInfo ?? {}
  return {
    manifest_version: manifestVersion,
    server: { name, version, mcp_spec_version: revision.wire, ...given({ description, homepage: websiteUrl }) },
    tools: tools.map(tool => entryOf(tool)),
    supported_extensions: [],
  }
}

/** Limit of tools and of events in one manifest. */
const most = 10_000

/** An imported manifest as catalogs. */
interface ImportedManifest {
  readonly tools: Catalog<Tool>
  /** Undefined if the manifest has no events. */
  readonly events: Catalog<WireEventType> | undefined
  /** Everything else in the manifest. */
  readonly about: Omit<WireManifest, 'tools' | 'events'>
}

/** Checks a manifest. Throws a TypeError that names the invalid member. */
export function readManifest(value: unknown): WireManifest {
  const fault = manifestShape.check(value)
  if (fault !== undefined) {
    const where = fault.path === '' ? 'The manifest' : `The manifest's ${clip(fault.path)}`
    throw new TypeError(`${where} must be ${fault.expected}`)
  }
  const manifest = value as WireManifest
  for (const [what, { length }] of Object.entries({ tools: manifest.tools, events: manifest.events ?? [] }))
    if (length > most) throw new TypeError(`The manifest has ${length} ${what}. The limit is ${most}`)
  return manifest
}

/** Checks a manifest, and converts it to catalogs. */
export function importManifest(value: unknown): ImportedManifest {
  const { tools: entries, events: types, ...about } = readManifest(value)
  const tools = createCatalog<Tool>({ noun: 'tool', key: tool => tool.name })
  for (const entry of entries) tools.add(toolOf(entry))
  const events = types && createCatalog<WireEventType>({ noun: 'event', key: ({ name }) => name })
  for (const type of types ?? []) events?.add(type)
  return { tools, events, about }
}

/** Converts imported catalogs to a manifest again. */
export function exportManifest({ tools, events, about }: ImportedManifest): WireManifest {
  const listed = tools.snapshot.entries.map(tool => entryOf(tool))
  return { ...about, tools: listed, ...(events === undefined ? {} : { events: events.snapshot.entries }) }
}

// Type-level conversion of snake_case names.
/** A name in camel case instead of snake case. */
type Camel<S> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
// Schemas keep their member names.
type Opaque = 'input_schema' | 'output_schema' | 'payload_schema'
/** A type with the names of its members in camel case. */
type CamelCased<T> = T extends readonly (infer Item)[]
  ? readonly CamelCased<Item>[]
  : T extends object
    ? { readonly [K in keyof T as Camel<K>]: K extends Opaque ? T[K] : CamelCased<T[K]> }
    : T

/** Everything known about a server before a call. */
export interface Manifest extends CamelCased<Omit<WireManifest, 'manifest_version'>> {
  /** The digest of the document; undefined if the server has no manifest. */
  readonly revision: string | undefined
  /** Built from lists; the server may offer more. */
  readonly partial: boolean
  /** The document as received, for storing or forwarding. */
  readonly document: WireManifest
}

/** Converts a manifest to camel case. */
export function viewOf(document: WireManifest, revision: string | undefined, partial: boolean): Manifest {
  const { manifest_version, ...rest } = document
  return { ...camelled(rest), revision, partial, document }
}

const opaque: ReadonlySet<string> = new Set<Opaque>(['input_schema', 'output_schema', 'payload_schema'])

function camelled<T>(value: T): CamelCased<T> {
  if (Array.isArray(value)) return value.map(item => camelled<unknown>(item)) as CamelCased<T>
  if (!isRecord(value)) return value as CamelCased<T>
  const members = Object.entries(value).map(([name, member]) => [camel(name), opaque.has(name) ? member : camelled(member)])
  return Object.fromEntries(members)
}

function camel(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
