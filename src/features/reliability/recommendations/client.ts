/** Asking a server which others it would recommend. What it says is a hint of somebody who may be wrong, or worse. */
import { defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Capabilities, Revision } from '../../../revisions/index.ts'
import { manifestPort } from '../manifest/messages.ts'
import {
  type Confidence,
  recommendationsExtension,
  recommendedShape,
  recommendServers,
  type WireRecommendation,
} from './messages.ts'
import { fitting } from './ranking.ts'

export type { Confidence } from './messages.ts'
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

/** Asking a server for other servers. */
export interface RecommendationsClientApi {
  /** The servers that this one recommends for a capability that it lacks, the surest first. Nothing connects to them. */
  recommend(capability: string, options?: RequestOptions & { readonly limit?: number }): Promise<readonly Recommended[]>
}

/** Asks for recommendations, or looks them up in the manifest where the server answers no questions about that. */
export const recommendationsClient = defineClientFeature({
  name: 'recommendations',
  uses: [manifestPort],
  options: {},
  setup(kit) {
    const client: RecommendationsClientApi = {
      recommend: async (capability, options = {}) => {
        const { limit } = options
        const { revision, capabilities } = kit.session.opened
        if (recommends(revision, capabilities)) {
          const params = { capability_needed: capability, ...(limit === undefined ? {} : { limit }) }
          const answer = await kit.session.request(recommendServers, params, kit.send(options))
          return recommendationsIn(answer).slice(0, limit).map(recommendedOf)
        }
        const { document } = await kit.port(manifestPort).manifest(options)
        return fitting(capability, document.recommendations ?? [])
          .slice(0, limit)
          .map(recommendedOf)
      },
    }
    return {
      client,
      // Where each request declares for itself, the one that asks does.
      side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, recommendationsExtension) : {}) },
    }
  },
})

function recommends(revision: Revision, capabilities: Capabilities): boolean {
  return declared({ revision, capabilities }, recommendationsExtension) !== undefined
}

function recommendationsIn(answer: unknown): readonly WireRecommendation[] {
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
