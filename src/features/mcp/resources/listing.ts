/**
 * The list of resources where some are only known by asking: first what is registered, then what each template lists.
 * A position is where the page before it ended: a place in the catalog, or a template and how far its list was told.
 */
import type { Catalog } from '../../../core/catalog.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { described, type ListedResource, type ResourceEntry, type TemplateEntry } from './entry.ts'
import type { Resource } from './messages.ts'

interface Listing<C> {
  readonly resources: Catalog<ResourceEntry<C>>
  /** The templates that list, in order. */
  readonly templates: readonly TemplateEntry<C>[]
  readonly context: C
}

interface ListingPage {
  readonly items: readonly Resource[]
  readonly next: unknown
}

export async function readListing<C>(listing: Listing<C>, after: unknown, limit: number): Promise<ListingPage> {
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
async function listed<C>({ resources, context }: Listing<C>, { list, shown }: TemplateEntry<C>): Promise<readonly Resource[]> {
  const entries = (await list?.(context)) ?? []
  return entries.filter(({ uri }) => resources.get(uri) === undefined).map(entry => toResource(entry, shown.name, shown.mimeType))
}

function toResource(entry: ListedResource, name: string, mimeType: string | undefined): Resource {
  const { uri, size } = entry
  const standard = mimeType === undefined ? {} : { mimeType }
  return { uri, ...described({ name, ...standard, ...entry }), ...(size === undefined ? {} : { size }) }
}
