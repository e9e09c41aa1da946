/** Manifests that come and go as documents: checked, taken into a catalog, and written as they came. */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Tool } from '../../mcp/tools/messages.ts'
import type { WireEventType } from '../events/messages.ts'
import type { WireManifest } from './messages.ts'
import { manifestShape } from './shape.ts'
import { entryOf, toolOf } from './tool-entry.ts'

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

export function importManifest(value: unknown): ImportedManifest {
  const { tools: entries, events: types, ...about } = readManifest(value)
  const tools = createCatalog<Tool>({ noun: 'tool', key: tool => tool.name })
  for (const entry of entries) tools.add(toolOf(entry))
  const events = types && createCatalog<WireEventType>({ noun: 'event', key: ({ name }) => name })
  for (const type of types ?? []) events?.add(type)
  return { tools, events, about }
}

export function exportManifest({ tools, events, about }: ImportedManifest): WireManifest {
  const listed = tools.snapshot.entries.map(tool => entryOf(tool))
  return { ...about, tools: listed, ...(events === undefined ? {} : { events: events.snapshot.entries }) }
}
