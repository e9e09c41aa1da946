/** What the parts of the loop share, and how they see the rest of the host: servers, policy, state, budgets and audit. Types only. */
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { Note } from '../../policy/audit/host-audit.ts'
import type { Estimate } from '../../policy/budgets/budgets.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { Model } from '../models/model.ts'
import type { HostServer, HostTool } from '../servers/server.ts'
import type { StateBook } from '../state/book.ts'
import type { KeyedQueue } from '../waiting.ts'
import type { HookBreaker, ServerHooks } from './hooks.ts'
import type { LoopLimits } from './limits.ts'
import type { DeclinedQuestions, StateSets, StateUpdates } from './loop.ts'
import type { ToolNames } from './toolbox.ts'
import type { Turn } from './turn.ts'
import type { Attachment } from './user-input.ts'

/** The part of a server that the loop needs. */
export interface LoopServer extends Pick<HostServer, 'name' | 'client' | 'live'> {
  /** Tools that may be offered to a model. */
  tools(): Promise<readonly Omit<HostTool, 'server'>[]>
}

/** Called when a turn begins, with its attachments and whether it is resumed. */
export type OnTurn = (
  turn: Turn,
  said: {
    /** The attachments of the message. */
    readonly attach: readonly Attachment[]
    /** Whether the turn was cut off earlier and continues now. */
    readonly resumed: boolean
  },
) => void

/** What all parts of the loop share. */
export interface LoopParts {
  readonly store: Store
  readonly clock: Clock
  /** The first is the default. */
  readonly models: readonly [Model, ...Model[]]
  /** All current servers, in config order, which decides the order of hooks. */
  readonly servers: () => readonly LoopServer[]
  readonly policy: Pick<Policy, 'decide' | 'approve'> & Partial<Pick<Policy, 'enter' | 'scopesOf' | 'explain'>>
  readonly state: Pick<StateBook, 'before' | 'record' | 'rollback'> & Partial<Pick<StateBook, 'rollbackRefusal'>>
  readonly budgets: {
    /** Reserves an amount, to be settled with the actual one, or says why the budget refuses it. */
    reserve(asked: Estimate): Promise<{ settle(actual: InferenceCost): unknown } | Why>
  }
  readonly audit: {
    /** Writes an entry. */
    note(note: Note): unknown
    /** Operations that write an entry within another commit. */
    ops(note: Note): readonly Op[]
  }
  readonly limits: LoopLimits
  /** Hook rules by server. */
  readonly hookRules: ReadonlyMap<string, ServerHooks>
  /** Skips hooks that keep failing. */
  readonly breaker: HookBreaker
  /** Serialises calls on the same state. */
  readonly lines: KeyedQueue
  /** Questions that the user declined during a call. */
  readonly refusals: DeclinedQuestions
  /** Finds the feature set whose state a call is about. */
  readonly stateSets: StateSets
  /** State reports of servers during calls. */
  readonly stateUpdates: StateUpdates
  /** Assigns tool names for models. */
  readonly names: ToolNames
  /** The start of the system prompt. */
  readonly system: string
  readonly newId: () => string
  /** Called when a turn is at a server, by a call or a hook; the returned function ends the visit. */
  readonly onVisit: ((server: string, inferenceId: string) => () => void) | undefined
  readonly onTurn: OnTurn | undefined
}

/** What an inference has actually cost. */
type InferenceCost = Pick<Estimate, 'tokens' | 'money'> & { readonly requests?: 0 | 1 }
