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

/** What a template's `list` gives: a name and type of its own, or else the template's. */
interface ListedResource {
  readonly uri: string
  readonly name?: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly size?: number
  readonly annotations?: Annotations
  readonly icons?: readonly Icon[]
  readonly meta?: Readonly<Record<string, unknown>>
}

/** What an author says of a resource or a template. */
export interface ResourceFacts<C = unknown, V extends string = string> {
  /** Names it in lists. */
  readonly name: string
  /** The name that people are shown. */
  readonly title?: string
  /** What is in it, in a sentence. */
  readonly description?: string
  /** Of what is in it, such as `text/markdown`. */
  readonly mimeType?: string
  /** Bytes of the raw content; of a plain resource only. */
  readonly size?: number
  /** Pictures that clients may show beside its name. */
  readonly icons?: readonly Icon[]
  /** For whom it is, and how much it matters: `audience`, `priority`, `lastModified`. */
  readonly annotations?: Annotations
  /** Members of `_meta` that are listed with it. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** Scopes that a caller's token must have, beyond those that every request needs. */
  readonly scopes?: readonly string[]
  /** How long clients may keep what they read. Default: as the server says for all. */
  readonly cache?: CacheOptions
  /** The resources that a template stands for, where they can be told. Asked anew for each list. */
  readonly list?: (context: C) => Awaitable<readonly ListedResource[]>
  /** Suggestions for the variables of a template. */
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
    throw new TypeError(`"${clip(uri)}" is no URI: begin it with a scheme, such as file:///`)
  check(`Resource "${clip(uri)}"`, facts, handler)
  if (facts.list !== undefined || facts.complete !== undefined) {
    throw new TypeError(
      `The resource "${clip(uri)}" stands for itself alone: list and complete are for templates, such as ticket://{id}`,
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

type Described = Omit<ListedResource, 'uri' | 'name' | 'size'> & { readonly name: string }

/** The members that resources and templates share, as the wire spells them. */
function described({ name, title, description, mimeType, annotations, icons, meta }: Described): Omit<Resource, 'uri' | 'size'> {
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
      throw new McpError('invalid-params', 'params.cursor points to a template that is gone; start again without a cursor')
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
