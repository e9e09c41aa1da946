/** Recommendations on the wire: which other servers can do what this one cannot. Hints, never a permission to connect. */
import { NS, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { array, type Infer, integer, object, oneOf, optional, string } from '../../../jsonrpc/shape.ts'

/** What other features may use of recommendations. */
interface RecommendationsPort {
  /** Those that hold for every wish. */
  readonly listed: readonly WireRecommendation[]
}

/** What other features may use of recommendations. */
export const recommendationsPort = port<RecommendationsPort>('recommendations')

/** The name of the extension. */
export const recommendationsExtension = `${NS}/recommendations`

/** In falling order. */
export const confidences = ['high', 'medium', 'low'] as const
/** How sure a recommendation is. */
export type Confidence = (typeof confidences)[number]

/** One entry, in an answer and in a manifest. */
export const recommendationShape = object({
  capability: string,
  server_name: string,
  registry_url: optional(string),
  auth_flow: optional(string),
  match_confidence: optional(oneOf(...confidences)),
})
/** A recommendation as it is sent. */
export type WireRecommendation = Infer<typeof recommendationShape>

export const recommendedShape = object({ recommendations: array(recommendationShape) })

export interface WireRecommended {
  readonly capability_needed: string
  readonly recommendations: readonly WireRecommendation[]
}

export const recommendServers = request<WireRecommended>()({
  name: 'servers/recommend',
  to: 'server',
  in: officialIds,
  extension: recommendationsExtension,
  declares: { extensions: { [recommendationsExtension]: {} } },
  params: object({ capability_needed: string, limit: optional(integer) }),
})
