/** What is known without asking strangers: manifests at hand, and what connected servers recommend. */
import { importManifest } from '../../features/reliability/manifest/exchange.ts'
import {
  type Confidence,
  fit,
  fitting,
  type Recommended,
  recommendedOf,
} from '../../features/reliability/recommendations/client.ts'
import { judgeDestination } from '../../transports/outbound/destination.ts'
import type { OutboundOptions } from '../../transports/outbound/outbound.ts'
import type { Client } from '../client.ts'
import type { Candidate, CandidateSource, Found } from './candidate.ts'

/** Of a client what the finder needs of it. */
export type Recommender = Pick<Client, 'recommend' | 'server'>

export interface LocalOptions extends OutboundOptions {
  readonly trusted: (name: string) => boolean
}

/** A manifest at hand tells of its own server, and of those it recommends. */
export function ofManifest(value: unknown, options: LocalOptions): (wish: string) => Found {
  const { tools, about } = importManifest(value)
  const { name, description, version } = about.server
  const words = tools.snapshot.entries.map(tool => `${tool.name} ${tool.description ?? ''}`)
  const text = [name, description, ...words].join(' ')
  const source: CandidateSource = { kind: 'manifest', name }
  return wish => {
    const confidence = fit(wish, text)
    // Whoever gave us the manifest knows the server.
    const own = confidence === undefined ? [] : [{ ...blank(name, confidence, source, true), description, version }]
    const others = fitting(wish, about.recommendations ?? []).map(recommendedOf)
    return { candidates: [...own, ...named(others, source, options)], faults: [] }
  }
}

export async function ofServer(server: Recommender, wish: string, limit: number, options: LocalOptions): Promise<Found> {
  const source: CandidateSource = { kind: 'server', name: server.server?.name ?? '' }
  const recommended = await server.recommend(wish, { limit })
  return { candidates: named(recommended, source, options), faults: [] }
}

/** What a server names has no address yet; one to read about it must be one that may be read. */
function named(recommended: readonly Recommended[], source: CandidateSource, options: LocalOptions): readonly Candidate[] {
  return recommended.map(({ server, confidence, registryUrl, authFlow }) => {
    const refused = registryUrl === undefined ? undefined : judgeDestination(registryUrl, options)
    const bad = refused instanceof Error
    return {
      ...blank(server, confidence, source, options.trusted(source.name)),
      authFlow,
      registryUrl: bad ? undefined : registryUrl,
      warnings: bad ? [refused.message] : [],
    }
  })
}

function blank(name: string, confidence: Confidence, source: CandidateSource, trusted: boolean): Candidate {
  const nothing = { title: undefined, description: undefined, version: undefined, registryUrl: undefined, authFlow: undefined }
  return { name, confidence, source, trusted, ...nothing, remotes: [], packages: [], warnings: [] }
}
