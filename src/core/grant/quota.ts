/** Quotas: so much in each period, the same for everybody. Each period is a budget that nobody has to be given. */
import type { Grant } from './grant.ts'

export interface Quota {
  /** Names it among all quotas. */
  readonly name: string
  /** What is counted: the units that calls cost, or the calls. */
  readonly counts: 'units' | 'calls'
  readonly most: number
  readonly periodMs: number
  /** Whose it is, where that is not the caller: those who have the same one share it. */
  readonly owner?: string
}

/** What is left of a quota in the present period. */
export interface QuotaStatus {
  readonly quota: Quota
  readonly remaining: number
  /** Milliseconds since the epoch. */
  readonly resetsAt: number
}

/** The budget of the period in which `now` lies. Periods begin at the same moment in every process. */
export function periodOf({ name, most, periodMs }: Quota, owner: string, now: number): Grant {
  const issuedAt = Math.floor(now / periodMs) * periodMs
  return {
    // No grant has such an id, and names may hold slashes.
    id: `quota~${encodeURIComponent(name)}~${periodMs}~${issuedAt}`,
    owner,
    effect: 'budget',
    action: '*',
    resource: '*',
    units: most,
    source: 'quota',
    issuedAt,
    expires: issuedAt + periodMs,
  }
}
