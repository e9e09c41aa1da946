/** `Host`: many servers, one agent. What it knows of each, what they left behind, and why it did what it did. */
import type { AuditVerdict } from '../core/audit/audit.ts'
import type { Root } from '../features/mcp/roots/messages.ts'
import type { Explanation } from './audit/book.ts'
import type { Queried, Question } from './audit/query.ts'
import type { SpentOptions, SpentRow } from './budgets/spent.ts'
import type { ConfigFault } from './config/read.ts'
import type { ConnectingParts } from './connecting.ts'
import type { Frame } from './frame.ts'
import type { Inbox, InboxEntry } from './inbox/options.ts'
import type { Conversation } from './loop/conversation.ts'
import type { ConversationFacts } from './loop/conversation-log.ts'
import type { OfferedPrompt } from './loop/slash.ts'
import type { HostOptions } from './options.ts'
import type { Policy } from './policy/policy.ts'
import type { HeldTool } from './servers/pins.ts'
import type { HostServer } from './servers/server.ts'
import type { StateBook } from './state/book.ts'

export class Host {
  readonly #frame: Frame
  readonly #parts: ConnectingParts
  readonly #options: HostOptions
  #closing: Promise<void> | undefined = undefined

  constructor(parts: ConnectingParts, options: HostOptions) {
    this.#frame = parts.frame
    this.#parts = parts
    this.#options = options
  }

  /**
   * Talks with the agent; the same conversation for the same name, also after a restart.
   * @example const turn = await host.conversation('c1').send('How is the project?')
   */
  conversation(id: string): Conversation {
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

  /** The folders that servers may know of; those that may are told. */
  setRoots(roots: readonly Root[]): void {
    this.#parts.loop.setRoots(roots)
  }

  /** All servers, those that are refused or down with the reason. */
  get servers(): readonly HostServer[] {
    return this.#frame.servers.list()
  }

  server(name: string): HostServer | undefined {
    return this.#frame.servers.get(name)
  }

  /** Tries a server at once that is down. */
  retry(server: string): void {
    this.#frame.servers.retry(server)
  }

  /** The mistakes of the config as it was last read. */
  get configFaults(): readonly ConfigFault[] {
    return this.#frame.faults
  }

  /** Tools whose definitions changed, or that are new, and that nobody has approved. */
  get heldTools(): readonly HeldTool[] {
    return this.servers.flatMap(server => server.held())
  }

  /** Takes a held definition for the right one from now on. */
  async approveTool(held: HeldTool): Promise<void> {
    await this.#frame.servers.approve(held)
    await this.#frame.audit.note({ server: held.server, kind: 'pin', outcome: 'success', detail: held.tool.name })
  }

  /** The states that servers left behind: trees of checkpoints, differences, going back. */
  get state(): StateBook {
    return this.#frame.state
  }

  /** Notes by server, feature set, inference, time, kind and outcome, oldest first. */
  audit(question: Question = {}): Promise<Queried> {
    return this.#frame.audit.query(question)
  }

  /** Computes the chain over all notes anew: what was changed behind the host's back shows. */
  verifyAudit(): Promise<AuditVerdict> {
    return this.#frame.audit.verify()
  }

  /** Everything that belongs to an event or an inference, with the reasons. */
  explain(id: string, options: { readonly server?: string } = {}): Promise<Explanation> {
    return this.#frame.audit.explain(id, options)
  }

  /** Ends all servers and what they started. Turns that run are left as interrupted and can be resumed. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { inbox, loop, policy, budgets, frame, recorder, refusals } = this.#parts
    await Promise.all([inbox.close(), loop.close()])
    policy.close()
    budgets.close()
    refusals.close()
    await frame.close()
    await recorder?.close()
  }

  /** Events that were gathered become one turn. */
  async #deliver({ server, event, events, inferenceId, begin, done }: InboxEntry, signal: AbortSignal): Promise<void> {
    const whole = events.length > 1 ? { ...event, content: events.flatMap(({ content }) => content) } : event
    const id = this.#options.conversationOf?.(server, event) ?? `inbox/${server}`
    await this.conversation(id).deliver({ server, event: whole, inferenceId, begin, done }, signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
