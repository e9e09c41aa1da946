/** Offering resources: list, read, watch. A URI is looked up as it stands first, then matched by the templates in order. */
import { toBase64 } from '../../../core/base64.ts'
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { Problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { CacheHint } from '../../../engine/paging.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { withAuthored } from '../../../engine/reserved.ts'
import { defineServerFeature, provide, register, type ServerKit } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { admission, authorizationPort, type GrantedRights } from '../authorization/messages.ts'
import { noCache } from '../caching/messages.ts'
import type { ResourceContents } from '../content/messages.ts'
import type { OfferingOptions } from '../lifecycle/messages.ts'
import {
  compileResource,
  compileTemplate,
  type Readable,
  type ResourceEntry,
  type ResourceHandler,
  type ResourcesPort,
  readListing,
  type TemplateEntry,
} from './entry.ts'
import {
  listResources,
  listResourceTemplates,
  type ReadResourceResult,
  readResource,
  resourceErrors,
  resourcesPort,
  subscribe,
  unsubscribe,
} from './messages.ts'
import { createSubscribers, type Subscribers } from './subscribers.ts'
import { expandTemplate, type TemplateValues } from './template.ts'

/** `server.resource`. */
export const resourcesFeature = defineServerFeature<OfferingOptions>({
  name: 'resources',
  setup(kit, { offers = [] }) {
    const rights = (): GrantedRights | undefined => kit.port(authorizationPort).rights
    const resources = createCatalog<ResourceEntry>({ noun: 'resource', key: ({ uri }) => uri, facts: entry => entry.resource })
    const templates = createCatalog<TemplateEntry>({
      noun: 'resource template',
      key: ({ uriTemplate }) => uriTemplate,
      facts: ({ shown }) => shown,
    })
    const catalogs = { resources, templates }
    const subscribers = createSubscribers({
      limit: kit.limits.subscriptions,
      // A subscription ends with the grant that let it in.
      lapses: (admission, ended) => rights()?.lapses(admission, ended) ?? (() => {}),
      lapsed: (conversation, uris, reason) => rights()?.lapsed(conversation, uris, reason),
      watched: (uri, watched) => {
        for (const fn of kit.engine().onWatch) fn(uri, watched)
      },
    })
    // Clients are told that there are some also before the first one is there and after the last one.
    let everOffered = offers.includes('resources')
    for (const catalog of [resources, templates])
      catalog.onChange(() => {
        everOffered = true
      })
    const add: ResourcesPort['add'] = (address, facts, handler) => {
      const declared = (now: typeof facts): typeof facts => {
        kit.port(authorizationPort).declare(now.scopes, 'a resource')
        return now
      }
      // Braces are not allowed in URIs, so one tells a template.
      return address.includes('{')
        ? register(templates, address, facts, now => compileTemplate(address, declared(now), handler, kit.cache))
        : register(resources, address, facts, now => compileResource(address, declared(now), handler, kit.cache))
    }
    const side: Side = {
      handlers: handlersOf(catalogs, subscribers, kit, () => everOffered),
      memories: [subscribers.memory],
      capabilities: revision => (everOffered ? { resources: declared(revision) } : {}),
      errors: resourceErrors,
    }
    return {
      sides: [side],
      provides: provide(resourcesPort, {
        resources,
        templates,
        subscribers,
        completers: uriTemplate => templates.get(uriTemplate)?.completers,
        completes: () =>
          templates.snapshot.memo('completes', () => templates.snapshot.entries.some(({ completes }) => completes)),
        scopes: uri => search(catalogs, uri)?.entry.scopes,
        expand: (template, values) => expandTemplate(template, values as TemplateValues),
        add,
      }),
      server: { resource: add },
    }
  },
})

interface Catalogs {
  readonly resources: Catalog<ResourceEntry>
  readonly templates: Catalog<TemplateEntry>
}

function declared({ detailedCapabilities }: Revision): object {
  return detailedCapabilities ? { subscribe: true, listChanged: true } : {}
}

function handlersOf(
  catalogs: Catalogs,
  subscribers: Subscribers,
  kit: ServerKit,
  offered: () => boolean,
): NonNullable<Side['handlers']> {
  const { templates } = catalogs
  const gated = (execute: GatedHandler['execute']): GatedHandler => ({ offered, execute })
  const read: GatedHandler = {
    offered,
    resolve: exchange => {
      exchange.target = find(catalogs, exchange)
    },
    execute: exchange => execute(exchange, kit),
  }
  return [
    [listResources, gated(exchange => list(catalogs, exchange, kit))],
    [listResourceTemplates, gated(exchange => kit.paging.list(exchange, templates, 'resourceTemplates', ({ shown }) => shown))],
    [readResource, read],
    [
      subscribe,
      gated(exchange => {
        const { conversation, params } = exchange
        subscribers.add(conversation, params['uri'] as string, exchange.get(admission))
        return conversation.persist?.(subscribers.memory)
      }),
    ],
    [
      unsubscribe,
      gated(({ conversation, params }) => {
        subscribers.remove(conversation, params['uri'] as string)
        return conversation.persist?.(subscribers.memory)
      }),
    ],
  ]
}

/** While no template lists, the bytes of the list are kept; else they are made each time. */
function list({ resources, templates }: Catalogs, exchange: Exchange, { paging, context }: ServerKit): Awaitable<unknown> {
  const { snapshot } = templates
  const listing = snapshot.memo('listing', () => snapshot.entries.filter(entry => entry.list !== undefined))
  if (listing.length === 0) return paging.list(exchange, resources, 'resources', ({ resource }) => resource)
  const source = { resources, templates: listing, context: context(exchange) }
  return paging.walk(exchange, 'resources', (after, limit) => readListing(source, after, limit))
}

interface FoundResource {
  readonly entry: Readable
  readonly variables: object
}

const noVariables = {}

function find(catalogs: Catalogs, exchange: Exchange): FoundResource {
  const { params, engine } = exchange
  const uri = params['uri'] as string
  const found = search(catalogs, uri)
  if (found !== undefined) return found
  const handler = engine.unlisted?.(uri, exchange) as ResourceHandler | undefined
  if (handler === undefined) {
    const [resources, templates] = [catalogs.resources.snapshot.entries, catalogs.templates.snapshot.entries]
    throw engine.absent?.('resource', uri) ?? notFound(uri, missing(uri, resources.length === 0 && templates.length > 0))
  }
  return { entry: { handler, mimeType: undefined, cache: undefined, scopes: undefined }, variables: noVariables }
}

function search({ resources, templates }: Catalogs, uri: string): FoundResource | undefined {
  const entry = resources.get(uri)
  if (entry !== undefined) return { entry, variables: noVariables }
  for (const candidate of templates.snapshot.entries) {
    const variables = candidate.template.match(uri)
    if (variables !== undefined) return { entry: candidate, variables }
  }
  return undefined
}

/** `templated`: there are templates only, and what they stand for is nowhere listed. */
function missing(uri: string, templated: boolean): string {
  const list = templated ? 'resources/templates/list lists the templates' : 'resources/list lists the available resources'
  return `There is no resource "${clip(uri)}"; ${list}`
}

function isUnlisted(entry: Readable & Partial<TemplateEntry>): boolean {
  return entry.template !== undefined && entry.list === undefined
}

function notFound(uri: string, message: string): McpError {
  return new McpError('resource-not-found', message, { data: { uri: clip(uri) } })
}

function execute(exchange: Exchange, kit: ServerKit): Awaitable<ReadResourceResult> {
  const { entry, variables } = exchange.target as FoundResource
  let out: Awaitable<unknown>
  try {
    out = entry.handler(variables as never, kit.context(exchange))
  } catch (error) {
    throw failure(error, exchange)
  }
  if (!isThenable(out)) return finish(entry, out, exchange, kit.cache)
  return out.then(
    value => finish(entry, value, exchange, kit.cache),
    error => {
      throw failure(error, exchange)
    },
  )
}

function finish(entry: Readable, value: unknown, { params, engine }: Exchange, cache: CacheHint): ReadResourceResult {
  const uri = params['uri'] as string
  const contents = toContents(value, uri, entry.mimeType, engine.info.name)
  if (contents === undefined) throw notFound(uri, missing(uri, isUnlisted(entry)))
  const retried = params['requestState'] !== undefined || params['inputResponses'] !== undefined
  return { contents, ...(retried ? noCache : (entry.cache ?? cache)) }
}

/** An author may also say in words that it is not there. */
function failure(error: unknown, { params }: Exchange): unknown {
  const absent = error instanceof Problem && error.code === 'RESOURCE_NOT_FOUND'
  return absent ? notFound(params['uri'] as string, error.message) : error
}

// What a handler returned → the contents of a resource. Text and bytes are enough; parts are for more control.

/** One part of the contents of a resource. */
interface ContentsPart {
  /** The URI of this part. Default: that of the resource. */
  readonly uri?: string
  /** The media type of this part. Default: that of the resource. */
  readonly mimeType?: string
  /** The text of this part. Give either `text` or `blob`. */
  readonly text?: string
  /** The bytes, or base64 of them. Give either `text` or `blob`. */
  readonly blob?: string | Uint8Array
  /** Further facts about this part. Default: none. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** What the handler of a resource may return: text, bytes, or parts. Nothing means that there is no such resource. */
export type ResourceOutput = string | Uint8Array | ContentsPart | readonly ContentsPart[] | undefined | null

/** Undefined when there is nothing: an empty list would say that the resource exists. `server`: how it names itself. */
function toContents(
  value: unknown,
  uri: string,
  mimeType: string | undefined,
  server: string,
): readonly ResourceContents[] | undefined {
  if (value === undefined || value === null) return undefined
  const parts: readonly unknown[] = Array.isArray(value) ? value : [value]
  return parts.length === 0 ? undefined : parts.map(part => withAuthored(toPart(part, uri, mimeType), server))
}

function toPart(part: unknown, uri: string, mimeType: string | undefined): ResourceContents {
  const type = mimeType === undefined ? {} : { mimeType }
  if (typeof part === 'string') return { uri, ...type, text: part }
  if (part instanceof Uint8Array) return { uri, ...type, blob: toBase64(part) }
  if (isRecord(part)) {
    const { text, blob, ...rest } = part
    if (typeof text === 'string') return { uri, ...type, ...rest, text }
    if (typeof blob === 'string') return { uri, ...type, ...rest, blob }
    if (blob instanceof Uint8Array) return { uri, ...type, ...rest, blob: toBase64(blob) }
  }
  throw new TypeError('The handler of a resource must return text, bytes, or parts that have text or blob')
}
