/** The interfaces through which the loop uses the rest of the host: servers, policy, state, budgets and audit. Types only. */
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import type { Note } from '../../policy/audit/book.ts'
import type { Asked, Verdict } from '../../policy/rules/rule.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { Model } from '../models/model.ts'
import type { HostServer, HostTool } from '../servers/server.ts'
import type { StateBook } from '../state/book.ts'
import type { HookParts } from './hooks.ts'
import type { LoopLimits } from './limits.ts'
import type { DeclinedQuestions, KeyedQueue, StateSets, StateUpdates } from './loop.ts'
import type { ToolNames } from './toolbox.ts'
import type { Turn } from './turn.ts'
import type { Attachment } from './user-input.ts'

/** The part of a server that the loop needs. */
export interface LoopServer extends Pick<HostServer, 'name' | 'client' | 'live'> {
  /** Tools that may be offered to a model. */
  tools(): Promise<readonly Omit<HostTool, 'server'>[]>
}

/** A request to the policy. */
export type LoopRequest = Asked

/** The policy's decision. */
export type LoopVerdict = Verdict

/** The part of the policy that the loop needs. */
export interface LoopPolicy {
  /** Decides about a request. */
  decide(asked: LoopRequest): Promise<LoopVerdict>
  /** Asks the user about a request whose verdict is `ask`. */
  approve(
    asked: LoopRequest,
    verdict: LoopVerdict & { readonly do: 'ask' },
  ): Promise<{ readonly yes: boolean; readonly why?: Why; readonly rule?: string }>
  /** A request begins; the returned function ends it. Used for rates and concurrency. */
  enter?(asked: LoopRequest): () => void
  /** What a call acts on, by the host's own extractors; never by the server's statement. */
  scopesOf?(server: string, tool: string, args: unknown): readonly Scope[] | undefined
}

/** Called when a turn is at a server; the returned function ends the visit. */
export type OnVisit = (server: string, inferenceId: string) => () => void

/** The part of the state book that the loop needs. */
export type LoopState = Pick<StateBook, 'before' | 'record' | 'rollback'>

/** An amount that is spent. */
interface Spent {
  readonly tokens?: number
  readonly money?: number
  readonly requests?: number
}

/** A reservation, to be settled with the actual amount. */
interface LoopReservation {
  settle(actual: Omit<Spent, 'requests'> & { readonly requests?: 0 | 1 }): Promise<unknown> | unknown
}

/** Whose budget pays for an inference. `user`: the user started it. */
export interface LoopPayer {
  readonly server: string
  readonly featureSet: string
  readonly user?: boolean
}

/** The part of the budgets that the loop needs. */
export interface LoopBudgets {
  /** Reserves an amount, or says why the budget refuses it. */
  reserve(asked: Spent & LoopPayer): Promise<LoopReservation | Why>
}

/** An entry of the audit log. */
export type LoopNote = Note

/** The part of the audit log that the loop needs. */
export interface LoopAudit {
  /** Writes an entry. */
  note(note: LoopNote): Promise<unknown> | unknown
  /** Operations that write an entry within another commit. */
  ops(note: LoopNote): readonly Op[]
}

/** Called when a turn begins, with its attachments and whether it is resumed. */
export type OnTurn = (turn: Turn, said: { readonly attach: readonly Attachment[]; readonly resumed: boolean }) => void

/** What all parts of the loop share. */
export interface LoopParts {
  readonly store: Store
  readonly clock: Clock
  /** The first is the default. */
  readonly models: readonly [Model, ...Model[]]
  /** All current servers, in config order. */
  readonly servers: () => readonly LoopServer[]
  readonly policy: LoopPolicy
  readonly state: LoopState
  readonly budgets: LoopBudgets
  readonly audit: LoopAudit
  readonly limits: LoopLimits
  readonly hooks: HookParts
  /** Serialises calls on the same state. */
  readonly lines: KeyedQueue
  readonly refusals: DeclinedQuestions
  readonly stateSets: StateSets
  readonly stateUpdates: StateUpdates
  /** Assigns tool names for models. */
  readonly names: ToolNames
  /** The start of the system prompt. */
  readonly system: string
  readonly newId: () => string
  readonly onVisit: OnVisit | undefined
  /** Called when a turn begins. */
  readonly onTurn: OnTurn | undefined
}
