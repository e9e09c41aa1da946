/** What the loop needs of the rest of the host, and no more: servers, policy, state, budgets, audit. */
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

/** As much of a server as the loop needs. */
export interface LoopServer extends Pick<HostServer, 'name' | 'client' | 'live'> {
  /** Only those that may be offered to a model. */
  tools(): Promise<readonly Omit<HostTool, 'server'>[]>
}

/** What the policy is asked about. */
export type LoopRequest = Asked

/** What the policy decides. */
export type LoopVerdict = Verdict

/** As much of the policy as the loop needs. */
export interface LoopPolicy {
  decide(asked: LoopRequest): Promise<LoopVerdict>
  approve(
    asked: LoopRequest,
    verdict: LoopVerdict & { readonly do: 'ask' },
  ): Promise<{ readonly yes: boolean; readonly why?: Why; readonly rule?: string }>
  /** Says that it begins; what is returned says that it ended. */
  enter?(asked: LoopRequest): () => void
  /** What a call acts on, by the host's own reading of its arguments; never the server's word. */
  scopesOf?(server: string, tool: string, args: unknown): readonly Scope[] | undefined
}

/** Told that a turn is at a server; what is returned is called when it has left it. */
export type OnVisit = (server: string, inferenceId: string) => () => void

/** The book of states, as far as the loop writes in it. */
export type LoopState = Pick<StateBook, 'before' | 'record' | 'rollback'>

interface Spent {
  readonly tokens?: number
  readonly money?: number
  readonly requests?: number
}

interface LoopReservation {
  settle(actual: Omit<Spent, 'requests'> & { readonly requests?: 0 | 1 }): Promise<unknown> | unknown
}

/** Whose budget an inference is paid from. `user`: the user began it. */
export interface LoopPayer {
  readonly server: string
  readonly featureSet: string
  readonly user?: boolean
}

/** As much of the budgets as the loop needs. */
export interface LoopBudgets {
  reserve(asked: Spent & LoopPayer): Promise<LoopReservation | Why>
}

/** An entry of the audit log. */
export type LoopNote = Note

/** As much of the audit log as the loop needs. */
export interface LoopAudit {
  note(note: LoopNote): Promise<unknown> | unknown
  ops(note: LoopNote): readonly Op[]
}

/** Told of each turn when it begins, and with what; of turns that servers' events began nothing was said. */
export type OnTurn = (turn: Turn, said: { readonly attach: readonly Attachment[]; readonly resumed: boolean }) => void

/** What all parts of the loop share. */
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
  readonly refusals: DeclinedQuestions
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
