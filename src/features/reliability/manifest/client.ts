/** Using the manifest of a server, or putting one together where it has none. */
import type { SendOptions } from '../../../engine/calls.ts'
import { defineClientFeature, extend, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Capabilities, Implementation, Revision } from '../../../revisions/index.ts'
import { cachePort } from '../../mcp/caching/messages.ts'
import { announcements } from '../../mcp/subscriptions/messages.ts'
import { clientToolsPort, type Tool } from '../../mcp/tools/messages.ts'
import { readManifest } from './exchange.ts'
import {
  type ClientManifest,
  getManifest,
  manifestExtension,
  manifestPort,
  manifestUri,
  manifestVersion,
  type WireManifest,
  type WireManifestResult,
} from './messages.ts'
import { entryOf } from './tool-entry.ts'
import { type Manifest, viewOf } from './view.ts'

export { readManifest } from './exchange.ts'
export type { Manifest, ManifestTool } from './view.ts'

/** Reading a server's manifest. */
export interface ManifestClientApi {
  /**
   * All that is known of the server before a call: its tools with their scopes, cost, risk and limits. Kept as long as the server
   * lets us; of a server that has none it is put together from its lists.
   */
  manifest(options?: RequestOptions): Promise<Manifest>
}

/** Reads the manifest: good until its time is over or a change is announced, then asked for by its revision. */
export const manifestClient = defineClientFeature<object, ClientManifest>({
  name: 'manifest',
  provides: manifestPort,
  uses: [cachePort, clientToolsPort],
  options: {},
  setup(kit) {
    let last: WireManifestResult | undefined
    const fetch = async (send: SendOptions): Promise<WireManifestResult> => {
      const cache = kit.port(cachePort)
      const place = cache.place(getManifest.name, {}, send.meta)
      const kept = cache.get(place) as WireManifestResult | undefined
      if (kept !== undefined) return kept
      const before = last
      const params = before === undefined ? {} : { if_revision: before.revision }
      const result = resultOf(await kit.session.request(getManifest, params, send), before)
      cache.put(place, result)
      last = result
      return result
    }
    const client: ManifestClientApi = {
      manifest: async options => {
        const { revision, capabilities, serverInfo } = kit.session.opened
        if (hasManifest(revision, capabilities)) {
          const { manifest, revision: digest } = await fetch(kit.send(options))
          return viewOf(manifest, digest, false)
        }
        const tools: Tool[] = []
        for await (const tool of kit.port(clientToolsPort).tools()) tools.push(tool)
        return viewOf(partialManifest(serverInfo, revision, tools), undefined, true)
      },
    }
    return {
      client,
      port: client,
      // Where each request declares for itself, the one that asks for it does: the others have no use for it.
      side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, manifestExtension) : {}) },
      extensions: [
        extend(announcements, (topic, uri) => {
          if (topic === 'tools' || (topic === 'updated' && uri === manifestUri)) kit.port(cachePort).drop(getManifest.name)
        }),
      ],
    }
  },
})

function hasManifest(revision: Revision, capabilities: Capabilities): boolean {
  return declared({ revision, capabilities }, manifestExtension) !== undefined
}

/** What a server answered: checked, and together with what is kept where that still holds. */
function resultOf(answer: unknown, kept: WireManifestResult | undefined): WireManifestResult {
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
function partialManifest(info: Implementation | undefined, revision: Revision, tools: readonly Tool[]): WireManifest {
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
