/**
 * Quotas: so much in each period, the same for everybody; each period is a budget that nobody has to be given. And the charges
 * that are given back when what they paid for is rolled back.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import { add, type Op, put, remove, type Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import type { Grant } from './grant.ts'

/** A limit on units or calls in each period, for everybody or for one owner. */
export interface Quota {
  /** Names it among all quotas. */
  readonly name: string
  /** What is counted: the units that calls cost, or the calls. */
  readonly counts: 'units' | 'calls'
  /** Units or calls in one period. */
  readonly most: number
  /** Periods follow each other without a gap, counted from the epoch. */
  readonly periodMs: number
  /** Whose it is, where that is not the caller: those who have the same one share it. */
  readonly owner?: string
}

/** What is left of a quota in the present period. */
export interface QuotaStatus {
  readonly quota: Quota
  /** Neither spent nor reserved. */
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

// What was paid for something that may be taken back: kept until then, given back with it, and once.

/** Counted in one place. */
interface Charge {
  readonly key: string
  readonly count: number
  /** When that place is forgotten: milliseconds since the epoch. */
  readonly expires: number
}

/** The step that keeps it. Nothing can be given back to what is forgotten, so it is kept no longer. */
export function keepChargesOp(key: string, charges: readonly Charge[], clock: Clock): Op {
  const ttl = Math.max(0, ...charges.map(({ expires }) => expires)) - clock.now()
  return put(chargeKey(key), JSON.stringify(charges), { ttl: Math.max(1, ttl) })
}

/** The steps that give back what is kept; none where there is nothing. They conflict where another was faster. */
export async function refundOps(store: Store, clock: Clock, key: string): Promise<readonly Op[]> {
  const entry = await store.get(chargeKey(key))
  if (entry === undefined) return []
  const now = clock.now()
  const charges = readCharges(entry.value).filter(({ expires, count }) => expires > now && count > 0)
  return [remove(entry.key, entry.version), ...charges.map(({ key, count, expires }) => add(key, -count, { ttl: expires - now }))]
}

function chargeKey(key: string): string {
  return `charge/${key}`
}

function readCharges(text: string): readonly Charge[] {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value) && value.every(isCharge)) return value
  throw new Error('A stored payment does not have the expected form. Another program may have written it')
}

function isCharge(value: unknown): value is Charge {
  return (
    isRecord(value) &&
    typeof value['key'] === 'string' &&
    typeof value['count'] === 'number' &&
    typeof value['expires'] === 'number'
  )
}
