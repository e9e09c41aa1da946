/** The manifest of a server: where what it says comes from. Without the option there is none. */
import type { Clock } from '../core/clock.ts'
import { checkOptions, type KindsOf } from '../core/options.ts'
import type { Engine } from '../engine/engine.ts'
import type { CacheHint } from '../engine/paging.ts'
import type { Side } from '../engine/plan.ts'
import { cacheHint } from '../features/mcp/caching/messages.ts'
import type { ResourcesServer } from '../features/mcp/resources/server.ts'
import type { SubscriptionsServer } from '../features/mcp/subscriptions/server.ts'
import type { ToolsServer } from '../features/mcp/tools/server.ts'
import { manifestUri } from '../features/reliability/manifest/messages.ts'
import { type ManifestOptions, type ManifestServer, manifestServer } from '../features/reliability/manifest/server.ts'
import type { WireRecommendation } from '../features/reliability/recommendations/messages.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { OwnDocument } from '../transports/http/document.ts'
import type { Context } from './context.ts'
import type { ServerEvents } from './events.ts'
import type { ServerOptions } from './options.ts'
import type { Rates } from './rates.ts'

export interface ServerManifestParts {
  readonly engine: () => Engine
  readonly sides: () => readonly Side[]
  readonly tools: ToolsServer<Context>
  readonly resources: ResourcesServer<Context>
  readonly subscriptions: SubscriptionsServer
  readonly rates: Rates
  readonly clock: Clock
  readonly cache: CacheHint
  /** Whether somebody may have a say in who sees which tools. */
  readonly filtered: () => boolean
  readonly recommendations: readonly WireRecommendation[]
  readonly events: Pick<ServerEvents, 'catalog' | 'delivery'>
}

const runtime = () => import('./manifest-runtime.ts')

const kinds: KindsOf<ManifestOptions> = {
  auth: 'list',
  scopes: 'object',
  homepage: 'string',
  counters: 'boolean',
  http: 'boolean',
  cache: 'object',
}

/** The same document for whoever asks by HTTP alone; undefined where that is not wanted. */
export function manifestDocument({ manifest }: ServerOptions, engine: Engine): OwnDocument | undefined {
  if (!isRecord(manifest) || manifest['http'] !== true) return undefined
  return { path: '/capabilities', read: async caller => (await runtime()).readDocument(engine, caller) }
}

/** Undefined where none is wanted. */
export function serverManifest(options: ServerOptions, parts: ServerManifestParts): ManifestServer | undefined {
  if (options.manifest === undefined || options.manifest === false) return undefined
  const wanted: ManifestOptions = options.manifest === true ? {} : options.manifest
  checkOptions('manifest', wanted, kinds)
  const { tools, events, resources, subscriptions, rates, clock } = parts
  const cache = cacheHint(wanted.cache, parts.cache)
  const manifest: ManifestServer = manifestServer({
    cache,
    document: async () => (await runtime()).documentOf(options, wanted, parts, cache, manifest.side),
    filtered: parts.filtered,
    visible: async exchange => (await runtime()).visibleTools(exchange),
    counters: wanted.counters === true ? async exchange => (await runtime()).countersOf(rates, clock, exchange) : undefined,
  })
  const facts = {
    name: 'manifest',
    title: 'Service manifest',
    description: 'All tools and events of this server, and what is known of each: scopes, confirmation, cost, limits',
    mimeType: 'application/json',
  }
  // What reads it stands before every handler.
  resources.resources.add(resources.compileResource(manifestUri, facts, () => undefined))
  const changed = (): void => subscriptions.updated(manifestUri)
  tools.catalog.onChange(changed)
  events.catalog.onChange(changed)
  return manifest
}
