/**
 * The operator's approval queue: calls that a rule asks about, and tools and launches that differ from their pins. Also notices, the
 * messages that tell the operator about new entries.
 */

import type { AnswerRecord } from '../../core/answers.ts'
import { heardLog } from '../../core/heard-log.ts'
import { cleanFields, logFrom } from '../../core/log.ts'
import { shellWord } from '../../core/suggestion.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { GatewayAuditLog } from '../../policy/audit/gateway-audit.ts'
import type { HeldLaunch, Launches } from '../../policy/pins/launches.ts'
import { heldText, type StoredTool, type ToolPins } from '../../policy/pins/tool-pins.ts'
import type { Server } from '../../server/api.ts'
import type { Store } from '../../stores/store.ts'
import type { GatewayOptions } from '../gateway.ts'

/** An entry that waits for the operator's answer. */
export type Approval =
  /** `about` names the rule, the upstream, the client and the subject. */
  | ({
      /** What waits: a call, a tool definition, or the start of a server. */
      readonly kind: 'call'
    } & WaitingCall)
  | {
      /** What waits: a call, a tool definition, or the start of a server. */
      readonly kind: 'tool'
      /** The id, for `approve` and `refuse`. */
      readonly id: string
      /** The name of the upstream. */
      readonly upstream: string
      /** The name of the tool at the upstream. */
      readonly tool: string
      /** What the operator is asked, in a sentence. */
      readonly message: string
      /** Differences from the pinned definition, one line each; long ones are cut. */
      readonly changes: readonly string[]
      /** The current definition, in full. */
      readonly definition: Tool
      /** The pinned definition, in full. */
      readonly before?: Tool
      /** When it was held, in milliseconds since the epoch. */
      readonly since: number
    }
  | {
      /** What waits: a call, a tool definition, or the start of a server. */
      readonly kind: 'launch'
      /** The id, for `approve` and `refuse`. */
      readonly id: string
      /** The name of the upstream. */
      readonly upstream: string
      /** What the operator is asked, in a sentence. */
      readonly message: string
      /** Differences of its command or address from the pinned one, one line each. */
      readonly changes: readonly string[]
    }

/** The sources of the queue. */
interface ApprovalsParts {
  readonly store: Store
  /** The store was given: confirmations lie on it too, and other processes may use it. */
  readonly shared: boolean
  readonly news: ApprovalNews
  readonly pins: ToolPins
  readonly launches: Launches
  readonly notes: GatewayAuditLog
  /** Confirmations of the server face; undefined until it exists. */
  confirmations(): Server['confirmations'] | undefined
}

/** A held tool definition as an entry of the queue. */
export function toolApproval(id: string, stored: StoredTool): Approval & { readonly kind: 'tool' } {
  const { server, tool, before, changes, since } = stored
  const whole = { definition: tool, ...(before !== undefined && { before }) }
  return { kind: 'tool', id, upstream: server, tool: tool.name, message: heldText(stored), changes, ...whole, since }
}

/** A held launch as an entry of the queue. */
export function launchApproval({ id, upstream, changes, why }: HeldLaunch): Approval & { readonly kind: 'launch' } {
  return { kind: 'launch', id, upstream, message: why.message, changes }
}

/** The operator's approval queue and its answers. */
export interface ApprovalsControl {
  /** Everything that waits for an answer: calls, tool definitions and launches. */
  approvals(): Promise<readonly Approval[]>
  /** One of them, with arguments of any length; undefined where nothing waits under this id. */
  approval(id: string): Promise<Approval | undefined>
  /** False where the id is unknown or already answered. `by` and `reason`: who answers and why, for the audit log. */
  approve(id: string, by?: string, reason?: string): Promise<boolean>
  /** The same for a refusal. */
  refuse(id: string, by?: string, reason?: string): Promise<boolean>
  /** Who answered within the last hour, and how; undefined where nobody did. */
  answered(id: string): Promise<AnswerRecord | undefined>
  /** Yields when the queue may have changed, on any process of the store. A hint: look again now and then. */
  approvalChanges(signal: AbortSignal): AsyncIterable<void>
}

