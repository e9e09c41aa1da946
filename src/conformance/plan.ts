/** Which scenarios are run on a peer, and which are skipped and why: made of what the peer says of itself. */
import type { Advertised, Carrier, Heading, RevisionId, Role, Scenario } from './scenario.ts'
import { carries } from './wire/envelope.ts'

export const allRevisions: readonly RevisionId[] = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
  'draft-2026-v1',
  's3',
]

/** One revision on one carrier. */
export interface Cell {
  readonly revision: RevisionId
  readonly carrier: Carrier
}

export function cellsOf(revisions: readonly RevisionId[], carriers: readonly Carrier[]): readonly Cell[] {
  return carriers.flatMap(carrier =>
    revisions.filter(revision => carries(revision, carrier)).map(revision => ({ revision, carrier })),
  )
}

export interface PlanOptions {
  readonly only?: RegExp | undefined
  readonly allowWrites: boolean
}

/** A scenario, and why it is skipped; neither reason nor fault: it is run. */
export interface Planned {
  readonly scenario: Scenario
  readonly skip?: string
  /** The kit could not even find out whether it applies. */
  readonly fault?: string
}

/** The scenarios that a cell has, by role, revision, carrier and choice. */
export function scenariosFor<S extends Heading>(role: Role, { revision, carrier }: Cell, scenarios: readonly S[], only?: RegExp) {
  return scenarios.filter(
    scenario =>
      scenario.role === role &&
      scenario.revisions.includes(revision) &&
      (scenario.carriers ?? [carrier]).includes(carrier) &&
      (only === undefined || only.test(scenario.id) || scenario.proves.some(statement => only.test(statement))),
  )
}

export function planFor(peer: Advertised, scenarios: readonly Scenario[], options: PlanOptions): readonly Planned[] {
  return scenariosFor(peer.role, peer, scenarios, options.only).map(scenario => planned(scenario, peer, options))
}

function planned(scenario: Scenario, peer: Advertised, { allowWrites }: PlanOptions): Planned {
  if (scenario.writes === true && !allowWrites) return { scenario, skip: 'it may write: allow that to run it' }
  try {
    const skip = scenario.needs(peer)
    return skip === undefined ? { scenario } : { scenario, skip }
  } catch (error) {
    return { scenario, fault: error instanceof Error ? error.message : String(error) }
  }
}
