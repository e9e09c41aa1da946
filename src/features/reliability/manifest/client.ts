/** Using the manifest of a server, or putting one together where it has none. */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, extend, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities, Implementation, Revision } from '../../../revisions/index.ts'
import { cachePort } from '../../mcp/caching/messages.ts'
import { announcements } from '../../mcp/subscriptions/messages.ts'
import { clientToolsPort, type Tool } from '../../mcp/tools/messages.ts'
import type { WireEventType } from '../events/messages.ts'
import {
  type ClientManifest,
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

/** Reading a server's manifest. */
export interface ManifestClientApi {
  /**
   * All that is known of the server before a call: its tools with their scopes, cost, risk and limits. Kept as long as the server
   * lets us; of a server that has none it is put together from its lists.
   */
  manifest(options?: RequestOptions): Promise<Manifest>
}

/** Reads the manifest: good until its time is over or a change is announced, then asked for by its revision. */
export const manifestClient = defineClientFeature<object, ClientManifest>({
  name: 'manifest',
  provides: manifestPort,
  uses: [cachePort, clientToolsPort],
  options: {},
  setup(kit) {
    let last: WireManifestResult | undefined
    const fetch = async (send: SendOptions): Promise<WireManifestResult> => {
      const cache = kit.port(cachePort)
      const place = cache.place(getManifest.name, {}, send.meta)
      const kept = cache.get(place) as WireManifestResult | undefined
      if (kept !== undefined) return kept
      const before = last
      const params = before === undefined ? {} : { if_revision: before.revision }
      const result = resultOf(await kit.session.request(getManifest, params, send), before)
      cache.put(place, result)
      last = result
      return result
    }
    const client: ManifestClientApi = {
      manifest: async options => {
        const { revision, capabilities, serverInfo } = kit.session.opened
        if (hasManifest(revision, capabilities)) {
          const { manifest, revision: digest } = await fetch(kit.send(options))
          return viewOf(manifest, digest, false)
        }
        const tools: Tool[] = []
        for await (const tool of kit.port(clientToolsPort).tools()) tools.push(tool)
        return viewOf(partialManifest(serverInfo, revision, tools), undefined, true)
      },
    }
    return {
      client,
      port: client,
      // Where each request declares for itself, the one that asks for it does: the others have no use for it.
      side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, manifestExtension) : {}) },
      extensions: [
        extend(announcements, (topic, uri) => {
          if (topic === 'tools' || (topic === 'updated' && uri === manifestUri)) kit.port(cachePort).drop(getManifest.name)
        }),
      ],
    }
  },
})

function hasManifest(revision: Revision, capabilities: Capabilities): boolean {
  return declared({ revision, capabilities }, manifestExtension) !== undefined
}

/** What a server answered: checked, and together with what is kept where that still holds. */
function resultOf(answer: unknown, kept: WireManifestResult | undefined): WireManifestResult {
  if (!isRecord(answer) || typeof answer['revision'] !== 'string') throw bad('without a revision')
  const { revision } = answer
  const ttlMs = typeof answer['ttlMs'] === 'number' ? answer['ttlMs'] : 0
  const cacheScope = answer['cacheScope'] === 'public' ? 'public' : 'private'
  if (answer['not_modified'] !== true) return { revision, manifest: checked(answer['manifest']), ttlMs, cacheScope }
  if (kept?.revision !== revision) throw bad('that a revision stays as it is which this client does not have')
  const { rate_limits } = answer
  const manifest = rate_limits === undefined ? kept.manifest : checked({ ...kept.manifest, rate_limits })
  return { revision, manifest, ttlMs, cacheScope }
}