/** The queue and the functions that answer its entries. */
export function approvalsOf(parts: ApprovalsParts): ApprovalsControl {
  const { store, shared, pins, launches, notes, news, confirmations } = parts
  // An id belongs to exactly one of launches, pins and confirmations; they are tried in this order.
  const answer = async (id: string, yes: boolean, by?: string, reason?: string): Promise<boolean> => {
    const noted = { client: '', outcome: yes ? 'approved' : 'refused', rule: 'pins', by, approval: id, reason } as const
    const launch = launches.find(id)
    if (launch !== undefined) {
      const first = await launches.answer(launch, yes, by)
      if (first) notes.note({ ...noted, upstream: launch.upstream, tool: '', code: launch.why.code })
      return first
    }
    const held = await pins.stored.find(id)
    if (held !== undefined) {
      const first = await pins.answer(held, yes, by)
      if (first) notes.note({ ...noted, upstream: held.server, tool: held.tool.name })
      return first
    }
    const call = (await confirmations()?.waiting())?.find(each => each.id === id)
    const first = await (yes ? confirmations()?.approve(id, by, reason) : confirmations()?.refuse(id, by, reason))
    if (first !== true) return false
    const { server = '', tool = call?.tool ?? '', client = '', rule } = call?.about ?? {}
    const said = { ...noted, client, upstream: server, tool, rule }
    // On a store that is given, the entry was written together with the answer.
    if (shared) notes.tell(said)
    else notes.note(said)
    return true
  }
  const all = async (): Promise<readonly Approval[]> => {
    const calls = (await confirmations()?.waiting()) ?? []
    const held = [...(await pins.waiting())].map(([id, held]) => toolApproval(id, held))
    const starts = (await launches.waiting()).map(launchApproval)
    return [...calls.map((call): Approval => ({ kind: 'call', ...call })), ...starts, ...held]
  }
  return {
    approvals: all,
    approval: async id => {
      const found = (await all()).find(each => each.id === id)
      if (found?.kind !== 'call' || found.arguments !== undefined) return found
      const given = await confirmations()?.argumentsOf(id)
      return given === undefined ? found : { ...found, arguments: given }
    },
    approve: (id, by, reason) => answer(id, true, by, reason).finally(() => news.changed()),
    refuse: (id, by, reason) => answer(id, false, by, reason).finally(() => news.changed()),
    answered: async id =>
      (await confirmations()?.answered(id)) ?? (await pins.stored.answered(id)) ?? (await launches.answered(id)),
    approvalChanges: signal => news.follow(shared ? store : undefined, signal),
  }
}

/** Tells whoever follows the queue that it may have changed. */
export class ApprovalNews {
  readonly #followers = new Set<() => void>()

  /** It changed in this process. */
  changed(): void {
    for (const follower of this.#followers) follower()
  }

  /** Yields after each change here, or on a store that others use too. */
  async *follow(store: Store | undefined, signal: AbortSignal): AsyncGenerator<void> {
    let wake = Promise.withResolvers<void>()
    const changed = (): void => wake.resolve()
    this.#followers.add(changed)
    signal.addEventListener('abort', changed)
    if (store !== undefined) void notifyBy(store, signal, changed)
    try {
      for (;;) {
        await wake.promise
        if (signal.aborted) return
        wake = Promise.withResolvers<void>()
        yield
      }
    } finally {
      this.#followers.delete(changed)
      signal.removeEventListener('abort', changed)
    }
  }
}

/** What others write where approvals lie. */
async function notifyBy(store: Store, signal: AbortSignal, changed: () => void): Promise<void> {
  try {
    for await (const _ of store.watch(['approval/', 'gateway/held/', 'gateway/launch/', 'gateway/refused/'], signal)) changed()
  } catch {
    // The store was closed: whoever follows looks again by itself.
  }
}

// Notices: what the operator should know because it waits for an answer or went wrong. They go to `onNotice` or the log.

/** A message for the operator of a gateway. */
export interface GatewayNotice {
  /** What has happened. */
  readonly kind: 'call-waits' | 'tool-held' | 'launch-held' | 'launch-changed' | 'audit-behind' | 'audit-lost' | 'audit-caught-up'
  /** One or two sentences. */
  readonly message: string
  /** What can be done about it. */
  readonly fix: string
  /** The id for `approve` and `refuse`, where an answer is expected. */
  readonly id?: string
}

/** Where notices go: `onNotice`, or the log at level `error`, so that they are visible at any log level. */
export function noticesTo(options: GatewayOptions): (notice: GatewayNotice) => void {
  const { onNotice, onLog, log, onTrace, name = 'vivarium-gateway' } = options
  if (onNotice === undefined) {
    const to = heardLog(logFrom(log, onTrace === undefined ? 'error' : 'silent'), onLog).child({ server: name })
    return ({ kind, ...said }) => to.error(kind, said)
  }
  return notice => {
    onNotice(notice)
    const { kind, ...said } = notice
    onLog?.({ level: 'warn', event: kind, fields: cleanFields(said) })
  }
}

/** How an operator approves an entry: a command or a method call. */
export function howToApproveEntry({ config, store = 'memory:' }: GatewayOptions, id: string): string {
  if (config === undefined) return `Call gateway.approve('${id}') or gateway.refuse('${id}')`
  if (store === 'memory:') return 'Set a store for the gateway (store: sqlite:PATH), so that you can approve with a command'
  return `vivarium gateway approvals ${shellWord(config)} --approve ${shellWord(id)}`
}
