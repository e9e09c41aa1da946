/** The manifest on the wire: all that a server offers and what is known of it, under a revision that is the digest of its contents. */

import type { RequestOptions } from '../../../engine/client-feature.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { object, optional, string } from '../../../jsonrpc/shape.ts'
import type { WireManifest, WireRateLimits } from './shape.ts'

export type { WireManifest, WireManifestTool } from './shape.ts'

export const manifestExtension = `${NS}/manifest`
/** Of the document's form, not of what it says. */
export const manifestVersion = '0.1.0'
/** The same document as a resource. */
export const manifestUri = 'manifest:///service'

export interface WireManifestResult {
  readonly revision: string
  readonly manifest: WireManifest
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/** To whoever has this revision already. */
export interface WireNotModified {
  readonly not_modified: true
  readonly revision: string
  /** Counters are in no revision: where there are any, they come all the same. */
  readonly rate_limits?: WireRateLimits
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/** In the `_meta` of a tool whose input and output know pages. */
export interface WirePaged {
  readonly supports_pagination: boolean
}

export const getManifest = request<WireManifestResult | WireNotModified>()({
  name: 'manifest/get',
  to: 'server',
  in: officialIds,
  extension: manifestExtension,
  declares: { extensions: { [manifestExtension]: {} } },
  params: object({ if_revision: optional(string) }),
})

/** The manifest of a server, for other features of a client. */
export interface ClientManifest {
  manifest(options?: RequestOptions): Promise<{ readonly document: WireManifest }>
}

/** The client's copy of the manifest. */
export const manifestPort: Port<ClientManifest> = port('manifest')
