/** Opening, probing and ending: `initialize`, `server/discover`, `ping`, and the dialect's `shutdown` and `exit`. */
import { notification, request, sessionRevisionIds, statelessRevisionIds } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { object, record, string } from '../../../jsonrpc/shape.ts'
import type { Capabilities, Implementation, Revision, Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** What a server can offer. */
type OfferedKind = 'tools' | 'prompts' | 'resources' | 'completions'

/** What a server declares before it has anything of the kind. */
export interface OfferingOptions {
  /**
   * What the server declares even before the first entry is registered, and after the last one is removed. Default: what it has
   * had since the start.
   */
  readonly offers?: readonly OfferedKind[]
}

/** The result of `initialize`. */
export interface InitializeResult {
  /** The revision that the session speaks from now on. */
  readonly protocolVersion: string
  readonly capabilities: Capabilities
  readonly serverInfo: Implementation
  /** How to use the server, for the model. */
  readonly instructions?: string
}

/** The result of `server/discover`. */
export interface DiscoverResult {
  /** Revisions that the server speaks. */
  readonly supportedVersions: readonly string[]
  readonly capabilities: Capabilities
  readonly instructions?: string
  /** How long this may be kept. */
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
  /** In the body only on the draft; else in the result's `_meta`. */
  readonly serverInfo?: Implementation
}

const change =
  (name: string, step: (info: Wire) => Wire) =>
  (value: Wire): Wire =>
    isRecord(value[name]) ? { ...value, [name]: step(value[name]) } : value

const plainInfo = (info: Wire): Wire => without(info, 'icons', 'description', 'websiteUrl')
const bareInfo = (info: Wire): Wire => without(info, 'title')

/** `initialize`: opens a session and agrees on a revision. */
export const initialize = request<InitializeResult>()({
  name: 'initialize',
  opening: true,
  to: 'server',
  in: [...sessionRevisionIds, 's3'],
  params: object({
    protocolVersion: string,
    capabilities: record,
    clientInfo: object({ name: string, version: string }),
  }),
  paramsDown: {
    '2025-06-18': change('clientInfo', plainInfo),
    '2025-03-26': change('clientInfo', bareInfo),
    s3: () => ({ mcpVersion: '2025-06-18', clientCapabilities: { supportsProgress: true, supportsCancellation: true } }),
  },
  paramsUp: {
    // The dialect's client names neither itself nor capabilities we could use; what it says of progress is kept.
    s3: wire => ({
      protocolVersion: '2025-06-18',
      capabilities: { dialect: isRecord(wire['clientCapabilities']) ? wire['clientCapabilities'] : {} },
      clientInfo: { name: 'unknown', version: '0' },
    }),
  },
  resultDown: {
    '2025-06-18': change('serverInfo', plainInfo),
    '2025-03-26': change('serverInfo', bareInfo),
    s3: dialectHello,
  },
  resultUp: { s3: fromDialectHello },
})

/** `notifications/initialized`: the client is ready. */
export const initialized = notification({
  name: 'notifications/initialized',
  to: 'server',
  in: [...sessionRevisionIds, 's3'],
  names: { s3: 'initialized' },
  params: record,
  paramsDown: { s3: () => ({}) },
})

/** The dialect's own name is `initialized`, but it takes the common one too. */
export const initializedDialect = { ...initialized, in: ['s3' as const], names: {} }

/** `server/discover`: what a server speaks and offers, without a session. */
export const discover = request<DiscoverResult>()({
  name: 'server/discover',
  to: 'server',
  in: statelessRevisionIds,
  params: record,
  resultDown: { 'draft-2026-v1': result => without(result, 'ttlMs', 'cacheScope') },
})

/** The draft names the server in the body of this result; later every result names it in `_meta`. */
export function discoverNamesServer({ id }: Revision): boolean {
  return id === 'draft-2026-v1'
}

/** `ping`: whether the peer still answers. */
export const ping = request<Record<string, never>>()({
  name: 'ping',
  instant: true,
  to: 'both',
  in: [...sessionRevisionIds, 's3'],
  params: record,
})

/** `shutdown`: the client is about to end the session. */
export const shutdown = request<null>()({
  name: 'shutdown',
  instant: true,
  to: 'server',
  in: ['s3'],
  params: record,
  resultDown: { s3: () => null as unknown as Wire },
})

/** `exit`: ends the session. */
export const exit = notification({ name: 'exit', to: 'server', in: ['s3'], params: record })

function dialectHello(result: Wire): Wire {
  const info = result['serverInfo'] as Implementation
  const capabilities = result['capabilities'] as Capabilities
  return {
    server: { name: info.name, version: info.version },
    serverCapabilities: {
      supportsToolDiscovery: capabilities['tools'] !== undefined,
      supportsResourceDiscovery: capabilities['resources'] !== undefined,
      supportsNotifications: true,
    },
  }
}

/** Throws for what is no answer of the dialect. */
function fromDialectHello(result: Wire): Wire {
  if (!isRecord(result['server']) && !isRecord(result['serverCapabilities']))
    throw new TypeError('neither server nor serverCapabilities')
  const said = isRecord(result['serverCapabilities']) ? result['serverCapabilities'] : {}
  const listChanged = said['supportsNotifications'] === true
  const server = isRecord(result['server']) ? result['server'] : {}
  return {
    protocolVersion: '2025-06-18',
    serverInfo: { name: String(server['name'] ?? 'unknown'), version: String(server['version'] ?? '0') },
    capabilities: {
      ...(said['supportsToolDiscovery'] === true ? { tools: { listChanged } } : {}),
      ...(said['supportsResourceDiscovery'] === true ? { resources: { listChanged } } : {}),
    },
  }
}
