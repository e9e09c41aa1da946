/** What the parts of the loop share. */
import type { Clock } from '../../core/clock.ts'
import type { Store } from '../../stores/store.ts'
import type { Model } from '../models/model.ts'
import type { Attachment } from './attach.ts'
import type { HookParts } from './hook-run.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { LoopLimits } from './limits.ts'
import type { LoopAudit, LoopBudgets, LoopPolicy, LoopServer, LoopState, OnVisit } from './ports.ts'
import type { Refusals } from './refusals.ts'
import type { StateSets } from './state-sets.ts'
import type { StateUpdates } from './state-updates.ts'
import type { ToolNames } from './tool-names.ts'
import type { Turn } from './turn.ts'

/** Told of each turn when it begins, and with what; of turns that servers' events began nothing was said. */
export type OnTurn = (turn: Turn, said: { readonly attach: readonly Attachment[]; readonly resumed: boolean }) => void

export interface LoopParts {
  readonly store: Store
  readonly clock: Clock
  /** The first is used unless something chooses another. */
  readonly models: readonly [Model, ...Model[]]
  /** All that there are now, in the order of the configuration. */
  readonly servers: () => readonly LoopServer[]
  readonly policy: LoopPolicy
  readonly state: LoopState
  readonly budgets: LoopBudgets
  readonly audit: LoopAudit
  readonly limits: LoopLimits
  readonly hooks: HookParts
  readonly lines: KeyedQueue
  readonly refusals: Refusals
  readonly stateSets: StateSets
  readonly stateUpdates: StateUpdates
  /** The names of tools, as models see them. */
  readonly names: ToolNames
  /** What the model is told first of all. */
  readonly system: string
  readonly newId: () => string
  readonly onVisit: OnVisit | undefined
  /** Told of each turn when it begins. */
  readonly onTurn: OnTurn | undefined
}
