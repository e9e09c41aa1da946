/** What a client is made of: the session, the books beside it, and the settings of `connect`. */
import type { Clock } from '../core/clock.ts'
import type { Answerers } from '../features/mcp/input-required/client.ts'
import type { ConfirmationClient } from '../features/reliability/confirmation/client.ts'
import type { ResultCache } from './cache.ts'
import type { Changes } from './changes.ts'
import type { Events } from './events.ts'
import type { ListLimits } from './lists.ts'
import type { Live } from './live.ts'
import type { LogWish } from './log-level.ts'
import type { Pricing } from './priced-calls.ts'
import type { ResourceBook } from './resource-book.ts'
import type { Retries } from './retries.ts'
import type { Session } from './session.ts'

export interface ClientParts {
  readonly session: Session
  readonly cache: ResultCache
  readonly resources: ResourceBook
  readonly changes: Changes
  readonly events: Events
  readonly live: Live | undefined
  readonly log: LogWish
  readonly clock: Clock
  readonly answerers: Answerers
  readonly confirmation: ConfirmationClient
  readonly pricing: Pricing
  readonly timeoutMs: number
  readonly completionMs: number
  readonly completionDelayMs: number
  readonly validateArguments: boolean
  readonly retries: Retries
  readonly listLimits: ListLimits
  /** Of the server; undefined where it runs here. */
  readonly address: URL | undefined
  readonly stop: () => void
}
