/** Recommendations on the wire: other servers that can do what this one cannot. Hints, never a permission to connect. */
import { NS, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { array, type Infer, integer, object, oneOf, optional, string } from '../../../jsonrpc/shape.ts'

/** The port of this feature; `listed`: recommendations for any request. */
export const recommendationsPort = port<{ readonly listed: readonly WireRecommendation[] }>('recommendations')

/** The extension name. */
export const recommendationsExtension = `${NS}/recommendations`

/** Confidence levels, in descending order. */
export const confidences = ['high', 'medium', 'low'] as const
/** How confident a recommendation is. */
export type Confidence = (typeof confidences)[number]

/** The shape of a recommendation. */
export const recommendationShape = object({
  capability: string,
  server_name: string,
  registry_url: optional(string),
  auth_flow: optional(string),
  match_confidence: optional(oneOf(...confidences)),
})
/** A recommendation on the wire. */
export type WireRecommendation = Infer<typeof recommendationShape>

/** The shape of the answer. */
export const recommendedShape = object({ recommendations: array(recommendationShape) })

/** The answer to `servers/recommend`. */
interface WireRecommended {
  readonly capability_needed: string
  readonly recommendations: readonly WireRecommendation[]
}

/** Asks for recommendations. */
export const recommendServers = request<WireRecommended>()({
  name: 'servers/recommend',
  to: 'server',
  in: officialIds,
  extension: recommendationsExtension,
  declares: { extensions: { [recommendationsExtension]: {} } },
  params: object({ capability_needed: string, limit: optional(integer) }),
})
