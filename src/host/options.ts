/** What a host may be told. Every option has a default; without any it is a host without servers. */
import type { Duration } from '../core/clock.ts'
import type { Why } from '../core/suggestion.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import type { OnApproval } from '../policy/approvals/question.ts'
import type { BudgetLimit, Spender } from '../policy/budgets/budgets.ts'
import type { PolicyRules } from '../policy/rules/rule.ts'
import type { Extractors } from '../policy/scopes/elevate.ts'
import type { FoundationOptions } from './foundation.ts'
import type { InboxOptions } from './inbox/options.ts'
import type { AnswersOptions } from './loop/answers/answers.ts'
import type { ServerHooks } from './loop/hooks.ts'
import type { LoopLimits } from './loop/limits.ts'
import type { OnTurn } from './loop/ports.ts'
import type { Model } from './models/model.ts'

/** What can be changed while a host runs. */
export type HostSettings = Pick<HostOptions, 'policy' | 'budgets' | 'roots'>

export interface HostOptions extends FoundationOptions, AnswersOptions {
  /**
   * Who answers. Of several the first answers users; the wishes of servers and `routes` may choose others. Default: what
   * ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL name, else the offline assistant.
   */
  readonly model?: Model | readonly [Model, ...Model[]]
  /** What the model is told first of all. */
  readonly system?: string
  /** What servers may do. Default: what is neither allowed nor refused is asked about. */
  readonly policy?: PolicyRules
  /** Asked where the policy says so. Without it such things are refused. */
  readonly onApproval?: OnApproval
  /** How long a plain yes counts. Default one hour. */
  readonly remember?: Duration
  /** How long an answer of `onApproval` is waited for. Default 5 minutes. */
  readonly patience?: Duration
  /** What servers may spend. Default: nothing is limited, and all is counted. */
  readonly budgets?: readonly BudgetLimit[]
  /** Told when most of a budget is gone. */
  readonly onBudget?: (what: Why, spender: Spender) => void
  /** What tools act on, by `server/tool`: the host's own reading of their arguments. */
  readonly extract?: Extractors
  /** How events are taken in and tried. */
  readonly inbox?: Omit<InboxOptions, 'store' | 'policy' | 'clock' | 'onDiagnostic' | 'withheld' | 'random' | 'id'>
  /**
   * What becomes of messages in channels that are tagged `chat:ambient`, meant for nobody in particular. Default `keep`: the model sees
   * the newest with the next message that is meant for it, and is not woken. `wake`: each becomes a turn.
   */
  readonly ambient?: 'keep' | 'wake'
  /** Which conversation an event becomes a turn of. Default: one for each server, and one for each channel. */
  readonly conversationOf?: (server: string, event: PushEvent) => string
  /** How the hooks of servers are treated, by the name of the server. */
  readonly hooks?: Readonly<Record<string, ServerHooks>>
  /** How long turns and prompts may get: steps, tool calls, tokens, times. */
  readonly limits?: Partial<LoopLimits>
  /** Told of each turn when it begins, those that events begin too. */
  readonly onTurn?: OnTurn
  /** A file to which the whole session is recorded, to be played again by `replay`. It holds everything that is said. */
  readonly record?: string
  /** Names turns and inferences. Default: random. */
  readonly newId?: () => string
}
