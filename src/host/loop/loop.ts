/**
 * The loop of a host: its conversations and its answers to servers. Also small trackers that calls share: declined questions, state
 * reports during calls, and the state set of a tool.
 */
import type { Client } from '../../client/client.ts'
import { realClock } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import { why } from '../../core/suggestion.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Model } from '../models/model.ts'
import { KeyedQueue } from '../waiting.ts'
import { Answers, type AnswersOptions } from './answers/answers.ts'
import { HostConversation } from './conversation.ts'
import { type ConversationFacts, listConversations } from './conversation-log.ts'
import { HookBreaker, type ServerHooks } from './hooks.ts'
import { hostTools } from './host-tools.ts'
import { type GivenLoopLimits, loopLimitsOf } from './limits.ts'
import type { LoopParts, LoopServer } from './ports.ts'
import { type ToolboxEntry, ToolNames } from './toolbox.ts'
import { type OfferedPrompt, offeredPrompts } from './user-input.ts'

/** Options of the loop. */
export interface LoopOptions
  extends AnswersOptions,
    Pick<LoopParts, 'store' | 'servers' | 'policy' | 'state' | 'budgets' | 'audit'>,
    Partial<Pick<LoopParts, 'clock' | 'system' | 'newId' | 'onVisit' | 'onTurn'>> {
  /** The first of several answers users; preferences of servers and routes may choose others. */
  readonly model: Model | readonly [Model, ...Model[]]
  /** Hook rules by server. */
  readonly hooks?: Readonly<Record<string, ServerHooks>>
  readonly limits?: GivenLoopLimits
}

/** Idle conversations that are kept open. */
const idleConversations = 256

/** The conversations of a host, and its answers to servers. */
export class Loop {
  /** The answers to requests of servers. */
  readonly answers: Answers
  /** States that servers report by themselves. */
  readonly stateUpdates = new StateUpdates()
  readonly #parts: LoopParts
  readonly #closing = new AbortController()
  /** In the order of use. */
  readonly #open = new Map<string, HostConversation>()
  /** Weak references, so that there is never a second object for a conversation that somebody still holds. */
  readonly #held = new Map<string, WeakRef<HostConversation>>()
  readonly #gone = new FinalizationRegistry<string>(id => void (this.#held.get(id)?.deref() ?? this.#held.delete(id)))

  constructor(options: LoopOptions) {
    const { model, clock = realClock, system = '', newId = () => crypto.randomUUID(), onVisit, onTurn } = options
    const { store, servers, policy, state, budgets, audit } = options
    const taken = hostTools.map(({ tool }) => tool.name)
    this.#parts = {
      ...{ store, clock, servers, policy, state, budgets, audit, system, newId, onVisit, onTurn },
      models: isModel(model) ? [model] : model,
      limits: loopLimitsOf(options.limits),
      hookRules: new Map(Object.entries(options.hooks ?? {})),
      breaker: new HookBreaker(clock),
      lines: new KeyedQueue(),
      refusals: new DeclinedQuestions(),
      stateSets: new StateSets(audit),
      stateUpdates: this.stateUpdates,
      names: new ToolNames(store, taken),
    }
    this.answers = new Answers(this.#parts, options)
  }

  /** The model that answers users. */
  get model(): ModelInfo {
    return this.#parts.models[0].info
  }

