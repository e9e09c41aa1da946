/** One queue for all that waits for whoever runs the gateway: calls that a rule asks about, and tools and launches that are not the pinned ones. */

import { logFrom } from '../../core/log.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { Notes } from '../../policy/audit/call-notes.ts'
import type { HeldLaunch, Launches } from '../../policy/pins/launches.ts'
import { heldText, type KeptTool, type ToolPins } from '../../policy/pins/tool-pins.ts'
import type { Server } from '../../server/api.ts'
import type { GatewayOptions } from '../gateway.ts'

/** Something that waits for the operator's answer. */
export type Approval =
  /** `about` says by which rule, at which server, and for which client and subject. */
  | ({ readonly kind: 'call' } & WaitingCall)
  | {
      readonly kind: 'tool'
      readonly id: string
      readonly upstream: string
      readonly tool: string
      readonly message: string
      /** How it differs from what was pinned, one line a difference, of long ones the beginning. */
      readonly changes: readonly string[]
      /** All of it, as its server says it now, and as it was pinned. */
      readonly definition: Tool
      readonly before?: Tool
      /** Since when it is held: milliseconds since the epoch. */
      readonly since: number
    }
  | {
      readonly kind: 'launch'
      readonly id: string
      readonly upstream: string
      readonly message: string
      /** How its command or address differs from what was pinned, one line a difference. */
      readonly changes: readonly string[]
    }

/** Where the entries of the queue come from. */
interface ApprovalsParts {
  readonly pins: ToolPins
  readonly launches: Launches
  readonly notes: Notes
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

/** The queue, and what answers its entries. */
export function approvalsOf({ pins, launches, notes, confirmations }: ApprovalsParts) {
  const note = ({ server, tool }: KeptTool, outcome: 'approved' | 'refused', by?: string): void =>
    notes.note({ client: '', upstream: server, tool: tool.name, outcome, rule: 'pins', by })
  const noteLaunch = ({ upstream, why: { code } }: HeldLaunch, outcome: 'approved' | 'refused', by?: string): void =>
    notes.note({ client: '', upstream, tool: '', outcome, rule: 'pins', code, by })
  const answer = async (id: string, outcome: 'approved' | 'refused', by?: string): Promise<boolean> => {
    const yes = outcome === 'approved'
    const launch = launches.find(id)
    if (launch !== undefined) {
      await (yes ? launches.approve(launch) : launches.refuse(id))
      noteLaunch(launch, outcome, by)
      return true
    }
    const held = await pins.find(id)
    if (held === undefined) return (await (yes ? confirmations()?.approve(id, by) : confirmations()?.refuse(id, by))) ?? false
    await (yes ? pins.approve(held) : pins.refuse(id))
    note(held, outcome, by)
    return true
  }
  return {
    approvals: async (): Promise<readonly Approval[]> => {
      const calls = (await confirmations()?.waiting()) ?? []
      const held = [...(await pins.waiting())].map(([id, kept]) => toolApproval(id, kept))
      const starts = (await launches.waiting()).map(launchApproval)
      return [...calls.map((call): Approval => ({ kind: 'call', ...call })), ...starts, ...held]
    },
    approve: (id: string, by?: string): Promise<boolean> => answer(id, 'approved', by),
    refuse: (id: string, by?: string): Promise<boolean> => answer(id, 'refused', by),
  }
}

// What whoever runs a gateway has to hear of, because it waits for him or went wrong: told, or else written where its log goes.

/** A message for the operator of a gateway. */
export interface GatewayNotice {
  readonly kind: 'call-waits' | 'tool-held' | 'launch-held' | 'launch-changed' | 'audit-behind' | 'audit-lost' | 'audit-caught-up'
  /** One sentence, or two. */
  readonly message: string
  /** What can be done about it. */
  readonly fix: string
  /** Of what waits for an answer: what `approve` and `refuse` take. */
  readonly id?: string
}

/** Delivers a message to the operator. */
export type TellNotice = (notice: GatewayNotice) => void

/** By its log that is an error, so that it is seen where nobody asked for more than those. */
export function noticesTo({ onNotice, log, onTrace, name = 'vivarium-gateway' }: GatewayOptions): TellNotice {
  if (onNotice !== undefined) return onNotice
  const to = logFrom(log, onTrace === undefined ? 'error' : 'silent').child({ server: name })
  return ({ kind, ...said }) => to.error(kind, said)
}

/** What somebody does who agrees. */
export function approveWith({ config, store = 'memory:' }: Pick<GatewayOptions, 'config' | 'store'>, id: string): string {
  if (config === undefined) return `gateway.approve('${id}'), or refuse`
  if (store === 'memory:') return 'Give the gateway a store (store: sqlite:PATH): then the command can answer'
  return `vivarium gateway approvals ${word(config)} --approve ${word(id)}`
}

/** As a word of a command line. */
function word(text: string): string {
  return /^[\w./:@%~-]+$/.test(text) ? text : JSON.stringify(text)
}
