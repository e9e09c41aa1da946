/** `Host`: many servers, one agent. What it knows of each, what they left behind, and why it did what it did. */
import type { AuditVerdict } from '../core/audit/audit.ts'
import type { Duration } from '../core/clock.ts'
import type { Why } from '../core/suggestion.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import type { Root } from '../features/mcp/roots/messages.ts'
import type { OnApproval } from '../policy/approvals/question.ts'
import type { AuditQuestion, Explanation, Queried } from '../policy/audit/book.ts'
import {
  type BudgetLimit,
  type BudgetStatus,
  budgetRefusal,
  checkLimits,
  isUsers,
  type Spender,
  type SpentOptions,
  type SpentRow,
} from '../policy/budgets/budgets.ts'
import type { HeldTool } from '../policy/pins/pins.ts'
import type { Policy } from '../policy/policy.ts'
import type { PolicyRules } from '../policy/rules/rule.ts'
import type { Extractors } from '../policy/scopes/elevate.ts'
import type { ConfigFault } from './config/read.ts'
import type { ConnectingParts } from './connecting.ts'
import type { FoundationOptions, HostFoundation } from './foundation.ts'
import { type Inbox, type InboxEntry, type InboxOptions, RunLater } from './inbox/options.ts'
import type { AnswersOptions } from './loop/answers/answers.ts'
import type { HostConversation } from './loop/conversation.ts'
import type { ConversationFacts } from './loop/conversation-log.ts'
import type { ServerHooks } from './loop/hooks.ts'
import type { LoopLimits } from './loop/limits.ts'
import type { OnTurn } from './loop/ports.ts'
import type { AnswerOps, OnAnswerText } from './loop/run-turn.ts'
import type { OfferedPrompt } from './loop/user-input.ts'
import type { Model } from './models/model.ts'
import type { HostServer } from './servers/server.ts'
import type { StateBook } from './state/book.ts'

/** A running host. Made by `createHost`; `close` ends its servers. */
export class Host {
  readonly #foundation: HostFoundation
  readonly #parts: ConnectingParts
  readonly #options: HostOptions
  #closing: Promise<void> | undefined = undefined

  constructor(parts: ConnectingParts, options: HostOptions) {
    this.#foundation = parts.foundation
    this.#parts = parts
    this.#options = options
  }

  /**
   * Talks with the agent; the same conversation for the same name, also after a restart.
   * @example const turn = await host.conversation('c1').send('How is the project?')
   */
  conversation(id: string): HostConversation {
    return this.#parts.loop.conversation(id)
  }

  conversations(): Promise<readonly ConversationFacts[]> {
    return this.#parts.loop.conversations()
  }

  /** What can be run as `/name`. */
  prompts(): Promise<readonly OfferedPrompt[]> {
    return this.#parts.loop.prompts()
  }

  /** Opens the inbox: events of servers become turns, each once and in order, across restarts. */
  open(): Promise<void> {
    return this.#parts.inbox.open((entry, signal) => this.#deliver(entry, signal), { writesBegin: true })
  }

  /** Events that servers pushed: waiting, done, given up. */
  get inbox(): Pick<Inbox, 'list' | 'get' | 'dead' | 'replay'> {
    return this.#parts.inbox
  }

  /** What servers may do: rules, approvals, and why something is decided as it is. */
  get policy(): Policy {
    return this.#parts.policy
  }

  /** Who spent what: tokens, money and requests by server and feature set. */
  spent(options: SpentOptions = {}): Promise<readonly SpentRow[]> {
    return this.#parts.budgets.spent(options)
  }

  /** What each budget allows, and what of it is spent in its present window: by server, by feature set, or for all. */
  async budgets(): Promise<readonly BudgetStatus[]> {
    const declared = this.servers.flatMap(({ name: server, live }) => {
      const sets = [...(live?.featureSets.keys() ?? [])]
      return sets.length === 0 ? [{ server, featureSet: '' }] : sets.map(featureSet => ({ server, featureSet }))
    })
    const spent = (await this.spent()).map(row => (isUsers(row) ? { ...row, user: true } : row))
    return this.#parts.budgets.left([...declared, ...spent])
  }