  /** The same object for the same name, as long as it is in use. */
  conversation(id: string): HostConversation {
    const found = this.#open.get(id) ?? this.#held.get(id)?.deref() ?? this.#made(id)
    // Re-inserted, so that the map is in the order of use.
    this.#open.delete(id)
    this.#open.set(id, found)
    if (this.#open.size > idleConversations) this.#forget()
    return found
  }

  /** All conversations in the store. */
  conversations(): Promise<readonly ConversationFacts[]> {
    return listConversations(this.#parts.store)
  }

  /** The prompts that users can call as `/name`. */
  prompts(): Promise<readonly OfferedPrompt[]> {
    return offeredPrompts(this.#parts.servers())
  }

  /** Closes the loop. Running turns are left as interrupted and can be resumed. */
  async close(): Promise<void> {
    this.#closing.abort(problem('HOST_CLOSED', 'The host is closing', { category: 'transient' }))
    await Promise.all([...this.#open.values()].map(conversation => conversation.idle()))
  }

  #made(id: string): HostConversation {
    const conversation = new HostConversation(id, this.#parts, this.#closing.signal)
    this.#held.set(id, new WeakRef(conversation))
    this.#gone.register(conversation, id)
    return conversation
  }

  /** Drops the least recently used idle conversations. */
  #forget(): void {
    for (const [id, conversation] of this.#open) {
      if (this.#open.size <= idleConversations) return
      if (!conversation.busy) this.#open.delete(id)
    }
  }
}

/** Whether there is a single model. */
function isModel(model: LoopOptions['model']): model is Model {
  return !Array.isArray(model)
}

// Declined questions: a call during which the user declined a question can succeed without having done anything. Most revisions do not
// link a question to its call, so it counts only where the server had a single call.

interface AskingCall {
  /** Another call of the server ran at the same time. */
  doubtful: boolean
  agreed: boolean
  refused: string | undefined
}

/** Tracks which questions of a server the user declined while a call ran. */
export class DeclinedQuestions {
  readonly #running = new Map<string, Set<AskingCall>>()

  /** A call begins. The returned function ends it and returns the declined question, if no other was accepted. */
  begin(server: string): () => string | undefined {
    const mine: AskingCall = { doubtful: false, agreed: false, refused: undefined }
    const all = joinCalls(this.#running, server, mine)
    if (all.size > 1) for (const each of all) each.doubtful = true
    return () => {
      leaveCalls(this.#running, server, mine)
      return mine.doubtful || mine.agreed ? undefined : mine.refused
    }
  }

  /** The user answered a question of a server. */
  answered(server: string, question: string, yes: boolean): void {
    for (const call of this.#running.get(server) ?? []) {
      if (yes) call.agreed = true
      else call.refused = clip(question)
    }
  }
}

/** Adds a call to those that run at a server, and returns them. */
function joinCalls<C>(running: Map<string, Set<C>>, server: string, call: C): ReadonlySet<C> {
  const all = running.get(server) ?? new Set()
  running.set(server, all.add(call))
  return all
}

/** Removes a call from those that run at a server. */
function leaveCalls<C>(running: Map<string, Set<C>>, server: string, call: C): void {
  const all = running.get(server)
  all?.delete(call)
  if (all?.size === 0) running.delete(server)
}

/** A change of a feature set's state that a server reported during a call. */
export interface StateUpdate {
  /** The name of the feature set. */
  readonly featureSet: string
  /** The checkpoint before the first report; absent where there was none. */
  readonly before?: string
  /** The checkpoint after the last report. */
  readonly after: string
  /** Calls of other turns ran at the server, too. */
  readonly shared?: true
}

interface ReportingCall {
  readonly turn: string
  readonly sets: Map<string, StateUpdate>
  /** Reports that are being recorded. */
  readonly open: Set<Promise<void>>
}

/** Tracks the states that servers report by themselves while calls run. */
export class StateUpdates {
  readonly #running = new Map<string, Set<ReportingCall>>()

  /** A call begins. The returned function ends it and returns the changes, one per feature set. */
  begin(server: string, turn: string): () => Promise<readonly StateUpdate[]> {
    const mine: ReportingCall = { turn, sets: new Map(), open: new Set() }
    joinCalls(this.#running, server, mine)
    return async () => {
      // A report that arrived just before the result may not be handled yet.
      await new Promise<void>(resolve => setImmediate(resolve))
      leaveCalls(this.#running, server, mine)
      await Promise.all(mine.open)
      return [...mine.sets.values()]
    }
  }

  /** A server reports a state. Call the returned function with the change once it is recorded; undefined: none. */
  reported(server: string): (update: StateUpdate | undefined) => void {
    const calls = [...(this.#running.get(server) ?? [])]
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

type ToolWithSets = Pick<ToolboxEntry, 'tool' | 'featureSet' | 'stateSet'>

/** Tools per connection whose sets are remembered. */
const mostTools = 1_000

/** Finds the feature set whose state a tool call is about. */
export class StateSets {
  readonly #audit: LoopParts['audit']
  /** By connection and tool: the set that a result named, or undefined for none. */
  readonly #learned = new WeakMap<Client, Map<string, string | undefined>>()

  constructor(audit: LoopParts['audit']) {
    this.#audit = audit
  }

  /** Undefined: calls of the tool concern no state. */
  of(server: LoopServer, { tool, featureSet, stateSet }: ToolWithSets): StateSet | undefined {
    const named = featureSet ?? this.#of(server)?.get(tool) ?? stateSet
    if (named !== undefined) return isStateful(server, named) ? { name: named, declared: true } : undefined
    const some = [...(server.live?.featureSets ?? [])].some(([name, { enabled }]) => enabled && isStateful(server, name))
    // Declared names contain no star, so the placeholder cannot collide.
    return some ? { name: `*${tool}`, declared: false } : undefined
  }

  /** The set under which a report is recorded; remembered for the next call of the tool. */
  placed(server: LoopServer, { tool, featureSet: own }: ToolWithSets, set: StateSet, { featureSet }: StateReport): string {
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
    const message = `${clip(server)} does not say which feature set the tool ${clip(tool)} is part of. Its state is stored for this tool only`
    const fix = `Add {"live":{"tools":{${JSON.stringify(tool)}:"…"}}} with the name of the set to the entry of the server in the config`
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
