/** Server side of recommendations: from a list, or from the author's function. */
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, given } from '../../../jsonrpc/message.ts'
import {
  type Confidence,
  confidences,
  recommendationsExtension,
  recommendationsPort,
  recommendServers,
  type WireRecommendation,
} from './messages.ts'

/** A recommended server. */
export interface Recommendation {
  /** What it can do: `design_mockup`. */
  readonly capability: string
  /** The name of the server. */
  readonly server: string
  /** Its registry entry. */
  readonly registryUrl?: string
  /** How to authenticate. */
  readonly authFlow?: string
  /** Your confidence. Default `medium`. */
  readonly confidence?: Confidence
}

/** Finds servers for a capability. */
type Recommend = (capability: string) => Awaitable<readonly Recommendation[]>

/** The options of `createServer` that this feature reads. */
export interface RecommendationsServerOptions {
  /** Other servers to recommend: a list, or a function that finds them. Default: none. */
  readonly recommendations?: readonly Recommendation[] | Recommend
}

/** The server feature: the option `recommendations`. */
export const recommendationsFeature = defineServerFeature<RecommendationsServerOptions>({
  name: 'recommendations',
  options: { recommendations: 'any' },
  setup: (_, { recommendations }) => {
    if (recommendations === undefined) return { provides: provide(recommendationsPort, { listed: [] }) }
    if (typeof recommendations !== 'function' && !Array.isArray(recommendations))
      throw new TypeError('recommendations must be a list, or a function that returns one')
    const listed = typeof recommendations === 'function' ? [] : recommendations.map(toWire)
    const found = async (wish: string): Promise<readonly WireRecommendation[]> => {
      const { fitting, surest } = await import('./ranking.ts')
      // The author's function already selects what matches.
      return typeof recommendations === 'function' ? surest((await recommendations(wish)).map(toWire)) : fitting(wish, listed)
    }
    const side: Side = {
      handlers: [[recommendServers, (exchange: Exchange) => recommend(exchange, found)]],
      capabilities: revision => extensionCapability(revision, recommendationsExtension),
    }
    return { sides: [side], provides: provide(recommendationsPort, { listed }) }
  },
})

/** Maximum and default number of entries. */
const most = 100
const usual = 10
/** Limit of a request in characters. */
const wishLength = 1_000

// Handles `servers/recommend`.
async function recommend({ params }: Exchange, found: (wish: string) => Promise<readonly WireRecommendation[]>) {
  const wish = params['capability_needed'] as string
  const limit = (params['limit'] as number | undefined) ?? usual
  if (wish.trim() === '' || wish.length > wishLength)
    throw new McpError('invalid-params', `params.capability_needed must name a capability in 1 to ${wishLength} characters`)
  if (limit < 1 || limit > most) throw new McpError('invalid-params', `params.limit must be a number from 1 to ${most}`)
  return { capability_needed: wish, recommendations: (await found(wish)).slice(0, limit) }
}

const kinds: KindsOf<Recommendation> = {
  capability: 'string',
  server: 'string',
  registryUrl: 'string',
  authFlow: 'string',
  confidence: 'string',
}

// Checks and writes a recommendation.
function toWire(recommendation: Recommendation): WireRecommendation {
  checkOptions('A recommendation', recommendation, kinds)
  const { capability, server, registryUrl, authFlow, confidence = 'medium' } = recommendation
  if (typeof capability !== 'string' || typeof server !== 'string')
    throw new TypeError("A recommendation needs a capability and a server: { capability: 'wiki', server: 'com.example/wiki' }")
  if (!confidences.includes(confidence))
    throw new TypeError(`The confidence of a recommendation is "${clip(String(confidence))}"; give ${confidences.join(', ')}`)
  return {
    capability,
    server_name: server,
    ...given({ registry_url: registryUrl, auth_flow: authFlow }),
    match_confidence: confidence,
  }
}
