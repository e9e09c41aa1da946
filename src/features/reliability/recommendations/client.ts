/** Asking a server which others it would recommend. What it says is a hint of somebody who may be wrong, or worse. */
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Capabilities, Revision } from '../../../revisions/index.ts'
import { type Confidence, recommendationsExtension, recommendedShape, type WireRecommendation } from './messages.ts'

export { type Confidence, recommendServers } from './messages.ts'
export { fit, fitting, surestFirst, weaker } from './ranking.ts'

/** Another server that a server names. */
export interface Recommended {
  readonly capability: string
  /** The name of the server. */
  readonly server: string
  readonly registryUrl: string | undefined
  readonly authFlow: string | undefined
  readonly confidence: Confidence
}

/** Where each request declares for itself, the one that asks does. */
export function recommendationsClient(): Side {
  return { capabilities: revision => (revision.era === 'session' ? declaration(revision, recommendationsExtension) : {}) }
}

export function recommends(revision: Revision, capabilities: Capabilities): boolean {
  return declared({ revision, capabilities }, recommendationsExtension) !== undefined
}

export function recommendationsIn(answer: unknown): readonly WireRecommendation[] {
  const fault = recommendedShape.check(answer)
  if (fault !== undefined)
    throw new McpError(
      'invalid-result',
      `The server answered servers/recommend, but ${clip(fault.path)} must be ${fault.expected}`,
    )
  return (answer as { readonly recommendations: readonly WireRecommendation[] }).recommendations
}

export function recommendedOf(wire: WireRecommendation): Recommended {
  return {
    capability: wire.capability,
    server: wire.server_name,
    registryUrl: wire.registry_url,
    authFlow: wire.auth_flow,
    confidence: wire.match_confidence ?? 'medium',
  }
}
