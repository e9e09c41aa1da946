/** The journal of a process on a store: what it claims, and that it is alive. One for all who write into it. */
import type { Store } from '../../stores/store.ts'
import type { Audit } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { Claims } from './claims.ts'
import { Room } from './room.ts'
import { Runners } from './runners.ts'

export interface JournalOptions {
  readonly store: Store
  readonly clock: Clock
  /** Records in all. Default 100,000. */
  readonly records?: number | undefined
  /** Characters of all records. Default 256 Mi. */
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
  readonly audit: Audit | undefined
  /** Ends what keeps it alive; the store stays open. */
  close(): void
}

export function createJournal({ store, clock, records, length, leaseMs, id = randomId, audit }: JournalOptions): Journal {
  const runners = new Runners({ store, clock, id: id(), ...(leaseMs === undefined ? {} : { leaseMs }) })
  const room = new Room({ store, clock, runners, records, length })
  return { store, runners, audit, claims: new Claims({ store, clock, runners, room, id }), close: () => runners.close() }
}

function randomId(): string {
  return crypto.randomUUID()
}