  /**
   * Other settings from now on, without a restart: rules of the policy, budgets, roots. What servers may do is decided by them at once,
   * also for servers that are connected; events that waited for a budget are looked at again.
   */
  async update({ policy, budgets, roots }: HostSettings): Promise<void> {
    // All of it or nothing: whatever is wrong is thrown before anything has changed.
    if (budgets !== undefined) checkLimits(budgets)
    if (policy !== undefined) await this.#parts.rules.update(policy)
    if (budgets !== undefined) this.#parts.budgets.update(budgets)
    if (roots !== undefined) this.setRoots(roots)
    if (budgets !== undefined) this.#parts.inbox.reconsider()
    const changed = Object.entries({ policy, budgets, roots }).filter(([, value]) => value !== undefined)
    const detail = `applied: ${changed.map(([name]) => name).join(', ')}`
    await this.#foundation.audit.note({ server: '', kind: 'config', outcome: 'success', rule: 'host.update', detail })
  }

  /** The folders that servers may know of; those that may are told. */
  setRoots(roots: readonly Root[]): void {
    this.#parts.loop.setRoots(roots)
  }

  /** All servers, those that are refused or down with the reason. */
  get servers(): readonly HostServer[] {
    return this.#foundation.servers.list()
  }

  server(name: string): HostServer | undefined {
    return this.#foundation.servers.get(name)
  }

  /** Tries a server at once that is down. */
  retry(server: string): void {
    this.#foundation.servers.retry(server)
  }

  /** The mistakes of the config as it was last read. */
  get configFaults(): readonly ConfigFault[] {
    return this.#foundation.faults
  }

  /** Tools whose definitions changed, or that are new, and that nobody has approved. */
  get heldTools(): readonly HeldTool[] {
    return this.servers.flatMap(server => server.held())
  }

  /** Takes a held definition for the right one from now on. */
  async approveTool(held: HeldTool): Promise<void> {
    await this.#foundation.servers.approve(held)
    await this.#foundation.audit.note({
      server: held.server,
      kind: 'pin',
      outcome: 'success',
      rule: 'approveTool',
      detail: held.tool.name,
    })
  }

  /** The states that servers left behind: trees of checkpoints, differences, going back. */
  get state(): StateBook {
    return this.#foundation.state
  }

  /** Notes by server, feature set, inference, time, kind and outcome, oldest first. */
  audit(question: AuditQuestion = {}): Promise<Queried> {
    return this.#foundation.audit.query(question)
  }

  /** Computes the chain over all notes anew: what was changed behind the host's back shows. */
  verifyAudit(): Promise<AuditVerdict> {
    return this.#foundation.audit.verify()
  }

  /** Everything that belongs to an event or an inference, with the reasons. */
  explain(id: string, options: { readonly server?: string } = {}): Promise<Explanation> {
    return this.#foundation.audit.explain(id, options)
  }

  /** Ends all servers and what they started. Turns that run are left as interrupted and can be resumed. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { inbox, loop, policy, budgets, events, foundation, recorder, summedNotes, answers, signals } = this.#parts
    await Promise.all([events.close(), inbox.close(), loop.close()])
    await Promise.all([answers.close(), signals.close()])
    policy.close()
    budgets.close()
    summedNotes.close()
    await foundation.close()
    await recorder?.close()
  }

  /** Events that were gathered become one turn. */
  async #deliver(entry: InboxEntry, signal: AbortSignal): Promise<void> {
    const { server, event, events, through, inferenceId, begin, done, attempt } = entry
    const { ambient, answers, signals } = this.#parts
    const { channel } = event
    // People in one channel do not read what is said in another.
    const own = channel === undefined ? `inbox/${server}` : `inbox/${server}/${channel.channelId}`
    const id = this.#options.conversationOf?.(server, event) ?? own
    const around = ambient?.take(server, event) ?? []
    const last = events.at(-1) ?? event
    const answered: AnswerOps = (text, turn) => answers.ops(server, last, id, text, turn)
    const answering = signals.answering(server, last, { conversation: id, inferenceId, attempt })
    const heard: OnAnswerText = (delta, turn) => answering.heard(delta, turn)
    const delivery = { server, event, events: [...around, ...events], through, inferenceId, begin, done, answered, heard }
    try {
      const { answer } = await this.conversation(id).deliver(delivery, signal)
      // The end of what was streamed first. Nobody else waits for a server that is slow to hear it.
      if (channel !== undefined) void answering.ended(answer).then(() => answers.send(server))
    } catch (error) {
      // Before it is tried again: what is posted then must not overtake it.
      await answering.ended(undefined)
      // A budget that is used up is no failure of the event: it waits for the next window.
      for (const each of around) ambient?.putBack(server, each)
      const refused = budgetRefusal(error)
      throw refused === undefined ? error : new RunLater(refused)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

// What a host may be told. Every option has a default; without any it is a host without servers.

/** What can be changed while a host runs. */
export type HostSettings = Pick<HostOptions, 'policy' | 'budgets' | 'roots'>

/** Options of `createHost`. Each has a default; without any it is a host without servers. */
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
