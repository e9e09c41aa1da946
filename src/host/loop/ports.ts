/** What the loop needs of the rest of the host, and no more: servers, policy, state, budgets, audit. */
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { Model } from '../models/model.ts'
import type { StateBook } from '../state/book.ts'
import type { HookParts } from './hooks.ts'
import type { LoopLimits } from './limits.ts'
import type { DeclinedQuestions, KeyedQueue, StateSets, StateUpdates } from './loop.ts'
import type { ToolNames } from './toolbox.ts'
import type { Turn } from './turn.ts'
import type { Attachment } from './user-input.ts'

/** A tool as it was pinned. */
interface LoopTool {
  readonly tool: Tool
  /** The feature set that it belongs to, where there is one. */
  readonly featureSet?: string | undefined
  /** The one that the config says it belongs to. */
  readonly assigned?: string | undefined
  /** A guess where nobody says: good for state, and for nothing else. */
  readonly stateSet?: string | undefined
}

export interface LoopServer {
  readonly name: string
  /** Undefined while it is down. */
  readonly client: Client | undefined
  readonly live: LiveConnection | undefined
  /** Only those that may be offered to a model. */
  tools(): Promise<readonly LoopTool[]>
}

export interface LoopRequest {
  readonly kind: 'infer' | 'tool' | 'sample' | 'elicit' | 'roots' | 'inject'
  readonly server: string
  readonly featureSet?: string
  readonly tool?: string
  readonly payload?: unknown
  /** SHA-256 over the pinned definition of the tool. */
  readonly definition?: string
  /** The pinned definition says that the tool changes nothing. */
  readonly readOnly?: boolean
  /** Who began the turn. */
  readonly begunBy?: BegunBy
  readonly conversation?: string
  /** The inference that it belongs to, for the audit. */
  readonly inferenceId?: string
}

export type LoopVerdict =
  | { readonly do: 'allow'; readonly rule: string }
  | { readonly do: 'deny'; readonly why: Why }
  | { readonly do: 'ask'; readonly question: string; readonly digest: string; readonly rule: string }
  | { readonly do: 'hold'; readonly until: number; readonly why: Why }
  | { readonly do: 'coalesce'; readonly key: string; readonly withinMs: number; readonly rule: string }

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

export interface LoopBudgets {
  reserve(asked: Spent & LoopPayer): Promise<LoopReservation | Why>
}

export interface LoopNote {
  /** Empty for what concerns the host alone. */
  readonly server: string
  readonly featureSet?: string
  readonly inferenceId?: string
  readonly eventId?: string
  readonly conversation?: string
  readonly cause?: string
  readonly kind: string
  readonly outcome: 'success' | 'failure' | 'timeout' | 'refused' | 'held' | 'dropped'
  readonly why?: Why
  /** What allowed it. */
  readonly rule?: string
  readonly detail?: string
  readonly ms?: number
}

export interface LoopAudit {
  note(note: LoopNote): Promise<unknown> | unknown
  ops(note: LoopNote): readonly Op[]
}

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
