/** Resources on the wire: listing, reading, watching; and what each older wire gets instead of what it does not know. */
import type { RequestOptions } from '../../../engine/client-feature.ts'
import { everyId, notification, officialIds, request, sessionRevisionIds } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { array, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Icon, Wire } from '../../../revisions/index.ts'
import { withoutCacheHint } from '../caching/messages.ts'
import { type Annotations, eachEntry, type ResourceContents, without } from '../content/messages.ts'
import type { ResourcesPort } from './entry.ts'

/** What other features may use of the resources of a server. */
export const resourcesPort = port<ResourcesPort>('resources')

/** What resources and templates have in common. */
interface ResourceDescription {
  /** The name, for programs. */
  readonly name: string
  /** The name that people see. */
  readonly title?: string
  /** What it holds, in a sentence. */
  readonly description?: string
  /** The media type of the content. */
  readonly mimeType?: string
  /** Hints for the client: for whom it is, how important it is, and when it changed. */
  readonly annotations?: Annotations
  /** Images that clients can show next to its name. */
  readonly icons?: readonly Icon[]
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A resource of a server. */
export interface Resource extends ResourceDescription {
  /** The URI by which the resource can be read. */
  readonly uri: string
  /** The size of the raw content in bytes. */
  readonly size?: number
}

/** A resource template of a server. */
export interface ResourceTemplate extends ResourceDescription {
  /** The URI template (RFC 6570), for example `ticket://{id}`. */
  readonly uriTemplate: string
}

/** What each page of a list has. */
interface ListPage {
  /** The cursor of the next page. Absent on the last page. */
  readonly nextCursor?: string
  /** How long the result may be cached, in milliseconds. Absent: not at all. */
  readonly ttlMs?: number
  /** Who may reuse the cached result: every caller (`public`) or only this one (`private`). */
  readonly cacheScope?: 'public' | 'private'
}

/** The result of `resources/list`. */
export interface ListResourcesResult extends ListPage {
  /** The resources of the page. */
  readonly resources: readonly Resource[]
}

/** The result of `resources/templates/list`. */
export interface ListResourceTemplatesResult extends ListPage {
  /** The templates of the page. */
  readonly resourceTemplates: readonly ResourceTemplate[]
}

/** The result of `resources/read`. */
export interface ReadResourceResult {
  /** The contents: one entry, or several if the resource consists of parts. */
  readonly contents: readonly ResourceContents[]
  /** How long the contents may be cached, in milliseconds. */
  readonly ttlMs?: number
  /** Who may reuse the cached result: every caller (`public`) or only this one (`private`). */
  readonly cacheScope?: 'public' | 'private'
}

const listSteps = (member: string) => ({
  'draft-2026-v1': withoutCacheHint,
  '2025-11-25': withoutCacheHint,
  '2025-06-18': eachEntry(member, entry => without(entry, 'icons')),
  '2025-03-26': eachEntry(member, plainEntry),
})

/** `resources/list`: the resources of a server, page by page. */
export const listResources = request<ListResourcesResult>()({
  name: 'resources/list',
  to: 'server',
  in: everyId,
  params: object({ cursor: optional(string) }),
  paramsDown: { s3: () => ({}) },
  resultDown: { ...listSteps('resources'), s3: toDialect },
  resultUp: { s3: fromDialect },
})

/** `resources/templates/list`: the templates of a server, page by page. */
export const listResourceTemplates = request<ListResourceTemplatesResult>()({
  name: 'resources/templates/list',
  to: 'server',
  in: everyId,
  params: object({ cursor: optional(string) }),
  resultDown: listSteps('resourceTemplates'),
})

/** `resources/read`: the contents of a resource. */
export const readResource = request<ReadResourceResult>()({
  name: 'resources/read',
  to: 'server',
  in: everyId,
  params: object({ uri: string }),
  asks: true,
  nameParam: 'uri',
  resultDown: {
    'draft-2026-v1': withoutCacheHint,
    '2025-11-25': withoutCacheHint,
    '2025-03-26': eachEntry('contents', contents => without(contents, '_meta')),
  },
})

/** `resources/subscribe`: the client wants to hear when a resource changes. */
export const subscribe = request<Record<string, never>>()({
  name: 'resources/subscribe',
  to: 'server',
  in: sessionRevisionIds,
  params: object({ uri: string }),
})

/** `resources/unsubscribe`: the client no longer wants to hear of a resource. */
export const unsubscribe = request<Record<string, never>>()({
  name: 'resources/unsubscribe',
  to: 'server',
  in: sessionRevisionIds,
  params: object({ uri: string }),
})

/** `notifications/resources/list_changed`: the list of resources is another one now. */
export const resourcesChanged = notification({
  name: 'notifications/resources/list_changed',
  to: 'client',
  in: officialIds,
  params: record,
})

/** `notifications/resources/updated`: the contents of a resource have changed. */
export const resourceUpdated = notification({
  name: 'notifications/resources/updated',
  to: 'client',
  in: officialIds,
  params: object({ uri: string }),
})

/** The dialect names what changed, be it the list or a content. */
export const resourcesChangedDialect = notification({
  name: 'resources/changed',
  to: 'client',
  in: ['s3'],
  params: object({ updated: optional(array(string)) }),
})

/** The longest URI that can be watched: whoever watches it, it is remembered. */
export const watchedLength = 8_192

/** 2026-07-28 has no number of its own for it. */
export const resourceErrors = { 'resource-not-found': { default: -32002, '2026-07-28': -32602 } }

function plainEntry(entry: Wire): Wire {
  const plain = without(entry, 'title', '_meta')
  const { annotations } = plain
  return isRecord(annotations) && 'lastModified' in annotations
    ? { ...plain, annotations: without(annotations, 'lastModified') }
    : plain
}

function toDialect(result: Wire): Wire {
  const resources = result['resources'] as readonly Resource[]
  return resources.map(({ uri, name, description, mimeType }) => ({
    uri,
    name,
    ...given({ description, mimeType }),
  })) as unknown as Wire
}

/** An entry without a URI is known by its name. */
function fromDialect(result: Wire): Wire {
  const list: unknown = Array.isArray(result) ? result : result['resources']
  if (!Array.isArray(list)) return result
  return {
    resources: list.map(entry => (isRecord(entry) && entry['uri'] === undefined ? { ...entry, uri: entry['name'] } : entry)),
  }
}

/** Reads resources. */
export interface ClientResources {
  /**
   * Returns the contents of a resource. They are cached as long as the server allows.
   * @example
   * const { contents } = await mcp.readResource('ticket://T-1')
   * console.log(contents[0]?.text)
   */
  readResource(uri: string, options?: RequestOptions): Promise<ReadResourceResult>
}

/** The client's resources. */
export const clientResourcesPort: Port<ClientResources> = port('resources')
