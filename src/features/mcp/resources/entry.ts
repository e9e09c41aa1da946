/** What an author registers, made ready: a resource under one URI, or a template for many. */

import type { Catalog } from '../../../core/catalog.ts'
import { checkHandler, checkOptions, type KindsOf } from '../../../core/options.ts'
import type { CallContext } from '../../../engine/context.ts'
import type { CacheHint } from '../../../engine/paging.ts'
import type { Registration } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { given } from '../../../jsonrpc/message.ts'
import type { Icon } from '../../../revisions/index.ts'
import { type CacheOptions, cacheHint } from '../caching/messages.ts'
import { type Completer, type Completers, checkCompleters } from '../completion/messages.ts'
import type { Annotations } from '../content/messages.ts'
import type { Resource, ResourceTemplate } from './messages.ts'
import type { Subscribers } from './subscribers.ts'
import { parseTemplate, type Template } from './template.ts'

/** What other features may use of the resources of a server. */
export interface ResourcesPort {
  readonly resources: Catalog<ResourceEntry>
  readonly templates: Catalog<TemplateEntry>
  /** Who subscribed to a resource in its session. */
  readonly subscribers: Subscribers
  /** What can be completed of a template; undefined if there is none such. */
  completers(uriTemplate: string): Completers<CallContext> | undefined
  /** Whether any template can complete. */
  completes(): boolean
  /** The scopes that a resource needs. */
  scopes(uri: string): readonly string[] | undefined
  /** The URI that a template gives for these values. */
  expand(uriTemplate: string, values: object): string
  /** Offers a resource, or by a template many. */
  add<F extends ResourceFacts<CallContext>>(address: string, facts: F, handler: ResourceHandler): Registration<F>
}

