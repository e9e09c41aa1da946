/**
 * The loop of a host: its conversations and its answers to servers. Also small trackers that calls share: declined questions, state
 * reports during calls, the state set of a tool, and a queue by key.
 */
import type { Client } from '../../client/client.ts'
import { type Clock, realClock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import { why } from '../../core/suggestion.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Store } from '../../stores/store.ts'
import type { Model } from '../models/model.ts'
import { type Answers, type AnswersOptions, createAnswers } from './answers/answers.ts'
import { HostConversation } from './conversation.ts'
import { type ConversationFacts, listConversations } from './conversation-log.ts'
import { createBreaker, type ServerHooks } from './hooks.ts'
import { hostTools } from './host-tools.ts'
import { type LoopLimits, loopLimits } from './limits.ts'
import type { LoopAudit, LoopBudgets, LoopParts, LoopPolicy, LoopServer, LoopState, OnTurn, OnVisit } from './ports.ts'
import { type ToolboxEntry, ToolNames } from './toolbox.ts'
import { type OfferedPrompt, offeredPrompts } from './user-input.ts'

/** Options of the loop. */
export interface LoopOptions extends AnswersOptions {
  readonly store: Store
  /** The first of several answers users; preferences of servers and routes may choose others. */
  readonly model: Model | readonly [Model, ...Model[]]
  /** In config order, which decides the order of hooks. */
  readonly servers: () => readonly LoopServer[]
  readonly policy: LoopPolicy
  readonly state: LoopState
  readonly budgets: LoopBudgets
  readonly audit: LoopAudit
  /** Hook rules by server. */
  readonly hooks?: Readonly<Record<string, ServerHooks>>
  readonly limits?: Partial<LoopLimits>
  /** The start of the system prompt. */
  readonly system?: string
  readonly clock?: Clock
  readonly newId?: () => string
  /** Called for each visit of a turn at a server: a call or a hook. */
  readonly onVisit?: OnVisit
  /** Called when a turn begins, also one that an event starts. */
  readonly onTurn?: OnTurn
}

/** The conversations of a host, and its answers to servers. */
export interface Loop extends Answers {
  /** The same object for the same name, as long as it is in use. */
  conversation(id: string): HostConversation
  /** All conversations in the store. */
  conversations(): Promise<readonly ConversationFacts[]>
  /** The prompts that users can call as `/name`. */
  prompts(): Promise<readonly OfferedPrompt[]>
  /** A server reports a state by itself; see `StateUpdates.reported`. */
  readonly stateReported: StateUpdates['reported']
  /** Closes the loop. Running turns are left as interrupted and can be resumed. */
  close(): Promise<void>
}

/** Idle conversations that are kept open. */
const keptOpen = 256

/** Creates the loop of a host. */
export function createLoop(options: LoopOptions): Loop {
  const parts = partsOf(options)
  const closing = new AbortController()
  const open = new Map<string, HostConversation>()
  /** Weak references, so that there is never a second object for a conversation that somebody still holds. */
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
      // Re-inserted, so that the map is in the order of use.
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

/** Drops the least recently used idle conversations. */
function forget(open: Map<string, HostConversation>): void {
  for (const [id, conversation] of open) {
    if (open.size <= keptOpen) return
    if (!conversation.busy) open.delete(id)
  }
}

/** The shared parts of the loop, with defaults. */
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

/** Whether there is a single model. */
function isModel(model: LoopOptions['model']): model is Model {
  return !Array.isArray(model)
}

// Declined questions: a call during which the user declined a question can succeed without having done anything. Most revisions do not
// link a question to its call, so it counts only where the server had a single call.

/** Tracks which questions of a server the user declined while a call ran. */
export interface DeclinedQuestions {
  /** A call begins. The returned function ends it and returns the declined question, if no other was accepted. */
  begin(server: string): () => string | undefined
  /** The user answered a question of a server. */
  answered(server: string, question: string, yes: boolean): void
}

interface AskingCall {
  /** Another call of the server ran at the same time. */
  doubtful: boolean
  agreed: boolean
  refused: string | undefined
}

/** Creates the tracker. */
function createDeclinedQuestions(): DeclinedQuestions {
  const running = new Map<string, Set<AskingCall>>()
  return {
    begin: server => {
      const mine: AskingCall = { doubtful: false, agreed: false, refused: undefined }
      const all = running.get(server) ?? new Set()
      running.set(server, all.add(mine))
      if (all.size > 1) for (const each of all) each.doubtful = true
      return () => {
        all.delete(mine)
        if (all.size === 0) running.delete(server)
        return mine.doubtful || mine.agreed ? undefined : mine.refused
      }
    },
    answered: (server, question, yes) => {
      for (const call of running.get(server) ?? []) {
        if (yes) call.agreed = true
        else call.refused = clip(question)
      }
    },
  }
}

/** A change of a feature set's state that a server reported during a call. */
export interface StateUpdate {
  readonly featureSet: string
  /** The checkpoint before the first report; absent where there was none. */
  readonly before?: string
  readonly after: string
  /** Calls of other turns ran at the server, too. */
  readonly shared?: true
}

/** Tracks the states that servers report by themselves while calls run. */
export interface StateUpdates {
  /** A call begins. The returned function ends it and returns the changes, one per feature set. */
  begin(server: string, turn: string): () => Promise<readonly StateUpdate[]>
  /** A server reports a state. Call the returned function with the change once it is recorded; undefined: none. */
  reported(server: string): (update: StateUpdate | undefined) => void
}

interface ReportingCall {
  readonly turn: string
  readonly sets: Map<string, StateUpdate>
  /** Reports that are being recorded. */
  readonly open: Set<Promise<void>>
}

/** Creates the tracker. */
function createStateUpdates(): StateUpdates {
  const running = new Map<string, Set<ReportingCall>>()
  return {
    begin: (server, turn) => {
      const mine: ReportingCall = { turn, sets: new Map(), open: new Set() }
      const all = running.get(server) ?? new Set()
      running.set(server, all.add(mine))
      return async () => {
        // A report that arrived just before the result may not be handled yet.
        await new Promise<void>(resolve => setImmediate(resolve))
        all.delete(mine)
        if (all.size === 0) running.delete(server)
        await Promise.all(mine.open)
        return [...mine.sets.values()]
      }
    },
    reported: server => {
      const calls = [...(running.get(server) ?? [])]
      const shared = new Set(calls.map(({ turn }) => turn)).size > 1
      const { promise, resolve } = Promise.withResolvers<void>()
      for (const { open } of calls) open.add(promise)
      return update => {
        for (const { sets, open } of calls) {
          if (update !== undefined) sets.set(update.featureSet, joined(sets.get(update.featureSet), update, shared))
          open.delete(promise)
        }
        resolve()
      }
    },
  }
}

/** Merges several reports on one state into one change. */
function joined(first: StateUpdate | undefined, { featureSet, after, ...last }: StateUpdate, shared: boolean): StateUpdate {
  const { before } = first ?? last
  return {
    featureSet,
    ...(before !== undefined && { before }),
    after,
    ...((shared || first?.shared === true) && { shared: true }),
  }
}

// State sets: the feature set that a tool call's state belongs to. In order: the tool or config, what its results named before, and the only
// set with state. Otherwise the state is kept for the tool alone, so that it is neither lost nor mixed with others.

/** The feature set whose state a call is about. */
export interface StateSet {
  readonly name: string
  /** False: a placeholder for a tool of no known set. */
  readonly declared: boolean
}

type Named = Pick<ToolboxEntry, 'tool' | 'featureSet' | 'stateSet'>

/** Tools per connection whose sets are remembered. */
const mostTools = 1_000

/** Finds the feature set whose state a tool call is about. */
export class StateSets {
  readonly #audit: LoopAudit
  /** By connection and tool: the set that a result named, or undefined for none. */
  readonly #learned = new WeakMap<Client, Map<string, string | undefined>>()

  constructor(audit: LoopAudit) {
    this.#audit = audit
  }

  /** Undefined: calls of the tool concern no state. */
  of(server: LoopServer, { tool, featureSet, stateSet }: Named): StateSet | undefined {
    const named = featureSet ?? this.#of(server)?.get(tool) ?? stateSet
    if (named !== undefined) return isStateful(server, named) ? { name: named, declared: true } : undefined
    const some = [...(server.live?.featureSets ?? [])].some(([name, { enabled }]) => enabled && isStateful(server, name))
    // Declared names contain no star, so the placeholder cannot collide.
    return some ? { name: `*${tool}`, declared: false } : undefined
  }

  /** The set under which a report is recorded; remembered for the next call of the tool. */
  placed(server: LoopServer, { tool, featureSet: own }: Named, set: StateSet, { featureSet }: StateReport): string {
    if (own !== undefined) return set.name
    const named = featureSet !== undefined && isStateful(server, featureSet) ? featureSet : undefined
    if (named === set.name || (set.declared && named === undefined)) return set.name
    const learned = this.#of(server)
    if (named === undefined && learned?.has(tool) === false) this.#untold(server.name, tool)
    if (learned !== undefined && (learned.size < mostTools || learned.has(tool))) learned.set(tool, named)
    return named ?? set.name
  }

  /** What was learned on a connection. */
  #of({ client }: LoopServer): Map<string, string | undefined> | undefined {
    if (client === undefined) return undefined
    const known = this.#learned.get(client) ?? new Map<string, string | undefined>()
    this.#learned.set(client, known)
    return known
  }

  /** Reports that a tool's set is unknown. */
  #untold(server: string, tool: string): void {
    const message = `${clip(server)} does not say which feature set the tool ${clip(tool)} belongs to: its state is kept for this tool alone`
    const fix = `Add {"live":{"tools":{${JSON.stringify(tool)}:"…"}}} with the name of the set to the server's entry in the config`
    const said = why('TOOL_WITHOUT_SET', 'live.tools', message, fix)
    void this.#audit.note({ server, kind: 'state', outcome: 'held', why: said, detail: clip(tool) })
  }
}

/** Whether a feature set has state. From MCP Live 0.4 on this is not declared; results tell. */
function isStateful({ live }: LoopServer, featureSet: string): boolean {
  const facts = live?.featureSets.get(featureSet)
  if (live === undefined || facts === undefined) return false
  return facts.hostState === true || facts.rollback === true || live.dialect.label === '0.4' || live.dialect.label === '0.5'
}

/** Runs work one after the other by key. */
export interface KeyedQueue {
  /** Runs when all earlier work of this key has ended, successfully or not. */
  inLine<T>(key: string, work: () => Promise<T>): Promise<T>
}

/** Creates the queue; a key is forgotten when its last work ends. */
function createKeyedQueue(): KeyedQueue {
  const tails = new Map<string, Promise<unknown>>()
  return {
    inLine: (key, work) => {
      const before = tails.get(key) ?? Promise.resolve()
      const mine = before.then(work, work)
      tails.set(key, mine)
      const leave = (): void => {
        if (tails.get(key) === mine) tails.delete(key)
      }
      mine.then(leave, leave)
      return mine
    },
  }
}
