/** The public `Host` class and the options of `createHost`. */
import type { AuditVerdict, AuditVerifyOptions } from '../core/audit/audit.ts'
import type { AuditSearchOptions, AuditSearchResult } from '../core/audit/search.ts'
import type { Duration } from '../core/clock.ts'
import type { Why } from '../core/suggestion.ts'
import type { ModelInfo } from '../features/live/model-info/messages.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import type { Root } from '../features/mcp/roots/messages.ts'
import type { OnApproval } from '../policy/approvals/question.ts'
import type { AuditQuestion, Explanation, Note, Queried } from '../policy/audit/host-audit.ts'
import {
  type BudgetLimit,
  type BudgetStatus,
  budgetRefusal,
  checkLimits,
  isUserSpender,
  type Spender,
  type SpentOptions,
  type SpentRow,
} from '../policy/budgets/budgets.ts'
import type { HeldTool } from '../policy/pins/pins.ts'
import type { Policy } from '../policy/policy.ts'
import type { PolicyRules } from '../policy/rules/rule.ts'
import type { Extractors } from '../policy/scopes/elevate.ts'
import type { ConfigFault } from './config/read.ts'
import type { HostParts } from './create.ts'
import type { FoundationOptions, HostFoundation } from './foundation.ts'
import type { Inbox } from './inbox/inbox.ts'
import { type InboxEntry, type InboxOptions, RunLater } from './inbox/options.ts'
import type { AnswersOptions } from './loop/answers/answers.ts'
import type { HostConversation } from './loop/conversation.ts'
import type { ConversationFacts } from './loop/conversation-log.ts'
import type { ServerHooks } from './loop/hooks.ts'
import type { GivenLoopLimits } from './loop/limits.ts'
import type { OnTurn } from './loop/ports.ts'
import type { TurnEffects } from './loop/run-turn.ts'
import type { OfferedPrompt } from './loop/user-input.ts'
import type { Model } from './models/model.ts'
import type { HostServer } from './servers/server.ts'
import type { StateBook } from './state/book.ts'

/** An agent with its servers, made by `createHost`. `close` stops it. */
export class Host {
  readonly #foundation: HostFoundation
  readonly #parts: HostParts
  readonly #options: HostOptions
  #closing: Promise<void> | undefined = undefined

  constructor(parts: HostParts, options: HostOptions) {
    this.#foundation = parts.foundation
    this.#parts = parts
    this.#options = options
  }

  /**
   * Returns the conversation with this name. It is stored, so the same name continues it after a restart.
   * @example const turn = await host.conversation('c1').send('How is the project?')
   */
  conversation(id: string): HostConversation {
    return this.#parts.loop.conversation(id)
  }

  /** All conversations in the store. */
  conversations(): Promise<readonly ConversationFacts[]> {
    return this.#parts.loop.conversations()
  }

  /** The prompts that can be called as `/name`. */
  prompts(): Promise<readonly OfferedPrompt[]> {
    return this.#parts.loop.prompts()
  }

  /** Whether what it stores outlives this process. */
  get durable(): boolean {
    return this.#options.store !== undefined && this.#options.store !== 'memory:'
  }

  /** The model that answers users. */
  get model(): ModelInfo {
    return this.#parts.loop.model
  }

  /** Starts to process the inbox: events become turns, once each and in order, across restarts. */
  open(): Promise<void> {
    return this.#parts.inbox.open((entry, signal) => this.#deliver(entry, signal), { writesBegin: true })
  }

  /** Events that servers pushed: waiting, done, or dead. */
  get inbox(): Pick<Inbox, 'list' | 'get' | 'dead' | 'replay' | 'newest'> {
    return this.#parts.inbox
  }

  /** What servers may do: rules, approvals, and explanations of decisions. */
  get policy(): Policy {
    return this.#parts.policy
  }

  /** Returns what servers have spent: tokens, money and requests, by server and feature set. */
  spent(options: SpentOptions = {}): Promise<readonly SpentRow[]> {
    return this.#parts.budgets.spent(options)
  }

  /** Returns what each budget allows, and what is spent in its current window. */
  async budgets(): Promise<readonly BudgetStatus[]> {
    const declared = this.servers.flatMap(({ name: server, live }) => {
      const sets = [...(live?.featureSets.keys() ?? [])]
      return sets.length === 0 ? [{ server, featureSet: '' }] : sets.map(featureSet => ({ server, featureSet }))
    })
    const spent = (await this.spent()).map(row => (isUserSpender(row) ? { ...row, user: true } : row))
    return this.#parts.budgets.left([...declared, ...spent])
  }

