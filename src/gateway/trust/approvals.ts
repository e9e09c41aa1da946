/** One queue for all that waits for whoever runs the gateway: calls that a rule asks about, and tools and launches that are not the pinned ones. */
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { Server } from '../../server/api.ts'
import type { KeptTool } from './held-tools.ts'
import type { HeldLaunch, Launches } from './launches.ts'
import type { Notes } from './notes.ts'
import { heldText, type ToolPins } from './pins.ts'

export type Approval =
  /** `about` says by which rule, at which server, and for which client and subject. */
  | ({ readonly kind: 'call' } & WaitingCall)
  | {
      readonly kind: 'tool'
      readonly id: string
      readonly upstream: string
      readonly tool: string
      readonly message: string
      /** How it differs from what was pinned, one line a difference. */
      readonly changes: readonly string[]
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

export interface ApprovalsParts {
  readonly pins: ToolPins
  readonly launches: Launches
  readonly notes: Notes
  confirmations(): Server['confirmations'] | undefined
}

export function toolApproval(id: string, kept: KeptTool): Approval & { readonly kind: 'tool' } {
  const { server, tool, changes, since } = kept
  return { kind: 'tool', id, upstream: server, tool: tool.name, message: heldText(kept), changes, since }
}

export function launchApproval({ id, upstream, changes, why }: HeldLaunch): Approval & { readonly kind: 'launch' } {
  return { kind: 'launch', id, upstream, message: why.message, changes }
}

export function approvalsOf({ pins, launches, notes, confirmations }: ApprovalsParts) {
  const note = ({ server, tool }: KeptTool, outcome: 'approved' | 'refused', by?: string): void =>
    notes.note({ client: '', upstream: server, tool: tool.name, outcome, rule: 'pins', by })
  const noteLaunch = ({ upstream, why: { code } }: HeldLaunch, outcome: 'approved' | 'refused', by?: string): void =>
    notes.note({ client: '', upstream, tool: '', outcome, rule: 'pins', code, by })
  return {
    approvals: async (): Promise<readonly Approval[]> => {
      const calls = (await confirmations()?.waiting()) ?? []
      const held = [...(await pins.waiting())].map(([id, kept]) => toolApproval(id, kept))
      const starts = (await launches.waiting()).map(launchApproval)
      return [...calls.map((call): Approval => ({ kind: 'call', ...call })), ...starts, ...held]
    },
    approve: async (id: string, by?: string): Promise<boolean> => {
      const launch = launches.find(id)
      if (launch !== undefined) {
        await launches.approve(launch)
        noteLaunch(launch, 'approved', by)
        return true
      }
      const held = await pins.find(id)
      if (held === undefined) return (await confirmations()?.approve(id, by)) ?? false
      await pins.approve(held)
      note(held, 'approved', by)
      return true
    },
    refuse: async (id: string, by?: string): Promise<boolean> => {
      const launch = launches.find(id)
      if (launch !== undefined) {
        await launches.refuse(id)
        noteLaunch(launch, 'refused', by)
        return true
      }
      const held = await pins.find(id)
      if (held === undefined) return (await confirmations()?.refuse(id, by)) ?? false
      await pins.refuse(id)
      note(held, 'refused', by)
      return true
    },
  }
}
