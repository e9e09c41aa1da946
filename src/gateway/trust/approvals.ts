/**
 * The operator's approval queue: calls that a rule asks about, and tools and launches that differ from their pins. Also notices, the
 * messages that tell the operator about new entries.
 */

import { logFrom } from '../../core/log.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { GatewayAuditLog } from '../../policy/audit/gateway-audit.ts'
import type { HeldLaunch, Launches } from '../../policy/pins/launches.ts'
import { heldText, type KeptTool, type ToolPins } from '../../policy/pins/tool-pins.ts'
import type { Server } from '../../server/api.ts'
import type { GatewayOptions } from '../gateway.ts'

/** An entry that waits for the operator's answer. */
export type Approval =
  /** `about` names the rule, the upstream, the client and the subject. */
  | ({ readonly kind: 'call' } & WaitingCall)
  | {
      readonly kind: 'tool'
      readonly id: string
      readonly upstream: string
      readonly tool: string
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
      readonly kind: 'launch'
      readonly id: string
      readonly upstream: string
      readonly message: string
      /** Differences of its command or address from the pinned one, one line each. */
      readonly changes: readonly string[]
    }

/** The sources of the queue. */
interface ApprovalsParts {
  readonly pins: ToolPins
  readonly launches: Launches
  readonly notes: GatewayAuditLog
  /** Confirmations of the server face; undefined until it exists. */
  confirmations(): Server['confirmations'] | undefined
}

/** A held tool definition as an entry of the queue. */
export function toolApproval(id: string, kept: KeptTool): Approval & { readonly kind: 'tool' } {
  const { server, tool, before, changes, since } = kept
  const whole = { definition: tool, ...(before !== undefined && { before }) }
  return { kind: 'tool', id, upstream: server, tool: tool.name, message: heldText(kept), changes, ...whole, since }
}

/** A held launch as an entry of the queue. */
export function launchApproval({ id, upstream, changes, why }: HeldLaunch): Approval & { readonly kind: 'launch' } {
  return { kind: 'launch', id, upstream, message: why.message, changes }
}

/** The queue and the functions that answer its entries. */
export function approvalsOf({ pins, launches, notes, confirmations }: ApprovalsParts) {
  // An id belongs to exactly one of launches, pins and confirmations; they are tried in this order.
  const answer = async (id: string, yes: boolean, by?: string): Promise<boolean> => {
    const noted = { client: '', outcome: yes ? 'approved' : 'refused', rule: 'pins', by } as const
    const launch = launches.find(id)
    if (launch !== undefined) {
      await (yes ? launches.approve(launch) : launches.refuse(id))
      notes.note({ ...noted, upstream: launch.upstream, tool: '', code: launch.why.code })
      return true
    }
    const held = await pins.kept.find(id)
    if (held === undefined) return (await (yes ? confirmations()?.approve(id, by) : confirmations()?.refuse(id, by))) ?? false
    await (yes ? pins.approve(held) : pins.kept.refuse(id))
    notes.note({ ...noted, upstream: held.server, tool: held.tool.name })
    return true
  }
  return {
    approvals: async (): Promise<readonly Approval[]> => {
      const calls = (await confirmations()?.waiting()) ?? []
      const held = [...(await pins.waiting())].map(([id, kept]) => toolApproval(id, kept))
      const starts = (await launches.waiting()).map(launchApproval)
      return [...calls.map((call): Approval => ({ kind: 'call', ...call })), ...starts, ...held]
    },
    approve: (id: string, by?: string): Promise<boolean> => answer(id, true, by),
    refuse: (id: string, by?: string): Promise<boolean> => answer(id, false, by),
  }
}

// Notices: what the operator should know because it waits for an answer or went wrong. They go to `onNotice` or the log.

/** A message for the operator of a gateway. */
export interface GatewayNotice {
  readonly kind: 'call-waits' | 'tool-held' | 'launch-held' | 'launch-changed' | 'audit-behind' | 'audit-lost' | 'audit-caught-up'
  /** One or two sentences. */
  readonly message: string
  /** What can be done about it. */
  readonly fix: string
  /** The id for `approve` and `refuse`, where an answer is expected. */
  readonly id?: string
}

/** Where notices go: `onNotice`, or the log at level `error`, so that they are visible at any log level. */
export function noticesTo({
  onNotice,
  log,
  onTrace,
  name = 'vivarium-gateway',
}: GatewayOptions): (notice: GatewayNotice) => void {
  if (onNotice !== undefined) return onNotice
  const to = logFrom(log, onTrace === undefined ? 'error' : 'silent').child({ server: name })
  return ({ kind, ...said }) => to.error(kind, said)
}

/** How an operator approves an entry: a command or a method call. */
export function howToApproveEntry({ config, store = 'memory:' }: GatewayOptions, id: string): string {
  if (config === undefined) return `gateway.approve('${id}'), or refuse`
  if (store === 'memory:') return 'Give the gateway a store (store: sqlite:PATH): then the command can answer'
  return `vivarium gateway approvals ${word(config)} --approve ${word(id)}`
}

/** A text as one word of a command line. */
function word(text: string): string {
  return /^[\w./:@%~-]+$/.test(text) ? text : JSON.stringify(text)
}