  /**
   * Changes policy rules, budgets or roots without a restart. They apply at once, also to connected servers; events that waited for a
   * budget are tried again.
   */
  async update({ policy, budgets, roots }: HostSettings): Promise<void> {
    // Validate everything first, so that a mistake changes nothing.
    if (budgets !== undefined) checkLimits(budgets)
    if (policy !== undefined) await this.#parts.rules.update(policy)
    if (budgets !== undefined) this.#parts.budgets.update(budgets)
    if (roots !== undefined) this.setRoots(roots)
    if (budgets !== undefined) this.#parts.inbox.reconsider()
    const changed = Object.entries({ policy, budgets, roots }).filter(([, value]) => value !== undefined)
    const detail = `applied: ${changed.map(([name]) => name).join(', ')}`
    await this.#foundation.audit.note({ server: '', kind: 'config', outcome: 'success', rule: 'host.update', detail })
  }

  /** Sets the roots, and notifies the servers that may know them. */
  setRoots(roots: readonly Root[]): void {
    this.#parts.loop.answers.setRoots(roots)
  }

  /** All servers; those that are refused or down have a reason. */
  get servers(): readonly HostServer[] {
    return this.#foundation.servers.list()
  }

  /** The server with this name. */
  server(name: string): HostServer | undefined {
    return this.#foundation.servers.get(name)
  }

  /** Reconnects a server that is down, without waiting. */
  retry(server: string): void {
    this.#foundation.servers.retry(server)
  }

  /** The mistakes of the config when it was last read. */
  get configFaults(): readonly ConfigFault[] {
    return this.#foundation.faults
  }

  /** Tools that are new or changed and not approved. */
  get heldTools(): readonly HeldTool[] {
    return this.servers.flatMap(server => server.held())
  }

  /** Approves a held tool definition. */
  async approveTool(held: HeldTool): Promise<void> {
    const { server, tool } = held
    await this.#foundation.servers.approve(held)
    await this.#foundation.audit.note({ server, kind: 'pin', outcome: 'success', rule: 'approveTool', detail: tool.name })
  }

  /** The states of servers: checkpoint trees, differences and rollback. */
  get state(): StateBook {
    return this.#foundation.state
  }

  /** Audit entries by server, feature set, inference, time, kind and outcome, oldest first. */
  audit(question: AuditQuestion = {}): Promise<Queried> {
    return this.#foundation.audit.query(question)
  }

  /** Verifies the digest chain of the audit log: shows whether entries were changed. */
  verifyAudit(options?: AuditVerifyOptions): Promise<AuditVerdict> {
    return this.#foundation.audit.verify(options)
  }

  /** Lines of the audit log that match, newest first, one page at a time. `owner` is the server that a line is about. */
  searchAudit(options?: AuditSearchOptions): Promise<AuditSearchResult> {
    return this.#foundation.audit.search(options)
  }

  /** Writes an entry into the audit log: what somebody did with the host outside of its own doing. */
  note(note: Note): Promise<void> {
    return this.#foundation.audit.note(note)
  }

  /** Everything that belongs to an event or an inference, with reasons. */
  explain(
    id: string,
    options: {
      /** Considers only this server. Default: all servers. */
      readonly server?: string
    } = {},
  ): Promise<Explanation> {
    return this.#foundation.audit.explain(id, options)
  }

