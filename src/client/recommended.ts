/** What a server recommends: asked for, or looked up in its manifest where it answers no questions about that. */
import type { SendOptions } from '../engine/calls.ts'
import type { Manifest } from '../features/reliability/manifest/client.ts'
import {
  fitting,
  type Recommended,
  recommendationsIn,
  recommendedOf,
  recommendServers,
  recommends,
} from '../features/reliability/recommendations/client.ts'
import type { Session } from './session.ts'

export async function recommended(
  session: Session,
  capability: string,
  limit: number | undefined,
  send: SendOptions,
  manifest: () => Promise<Manifest>,
): Promise<readonly Recommended[]> {
  const { revision, capabilities } = session.opened
  if (recommends(revision, capabilities)) {
    const params = { capability_needed: capability, ...(limit === undefined ? {} : { limit }) }
    const answer = await session.request(recommendServers, params, send)
    return recommendationsIn(answer).slice(0, limit).map(recommendedOf)
  }
  const { document } = await manifest()
  return fitting(capability, document.recommendations ?? [])
    .slice(0, limit)
    .map(recommendedOf)
}
