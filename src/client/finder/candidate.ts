/** A server that may be able to do what is wanted, and who says so. Words about it, no way into it: whoever wants it connects himself. */
import type { Confidence } from '../../features/reliability/recommendations/client.ts'
import type { Remote, ServerPackage } from '../../features/reliability/recommendations/listing.ts'

export interface CandidateSource {
  /** A manifest at hand, a connected server, a registry, a site's catalog, or a server's own card. */
  readonly kind: 'manifest' | 'server' | 'registry' | 'catalog' | 'card'
  /** The name of the server, or the address. */
  readonly name: string
}

export interface Candidate {
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly version: string | undefined
  readonly confidence: Confidence
  /** Who says so. */
  readonly source: CandidateSource
  /** Whether the option `trusted` names that source. Else it is the word of a stranger: show it as such. */
  readonly trusted: boolean
  /** Where it can be reached, as far as told. */
  readonly remotes: readonly Remote[]
  /** What would have to be installed to run it. */
  readonly packages: readonly ServerPackage[]
  /** Where it is described, if that was told. */
  readonly registryUrl: string | undefined
  /** How one gets in, if that was told. */
  readonly authFlow: string | undefined
  /** What the user should know before he decides. */
  readonly warnings: readonly string[]
}

/** A source that did not answer as it should: the others do all the same. */
export interface FinderFault {
  readonly source: string
  readonly reason: string
}

export interface Found {
  readonly candidates: readonly Candidate[]
  readonly faults: readonly FinderFault[]
}
