/** The loop of a host: its conversations, and what it answers when servers ask. */
import { type Clock, realClock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import type { Store } from '../../stores/store.ts'
import type { Model } from '../models/model.ts'
import { type Answers, type AnswersOptions, createAnswers } from './answers/answers.ts'
import { HostConversation } from './conversation.ts'
import { type ConversationFacts, listConversations } from './conversation-log.ts'
import { createBreaker, type ServerHooks } from './hooks.ts'
import { hostTools } from './host-tools.ts'
import { type LoopLimits, loopLimits } from './limits.ts'
import type { LoopAudit, LoopBudgets, LoopParts, LoopPolicy, LoopServer, LoopState, OnTurn, OnVisit } from './ports.ts'
import { createDeclinedQuestions, createStateUpdates, type StateUpdates } from './running-calls.ts'
import { createKeyedQueue, StateSets } from './state-sets.ts'
import { ToolNames } from './tool-names.ts'
import { type OfferedPrompt, offeredPrompts } from './user-input.ts'

export interface LoopOptions extends AnswersOptions {
  readonly store: Store
  /** Of several the first answers users; servers' wishes and routes may choose others. */
  readonly model: Model | readonly [Model, ...Model[]]
  /** In the order of the configuration: it decides the order of hooks. */
  readonly servers: () => readonly LoopServer[]
  readonly policy: LoopPolicy
  readonly state: LoopState
  readonly budgets: LoopBudgets
  readonly audit: LoopAudit
  /** By the name of the server. */
  readonly hooks?: Readonly<Record<string, ServerHooks>>
  readonly limits?: Partial<LoopLimits>
  /** What the model is told first of all. */
  readonly system?: string
  readonly clock?: Clock
  readonly newId?: () => string
  /** Told of each call and hook. */
  readonly onVisit?: OnVisit
  /** Told of each turn when it begins, those that events begin too. */
  readonly onTurn?: OnTurn
}

export interface Loop extends Answers {
  /** The same object for the same name, as long as it is in use. */
  conversation(id: string): HostConversation
  conversations(): Promise<readonly ConversationFacts[]>
  prompts(): Promise<readonly OfferedPrompt[]>
  /** A server reports a state by itself; see there. */
  readonly stateReported: StateUpdates['reported']
  /** Turns that run are left as interrupted: they can be resumed. */
  close(): Promise<void>
}

/** Conversations that are kept open without need. */
const keptOpen = 256

export function createLoop(options: LoopOptions): Loop {
  const parts = partsOf(options)
  const closing = new AbortController()
  const open = new Map<string, HostConversation>()
  /** Two of one conversation would not know of each other: as long as somebody holds one, there is no second. */
  const held = new Map<string, WeakRef<HostConversation>>()
  const gone = new FinalizationRegistry<string>(id => void (held.get(id)?.deref() ?? held.delete(id)))
  const made = (id: string): HostConversation => {
    const conversation = new HostConversation(id, parts, closing.signal)
    held.set(id, new WeakRef(conversation))
    gone.register(conversation, id)
    return conversation
  }
  const answers = createAnswers(parts, options)
  return {
    ...answers,
    conversation: id => {
      const found = open.get(id) ?? held.get(id)?.deref() ?? made(id)
      // Taken out and put in again: the map is in the order of use.
      open.delete(id)
      open.set(id, found)
      if (open.size > keptOpen) forget(open)
      return found
    },
    conversations: () => listConversations(parts.store),
    prompts: () => offeredPrompts(parts.servers()),
    stateReported: server => parts.stateUpdates.reported(server),
    close: async () => {
      closing.abort(problem('HOST_CLOSED', 'The host is closing', { category: 'transient' }))
      await Promise.all([...open.values()].map(conversation => conversation.idle()))
    },
  }
}

function forget(open: Map<string, HostConversation>): void {
  for (const [id, conversation] of open) {
    if (open.size <= keptOpen) return
    if (!conversation.busy) open.delete(id)
  }
}

function partsOf(options: LoopOptions): LoopParts {
  const { model, clock = realClock, policy, audit } = options
  const limits = { ...loopLimits, ...options.limits }
  const settings = new Map(Object.entries(options.hooks ?? {}))
  return {
    store: options.store,
    clock,
    models: isModel(model) ? [model] : model,
    servers: options.servers,
    policy,
    state: options.state,
    budgets: options.budgets,
    audit,
    limits,
    hooks: { clock, limits, settings, policy, audit, breaker: createBreaker(clock), onVisit: options.onVisit },
    onVisit: options.onVisit,
    lines: createKeyedQueue(),
    refusals: createDeclinedQuestions(),
    stateSets: new StateSets(audit),
    stateUpdates: createStateUpdates(),
    names: new ToolNames(
      options.store,
      hostTools.map(({ tool }) => tool.name),
    ),
    system: options.system ?? '',
    newId: options.newId ?? (() => crypto.randomUUID()),
    onTurn: options.onTurn,
  }
}

function isModel(model: LoopOptions['model']): model is Model {
  return !Array.isArray(model)
}
