/** The journal of a process on a store: what it claims, and that it is alive. One for all who write into it. */
import type { Store } from '../../stores/store.ts'
import type { Audit } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { JournalCapacity } from './capacity.ts'
import { Claims } from './claims.ts'
import { Unsettled } from './operation.ts'
import { Runners } from './runners.ts'

interface JournalOptions {
  readonly store: Store
  readonly clock: Clock
  /** Records in all. Default 1,000,000. */
  readonly records?: number | undefined
  /** Characters of all records. Default 256 Mi, or half of a store that holds less than twice that. */
  readonly length?: number | undefined
  readonly leaseMs?: number
  /** Ids that nobody can guess. */
  readonly id?: () => string
  /** Where decisions are told that must be found again long after. */
  readonly audit?: Audit | undefined
}

export interface Journal {
  readonly store: Store
  readonly claims: Claims
  readonly runners: Runners
  readonly capacity: JournalCapacity
  readonly unsettled: Unsettled
  readonly audit: Audit | undefined
  /** Ends what keeps it alive; the store stays open. */
  close(): void
}

export function createJournal({ store, clock, records, length, leaseMs, id = randomId, audit }: JournalOptions): Journal {
  const runners = new Runners({ store, clock, id: id(), ...(leaseMs === undefined ? {} : { leaseMs }) })
  const unsettled = new Unsettled({ store, clock })
  const capacity = new JournalCapacity({ store, clock, runners, records, length, runsHere: place => claims.runs(place) })
  const claims = new Claims({ store, clock, runners, capacity, unsettled, id })
  const close = (): void => {
    runners.close()
    unsettled.close()
  }
  return { store, runners, capacity, unsettled, audit, claims, close }
}

function randomId(): string {
  return crypto.randomUUID()
}
