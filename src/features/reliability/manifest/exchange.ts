/** Manifests that come and go as documents: checked, taken into a catalog, and written as they came. */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Tool } from '../../mcp/tools/messages.ts'
import type { WireManifest } from './messages.ts'
import { manifestShape } from './shape.ts'
import { entryOf, toolOf } from './tool-entry.ts'

/** The most tools of one manifest. */
const maxTools = 10_000

/** What was taken in: tools as a list has them, and what is said of the whole. */
export interface ImportedManifest {
  readonly tools: Catalog<Tool>
  readonly about: Omit<WireManifest, 'tools'>
}

/** Checks what calls itself a manifest. Throws a TypeError that names the member that is wrong. */
export function readManifest(value: unknown): WireManifest {
  const fault = manifestShape.check(value)
  if (fault !== undefined) {
    const where = fault.path === '' ? 'The manifest' : `The manifest's ${clip(fault.path)}`
    throw new TypeError(`${where} must be ${fault.expected}`)
  }
  const manifest = value as WireManifest
  if (manifest.tools.length > maxTools)
    throw new TypeError(`The manifest has ${manifest.tools.length} tools; the limit is ${maxTools}`)
  return manifest
}

export function importManifest(value: unknown): ImportedManifest {
  const { tools: entries, ...about } = readManifest(value)
  const tools = createCatalog<Tool>({ noun: 'tool', key: tool => tool.name })
  for (const entry of entries) tools.add(toolOf(entry))
  return { tools, about }
}

export function exportManifest({ tools, about }: ImportedManifest): WireManifest {
  return { ...about, tools: tools.snapshot.entries.map(tool => entryOf(tool)) }
}
