/** Client side of recommendations: `client.recommend`, and readers for registries and catalogs. Recommendations are untrusted hints. */
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { anything, array, type Infer, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import { manifestPort } from '../manifest/messages.ts'
import {
  type Confidence,
  recommendationsExtension,
  recommendedShape,
  recommendServers,
  type WireRecommendation,
} from './messages.ts'
import { fitting } from './ranking.ts'

export type { Confidence } from './messages.ts'
export { fit, fitting, surestFirst } from './ranking.ts'

/** A recommended server. */
export interface Recommended {
  /** The capability that was asked about. */
  readonly capability: string
  /** The name of the server. */
  readonly server: string
  /** The registry entry of the server, if known. */
  readonly registryUrl: string | undefined
  /** How to authenticate, if known. */
  readonly authFlow: string | undefined
  /** How well the server fits: `high`, `medium` or `low`. */
  readonly confidence: Confidence
}

/** What the feature adds to the client. */
export interface RecommendationsClientApi {
  /** Servers that this one recommends for a capability, best first. Nothing connects to them. */
  recommend(
    capability: string,
    options?: RequestOptions & {
      /** The most recommendations. Default: the server decides. */
      readonly limit?: number
    },
  ): Promise<readonly Recommended[]>
}

/** The client feature: asks for recommendations, or reads them from the manifest. */
export const recommendationsClient = defineClientFeature({
  name: 'recommendations',
  uses: [manifestPort],
  options: {},
  setup(kit) {
    const client: RecommendationsClientApi = {
      recommend: async (capability, options = {}) => {
        const { limit } = options
        if (declaredSettings(kit.session.opened, recommendationsExtension) !== undefined) {
          const params = { capability_needed: capability, ...given({ limit }) }
          const answer = await kit.session.request(recommendServers, params, kit.send(options))
          return recommendationsIn(answer).slice(0, limit).map(recommendedOf)
        }
        const { document } = await kit.port(manifestPort).manifest(options)
        return fitting(capability, document.recommendations ?? [])
          .slice(0, limit)
          .map(recommendedOf)
      },
    }
    return {
      client,
      // On stateless wires only this request declares the extension.
      side: {
        capabilities: revision => (revision.era === 'session' ? extensionCapability(revision, recommendationsExtension) : {}),
      },
    }
  },
})

// Checks the answer.
function recommendationsIn(answer: unknown): readonly WireRecommendation[] {
  const fault = recommendedShape.check(answer)
  if (fault !== undefined)
    throw new McpError(
      'invalid-result',
      `The server's response to servers/recommend is not valid: ${clip(fault.path)} must be ${fault.expected}`,
    )
  return (answer as { readonly recommendations: readonly WireRecommendation[] }).recommendations
}

/** Converts a recommendation from the wire. */
export function recommendedOf(wire: WireRecommendation): Recommended {
  return {
    capability: wire.capability,
    server: wire.server_name,
    registryUrl: wire.registry_url,
    authFlow: wire.auth_flow,
    confidence: wire.match_confidence ?? 'medium',
  }
}

/** A remote address in a registry entry. */
interface Remote {
  /** `streamable-http` or `sse`. */
  readonly type: string
  /** The address of the server. */
  readonly url: string
}

/** A package in a registry entry. Nothing here installs it. */
interface ServerPackage {
  /** `npm`, `pypi`, `oci`, … */
  readonly registry: string
  /** The name of the package in its registry. */
  readonly identifier: string
  /** The version of the package, if the entry states one. */
  readonly version: string | undefined
}

/** A registry entry. */
export interface ListedServer {
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly version: string | undefined
  /** The addresses of the server. */
  readonly remotes: readonly Remote[]
  /** The packages that run it on your machine. */
  readonly packages: readonly ServerPackage[]
  readonly deprecated: boolean
}

/** Limits of entries per answer, and of parts per entry. */
const most = { entries: 200, parts: 16 } as const
// Limits of texts.
const lengths = { name: 200, text: 1_000, url: 2_048 } as const

const remote = object({ type: string, url: string })
const packed = object({ registryType: string, identifier: string, version: optional(string) })
const detail = object({
  name: string,
  title: optional(string),
  description: optional(string),
  version: optional(string),
  remotes: optional(array(anything)),
  packages: optional(array(anything)),
})

/** Reads a registry entry or server card. Throws a TypeError if it is invalid. */
export function listedServerOf(value: unknown, deprecated = false): ListedServer {
  const { name, title, description, version, remotes = [], packages = [] } = checked(detail, value, 'The description of a server')
  if (name === '' || name.length > lengths.name)
    throw new TypeError(`The name of a server must have 1 to ${lengths.name} characters`)
  return {
    name: clip(name, lengths.name),
    title: title && clip(title, lengths.name),
    description: description && clip(description, lengths.text),
    version: version && clip(version),
    remotes: some(remote, remotes)
      .filter(({ url }) => url.length <= lengths.url)
      .map(({ type, url }) => ({ type: clip(type), url })),
    packages: some(packed, packages).map(one => ({
      registry: clip(one.registryType),
      identifier: clip(one.identifier, lengths.name),
      version: one.version && clip(one.version),
    })),
    deprecated,
  }
}

const page = object({ servers: array(record), metadata: optional(record) })
// The registry's own metadata.
const official = 'io.modelcontextprotocol.registry/official'

/** Reads a page of a registry; `skipped`: how many entries are invalid. */
export function registryPage(value: unknown) {
  const { servers: all, metadata = {} } = checked(page, value, "The registry's response")
  if (all.length > most.entries)
    throw new TypeError(`The registry returned ${all.length} servers in one response. The limit is ${most.entries}`)
  const servers: ListedServer[] = []
  let skipped = 0
  for (const { server, _meta } of all) {
    const said = isRecord(_meta) && isRecord(_meta[official]) ? _meta[official] : {}
    // Deleted and outdated entries are kept by registries only for the record.
    if (said['status'] === 'deleted' || said['isLatest'] === false) continue
    try {
      servers.push(listedServerOf(server, said['status'] === 'deprecated'))
    } catch {
      skipped++
    }
  }
  const cursor = metadata['nextCursor']
  const next = typeof cursor === 'string' && cursor !== '' && cursor.length <= lengths.url ? cursor : undefined
  return { servers, skipped, next }
}

const catalog = object({ entries: array(record) })
const cardTypes: ReadonlySet<unknown> = new Set(['application/mcp-server-card+json', 'application/mcp-server+json'])

/** Reads a catalog: searchable text, and the address of a server card or the card itself. Entries of other kinds are ignored. */
export function catalogEntries(value: unknown) {
  const { entries } = checked(catalog, value, 'The catalog')
  if (entries.length > most.entries)
    throw new TypeError(`The catalog has ${entries.length} entries. The limit is ${most.entries}`)
  return entries.flatMap(entry => {
    const { identifier, displayName, description, type, mediaType, url, data } = entry
    if (!cardTypes.has(type ?? mediaType)) return []
    const words = [identifier, displayName, description].filter(word => typeof word === 'string')
    const address = typeof url === 'string' && url.length <= lengths.url ? url : undefined
    return address === undefined && data === undefined
      ? []
      : [{ about: clip(words.join(' '), lengths.text), url: address, card: data }]
  })
}

// Throws a TypeError that names the invalid member.
function checked<T>(shape: Shape<T>, value: unknown, what: string): T {
  const fault = shape.check(value)
  if (fault === undefined) return value as T
  throw new TypeError(`${what}${fault.path === '' ? '' : ` is not valid: ${clip(fault.path)}`} must be ${fault.expected}`)
}

/** The valid ones. */
function some<S extends Shape<unknown>>(shape: S, values: readonly unknown[]): readonly Infer<S>[] {
  return values.slice(0, most.parts).filter(value => shape.check(value) === undefined) as Infer<S>[]
}