/** A resource that the `list` of a template returns. */
interface ListedResource {
  /** The URI of the resource. It must match the template. */
  readonly uri: string
  /** The name of the resource. Default: the name of the template. */
  readonly name?: string
  /** The name that people see. Default: the title of the template. */
  readonly title?: string
  /** What the resource holds. Default: the description of the template. */
  readonly description?: string
  /** The media type. Default: that of the template. */
  readonly mimeType?: string
  /** Bytes of the raw content, if known. */
  readonly size?: number
  /** Hints for the client. Default: those of the template. */
  readonly annotations?: Annotations
  /** Images that clients can show next to its name. Default: those of the template. */
  readonly icons?: readonly Icon[]
  /** The `_meta` of the entry. Default: that of the template. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** Options of `server.resource`. */
export interface ResourceFacts<C = unknown, V extends string = string> {
  /** The name of the resource in lists. */
  readonly name: string
  /** The name that people see. Default: `name`. */
  readonly title?: string
  /** What the resource holds, in a sentence. Default: none. */
  readonly description?: string
  /** The media type of the contents, for example `text/markdown`. Default: none is stated. */
  readonly mimeType?: string
  /** The size of the raw content in bytes. Not for templates. */
  readonly size?: number
  /** Images that clients can show next to the name. Default: none. */
  readonly icons?: readonly Icon[]
  /** Hints for the client: `audience`, `priority`, `lastModified`. Default: none. */
  readonly annotations?: Annotations
  /** The `_meta` of the entry in lists. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** Scopes that the caller's token must have, in addition to those that every request needs. Default: none. */
  readonly scopes?: readonly string[]
  /** How long clients may cache the contents. Default: the option `cache` of the server. */
  readonly cache?: CacheOptions
  /** Returns the resources that the template stands for. Called for each list. Default: none are listed. */
  readonly list?: (context: C) => Awaitable<readonly ListedResource[]>
  /** Proposes values for the variables of a template. Default: none. */
  readonly complete?: { readonly [name in V]?: Completer<C> }
}

const kinds: KindsOf<ResourceFacts> = {
  name: 'string',
  title: 'string',
  description: 'string',
  mimeType: 'string',
  size: 'number',
  icons: 'list',
  annotations: 'object',
  meta: 'object',
  cache: 'object',
  list: 'function',
  complete: 'object',
  scopes: 'list',
}

/** Reads a resource; the variables are those of the template. */
export type ResourceHandler = (variables: never, context: CallContext) => Awaitable<unknown>

/** What reading needs to know of either. */
export interface Readable {
  readonly mimeType: string | undefined
  /** Undefined: as the server says for all. */
  readonly cache: CacheHint | undefined
  readonly scopes: readonly string[] | undefined
  readonly handler: ResourceHandler
}

/** A resource in the catalog. */
export interface ResourceEntry extends Readable {
  readonly uri: string
  readonly resource: Resource
}

/** A template in the catalog. */
export interface TemplateEntry extends Readable {
  readonly uriTemplate: string
  readonly template: Template
  readonly shown: ResourceTemplate
  readonly completers: Completers<CallContext>
  readonly completes: boolean
  readonly list: ResourceFacts<CallContext>['list']
}

/** Checks what an author says of a resource, and makes its entry. */
export function compileResource(
  uri: string,
  facts: ResourceFacts<CallContext>,
  handler: ResourceHandler,
  standard: CacheHint,
): ResourceEntry {
  if (!/^[A-Za-z][A-Za-z0-9+.-]*:./.test(uri))
    throw new TypeError(`"${clip(uri)}" is not a URI: begin it with a scheme, such as file:///`)
  check(`Resource "${clip(uri)}"`, facts, handler)
  if (facts.list !== undefined || facts.complete !== undefined) {
    throw new TypeError(
      `The resource "${clip(uri)}" has no variables: list and complete are only for templates, such as ticket://{id}`,
    )
  }
  return { uri, resource: { uri, ...described(facts), ...given({ size: facts.size }) }, ...readable(facts, handler, standard) }
}

/** Checks what an author says of a template, and makes its entry. */
export function compileTemplate(
  uriTemplate: string,
  facts: ResourceFacts<CallContext>,
  handler: ResourceHandler,
  standard: CacheHint,
): TemplateEntry {
  const template = parseTemplate(uriTemplate)
  check(`Resource template "${clip(uriTemplate)}"`, facts, handler)
  const given = new Map(Object.entries<Completer<CallContext> | undefined>(facts.complete ?? {}))
  for (const name of given.keys()) {
    if (!template.variables.includes(name))
      throw new TypeError(`The template "${clip(uriTemplate)}" has no variable "${clip(name)}" to complete`)
  }
  checkCompleters(`Resource template "${clip(uriTemplate)}"`, given)
  return {
    uriTemplate,
    template,
    shown: { uriTemplate, ...described(facts) },
    completers: new Map(template.variables.map(name => [name, given.get(name)])),
    completes: given.size > 0,
    list: facts.list,
    ...readable(facts, handler, standard),
  }
}

function check(where: string, facts: ResourceFacts<never>, handler: unknown): void {
  checkHandler(where, handler, "resource(address, { name: 'note' }, handler)")
  checkOptions(where, facts, kinds)
  if (facts.name === undefined || facts.name === '')
    throw new TypeError(`${where} needs a name: resource(address, { name: 'note' }, handler)`)
}

function readable(
  { mimeType, cache, scopes }: ResourceFacts<CallContext>,
  handler: ResourceHandler,
  standard: CacheHint,
): Readable {
  return { mimeType, cache: cache === undefined ? undefined : cacheHint(cache, standard), scopes, handler }
}

type DescribedEntry = Omit<ListedResource, 'uri' | 'name' | 'size'> & { readonly name: string }

/** The members that resources and templates share, as the wire spells them. */
function described({
  name,
  title,
  description,
  mimeType,
  annotations,
  icons,
  meta,
}: DescribedEntry): Omit<Resource, 'uri' | 'size'> {
  return { name, ...given({ title, description, mimeType, annotations, icons, _meta: meta }) }
}

// The list of resources where some are only known by asking: first what is registered, then what each template lists.
// A position is where the page before it ended: a place in the catalog, or a template and how far its list was told.

interface Listing {
  readonly resources: Catalog<ResourceEntry>
  /** The templates that list, in order. */
  readonly templates: readonly TemplateEntry[]
  readonly context: CallContext
}

interface ListingPage {
  readonly items: readonly Resource[]
  readonly next: unknown
}

/** One page of `resources/list`: first the resources, then what the templates list themselves. */
export async function readListing(listing: Listing, after: unknown, limit: number): Promise<ListingPage> {
  const { resources, templates } = listing
  const items: Resource[] = []
  let start = 0
  let told = 0
  if (Array.isArray(after)) {
    start = templates.findIndex(({ uriTemplate }) => uriTemplate === after[0])
    told = Number(after[1])
    if (start === -1)
      throw new McpError(
        'invalid-params',
        'params.cursor refers to a template that no longer exists; start again without a cursor',
      )
  } else {
    const { entries, next } = resources.snapshot.page(Number(after), limit)
    for (const { resource } of entries) items.push(resource)
    if (next !== undefined) return { items, next }
  }
  for (const template of templates.slice(start)) {
    const all = await listed(listing, template)
    const end = Math.min(told + limit - items.length, all.length)
    items.push(...all.slice(told, end))
    if (end < all.length) return { items, next: [template.uriTemplate, end] }
    told = 0
  }
  return { items, next: undefined }
}

/** A resource that is registered under its own URI is told once. */
async function listed({ resources, context }: Listing, { list, shown }: TemplateEntry): Promise<readonly Resource[]> {
  const entries = (await list?.(context)) ?? []
  const standard = { name: shown.name, ...given({ mimeType: shown.mimeType }) }
  return entries
    .filter(({ uri }) => resources.get(uri) === undefined)
    .map(entry => ({ uri: entry.uri, ...described({ ...standard, ...entry }), ...given({ size: entry.size }) }))
}