function checked(value: unknown): WireManifest {
  try {
    return readManifest(value)
  } catch (error) {
    throw new McpError('invalid-result', error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function bad(how: string): McpError {
  return new McpError('invalid-result', `The server answered manifest/get ${how}`)
}

/** As much as can be said of a server that has none: nothing of it is more than the server told everybody. */
function partialManifest(info: Implementation | undefined, revision: Revision, tools: readonly Tool[]): WireManifest {
  const { name = '', version = '', description, websiteUrl } = info ?? {}
  return {
    manifest_version: manifestVersion,
    server: {
      name,
      version,
      mcp_spec_version: revision.wire,
      ...(description === undefined ? {} : { description }),
      ...(websiteUrl === undefined ? {} : { homepage: websiteUrl }),
    },
    tools: tools.map(tool => entryOf(tool)),
    supported_extensions: [],
  }
}

/** The most tools, and the most events, of one manifest. */
const most = 10_000

/** What was taken in: tools as a list has them, and what is said of the whole. */
interface ImportedManifest {
  readonly tools: Catalog<Tool>
  /** Undefined where nothing is said of any. */
  readonly events: Catalog<WireEventType> | undefined
  readonly about: Omit<WireManifest, 'tools' | 'events'>
}

/** Checks what calls itself a manifest. Throws a TypeError that names the member that is wrong. */
export function readManifest(value: unknown): WireManifest {
  const fault = manifestShape.check(value)
  if (fault !== undefined) {
    const where = fault.path === '' ? 'The manifest' : `The manifest's ${clip(fault.path)}`
    throw new TypeError(`${where} must be ${fault.expected}`)
  }
  const manifest = value as WireManifest
  for (const [what, { length }] of Object.entries({ tools: manifest.tools, events: manifest.events ?? [] }))
    if (length > most) throw new TypeError(`The manifest has ${length} ${what}; the limit is ${most}`)
  return manifest
}

/** Checks a manifest, and takes its tools and events into catalogs. */
export function importManifest(value: unknown): ImportedManifest {
  const { tools: entries, events: types, ...about } = readManifest(value)
  const tools = createCatalog<Tool>({ noun: 'tool', key: tool => tool.name })
  for (const entry of entries) tools.add(toolOf(entry))
  const events = types && createCatalog<WireEventType>({ noun: 'event', key: ({ name }) => name })
  for (const type of types ?? []) events?.add(type)
  return { tools, events, about }
}

/** Writes imported catalogs as a manifest again. */
export function exportManifest({ tools, events, about }: ImportedManifest): WireManifest {
  const listed = tools.snapshot.entries.map(tool => entryOf(tool))
  return { ...about, tools: listed, ...(events === undefined ? {} : { events: events.snapshot.entries }) }
}

type Camel<S> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
type Opaque = 'input_schema' | 'output_schema' | 'payload_schema'
type Camelled<T> = T extends readonly (infer Item)[]
  ? readonly Camelled<Item>[]
  : T extends object
    ? { readonly [K in keyof T as Camel<K>]: K extends Opaque ? T[K] : Camelled<T[K]> }
    : T

/** All that is known of a server before a call. */
export interface Manifest extends Camelled<Omit<WireManifest, 'manifest_version'>> {
  /** The digest of the document; undefined where the server has none. */
  readonly revision: string | undefined
  /** Put together from what every server tells: there may be more to know. */
  readonly partial: boolean
  /** The document itself, as it came: to be kept, or given on. */
  readonly document: WireManifest
}

/** The manifest as programs read it. */
export function viewOf(document: WireManifest, revision: string | undefined, partial: boolean): Manifest {
  const { manifest_version, ...rest } = document
  return { ...camelled(rest), revision, partial, document }
}

const opaque: ReadonlySet<string> = new Set<Opaque>(['input_schema', 'output_schema', 'payload_schema'])

function camelled<T>(value: T): Camelled<T> {
  if (Array.isArray(value)) return value.map(item => camelled<unknown>(item)) as Camelled<T>
  if (!isRecord(value)) return value as Camelled<T>
  const members = Object.entries(value).map(([name, member]) => [camel(name), opaque.has(name) ? member : camelled(member)])
  return Object.fromEntries(members)
}

function camel(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