  /** Stops all servers. Running turns are left as interrupted and can be resumed. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { inbox, loop, policy, budgets, events, foundation, recorder, summedNotes, notices, answers, signals } = this.#parts
    notices.close()
    await Promise.all([events.close(), inbox.close(), loop.close()])
    await Promise.all([answers.close(), signals.close()])
    policy.close()
    budgets.close()
    summedNotes.close()
    await foundation.close()
    await recorder?.close()
  }

  /** Runs one inbox entry, of one or several events, as a turn. */
  async #deliver(entry: InboxEntry, signal: AbortSignal): Promise<void> {
    const { server, event, events, through, inferenceId, begin, done, attempt } = entry
    const { ambient, answers, signals } = this.#parts
    const { channel } = event
    // One conversation per channel, because the people of one channel do not see another.
    const own = channel === undefined ? `inbox/${server}` : `inbox/${server}/${channel.channelId}`
    const id = this.#options.conversationOf?.(server, event) ?? own
    const around = ambient?.take(server, event) ?? []
    const last = events.at(-1) ?? event
    const answering = signals.answering(server, last, { conversation: id, inferenceId, attempt })
    const pushed = { server, event, events: [...around, ...events], through, inferenceId, begin, done }
    const effects: Pick<TurnEffects, 'answered' | 'heard'> = {
      answered: (text, turn) => answers.ops(server, last, id, text, turn),
      heard: (delta, turn) => answering.heard(delta, turn),
    }
    try {
      const { answer } = await this.conversation(id).deliver({ ...pushed, ...effects }, signal)
      // End the stream before the answer is posted. Not awaited: a slow server must not delay others.
      if (channel !== undefined) void answering.ended(answer).then(() => answers.send(server))
    } catch (error) {
      // End the stream before the retry, so that they do not overlap.
      await answering.ended(undefined)
      // An exhausted budget is no failure of the event: it waits for the next window.
      for (const each of around) ambient?.putBack(server, each)
      const refused = budgetRefusal(error)
      throw refused === undefined ? error : new RunLater(refused)
    }
  }

  /** Same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

// Options. Every option has a default.

/** Options that `host.update` can change. */
export type HostSettings = Pick<HostOptions, 'policy' | 'budgets' | 'roots'>

/**
 * Options of `createHost`. All are optional.
 * @example
 * await using host = await createHost({
 *   servers: { shop: url },
 *   policy: { rules: [{ name: 'careful', when: { tool: 'delete_*' }, do: 'ask' }] },
 *   onApproval: async ({ text }) => text.startsWith('Allow'),
 *   model: offline(),
 * })
 */
export interface HostOptions extends FoundationOptions, AnswersOptions {
  /**
   * The model, or several: the first one answers users; preferences of servers and `routes` may choose others. Default: the model
   * that ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL select, otherwise the offline assistant.
   */
  readonly model?: Model | readonly [Model, ...Model[]]
  /** The beginning of the system prompt. Default: a short built-in text. */
  readonly system?: string
  /** What servers may do. Default: everything that no rule covers is asked about. */
  readonly policy?: PolicyRules
  /** Asks the user where the policy says `ask`. Default: such requests are refused. */
  readonly onApproval?: OnApproval
  /** How long an approval without a duration counts. Default 1 hour. */
  readonly remember?: Duration
  /** How long `onApproval` may take; after that the answer is no. Default 5 minutes. */
  readonly approvalTimeout?: Duration
  /**
   * How long `onApproval` may take; after that the answer is no. Default 5 minutes.
   * @deprecated Use `approvalTimeout`.
   */
  readonly patience?: Duration
  /** What servers may spend. Default: counted without limits. */
  readonly budgets?: readonly BudgetLimit[]
  /** Called when a budget reaches its `warnAt` share. Default: not called. */
  readonly onBudget?: (what: Why, spender: Spender) => void
  /** Reads from the arguments of tools what they act on, by `server/tool`, so that scope lists apply. Default: none. */
  readonly extract?: Extractors
  /** Called when an event was accepted, or its state has changed, also by another process as far as this one learns of it. Default: not called. */
  readonly onInbox?: (server: string, eventId: string) => void
  /** How events of servers are accepted and retried. */
  readonly inbox?: Omit<InboxOptions, 'store' | 'policy' | 'clock' | 'onDiagnostic' | 'onChange' | 'withheld' | 'random' | 'id'>
  /**
   * What happens to channel messages with the tag `chat:ambient`. Default `keep`: the model sees the newest with the next message that is
   * meant for it. `wake`: each becomes a turn.
   */
  readonly ambient?: 'keep' | 'wake'
  /** The conversation that an event belongs to. Default: one per server, and one per channel. */
  readonly conversationOf?: (server: string, event: PushEvent) => string
  /** Timeouts and failure modes of hooks, by server. Default: see `HookRule`. */
  readonly hooks?: Readonly<Record<string, ServerHooks>>
  /** Limits of turns and prompts: steps, tool calls, tokens, times. Default: see `LoopLimits`. */
  readonly limits?: GivenLoopLimits
  /** Called when a turn begins, also one that an event starts. Default: not called. */
  readonly onTurn?: OnTurn
  /** A file in which the whole session is recorded, for `replay`. It contains all messages. Default: not recorded. */
  readonly record?: string
  /** For tests: returns the ids of turns and inferences. Default: random ids. */
  readonly newId?: () => string
}
