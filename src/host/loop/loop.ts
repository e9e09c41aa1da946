/** The loop of a host: its conversations, and what it answers when servers ask. */
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

/** What a loop is made of. */
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

/** The conversations of a host, and its answers to servers. */
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

/** Makes the loop of a host. */
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

// Which questions the user said no to while a call ran: such a call ends well and has done nothing, which only the one who said no
// can know. On most wires a question does not name its call, so it counts where the server had one alone.

/** Tracks which questions of a server the user declined while a call ran. */
export interface DeclinedQuestions {
  /** A call begins. What is returned ends it, and gives the question to which alone the answer was no. */
  begin(server: string): () => string | undefined
  /** A question of a server was answered. */
  answered(server: string, question: string, yes: boolean): void
}

interface AskingCall {
  /** Another call of the server ran at the same time. */
  doubtful: boolean
  agreed: boolean
  refused: string | undefined
}

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

/** How a call left the state of a set, by what its server reported beside the result. */
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
  /** A call begins. What is returned ends it, and gives what was reported until then: of each set once. */
  begin(server: string, turn: string): () => Promise<readonly StateUpdate[]>
  /** A server reports a state. What is returned is called when it is known what that changed; undefined: nothing. */
  reported(server: string): (update: StateUpdate | undefined) => void
}

interface ReportingCall {
  readonly turn: string
  readonly sets: Map<string, StateUpdate>
  /** Reports that are being written. */
  readonly open: Set<Promise<void>>
}

function createStateUpdates(): StateUpdates {
  const running = new Map<string, Set<ReportingCall>>()
  return {
    begin: (server, turn) => {
      const mine: ReportingCall = { turn, sets: new Map(), open: new Set() }
      const all = running.get(server) ?? new Set()
      running.set(server, all.add(mine))
      return async () => {
        // What came with the result, right before it, may not have been looked at yet.
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

/** Several reports on one state are one change. */
function joined(first: StateUpdate | undefined, { featureSet, after, ...last }: StateUpdate, shared: boolean): StateUpdate {
  const { before } = first ?? last
  return {
    featureSet,
    ...(before !== undefined && { before }),
    after,
    ...((shared || first?.shared === true) && { shared: true }),
  }
}

// Whose state a call of a tool is about. What the tool or the config says comes first, then what its results have said, then the only
// set that keeps state. Where nobody can tell, what a tool reports is kept for that tool alone: it is neither lost nor given to others.

/** The feature set whose state a call is about. */
export interface StateSet {
  readonly name: string
  /** False: it stands for a tool of no known set. */
  readonly declared: boolean
}

type Named = Pick<ToolboxEntry, 'tool' | 'featureSet' | 'stateSet'>

/** Tools of one connection whose sets are remembered. */
const mostTools = 1_000

/** Finds the feature set whose state a tool call is about. */
export class StateSets {
  readonly #audit: LoopAudit
  /** By connection: the sets that results have named, and the tools of none. */
  readonly #learned = new WeakMap<Client, Map<string, string | undefined>>()

  constructor(audit: LoopAudit) {
    this.#audit = audit
  }

  /** Undefined: calls of the tool are about no state. */
  of(server: LoopServer, { tool, featureSet, stateSet }: Named): StateSet | undefined {
    const named = featureSet ?? this.#of(server)?.get(tool) ?? stateSet
    if (named !== undefined) return isStateful(server, named) ? { name: named, declared: true } : undefined
    const some = [...(server.live?.featureSets ?? [])].some(([name, { enabled }]) => enabled && isStateful(server, name))
    // No declared set has a star in its name.
    return some ? { name: `*${tool}`, declared: false } : undefined
  }

  /** The set under which a report is kept; the next call of the tool finds it there. */
  placed(server: LoopServer, { tool, featureSet: own }: Named, set: StateSet, { featureSet }: StateReport): string {
    if (own !== undefined) return set.name
    const named = featureSet !== undefined && isStateful(server, featureSet) ? featureSet : undefined
    if (named === set.name || (set.declared && named === undefined)) return set.name
    const learned = this.#of(server)
    if (named === undefined && learned?.has(tool) === false) this.#untold(server.name, tool)
    if (learned !== undefined && (learned.size < mostTools || learned.has(tool))) learned.set(tool, named)
    return named ?? set.name
  }

  #of({ client }: LoopServer): Map<string, string | undefined> | undefined {
    if (client === undefined) return undefined
    const known = this.#learned.get(client) ?? new Map<string, string | undefined>()
    this.#learned.set(client, known)
    return known
  }

  #untold(server: string, tool: string): void {
    const message = `${clip(server)} does not say which feature set the tool ${clip(tool)} belongs to: its state is kept for this tool alone`
    const fix = `Add {"live":{"tools":{${JSON.stringify(tool)}:"…"}}} with the name of the set to the server's entry in the config`
    const said = why('TOOL_WITHOUT_SET', 'live.tools', message, fix)
    void this.#audit.note({ server, kind: 'state', outcome: 'held', why: said, detail: clip(tool) })
  }
}

/** From 0.4 on a server does not declare who keeps its state: its results say so. */
function isStateful({ live }: LoopServer, featureSet: string): boolean {
  const facts = live?.featureSets.get(featureSet)
  if (live === undefined || facts === undefined) return false
  return facts.hostState === true || facts.rollback === true || live.dialect.label === '0.4' || live.dialect.label === '0.5'
}

/** Work that must not overlap, in line by a key. */
export interface KeyedQueue {
  /** Runs when all that came before under this key has ended, well or not. */
  inLine<T>(key: string, work: () => Promise<T>): Promise<T>
}

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
