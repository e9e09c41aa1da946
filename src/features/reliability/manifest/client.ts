/** Using the manifest of a server, or putting one together where it has none. */
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities, Implementation, Revision } from '../../../revisions/index.ts'
import type { Tool } from '../../mcp/tools/messages.ts'
import { readManifest } from './exchange.ts'
import { manifestExtension, manifestVersion, type WireManifest, type WireManifestResult } from './messages.ts'
import { entryOf } from './tool-entry.ts'

export { readManifest } from './exchange.ts'
export { getManifest, manifestUri } from './messages.ts'
export { type Manifest, type ManifestTool, viewOf } from './view.ts'

/** Where each request declares for itself, the one that asks for it does: the others have no use for it. */
export function manifestClient(): Side {
  return { capabilities: revision => (revision.era === 'session' ? declaration(revision, manifestExtension) : {}) }
}

export function hasManifest(revision: Revision, capabilities: Capabilities): boolean {
  return declared({ revision, capabilities }, manifestExtension) !== undefined
}

/** What a server answered: checked, and together with what is kept where that still holds. */
export function resultOf(answer: unknown, kept: WireManifestResult | undefined): WireManifestResult {
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
export function partialManifest(info: Implementation | undefined, revision: Revision, tools: readonly Tool[]): WireManifest {
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
