/** One queue for all that waits for whoever runs the gateway: calls that a rule asks about, and definitions that are not the pinned ones. */
import type { WaitingCall } from '../../features/reliability/confirmation/queue.ts'
import type { HeldTool } from '../../host/servers/pins.ts'
import type { Server } from '../../server/api.ts'
import type { Notes } from './notes.ts'
import { heldText, type ToolPins } from './pins.ts'

export type Approval =
  | ({ readonly kind: 'call' } & WaitingCall)
  | {
      readonly kind: 'tool'
      readonly id: string
      readonly upstream: string
      readonly tool: string
      readonly message: string
      /** How it differs from what was pinned, one line a difference. */
      readonly changes: readonly string[]
    }

export interface ApprovalsParts {
  readonly pins: ToolPins
  readonly notes: Notes
  confirmations(): Server['confirmations'] | undefined
}

export function approvalsOf({ pins, notes, confirmations }: ApprovalsParts) {
  const note = ({ server, tool }: HeldTool, outcome: 'approved' | 'refused'): void =>
    notes.note({ client: '', upstream: server, tool: tool.name, outcome, rule: 'pins' })
  return {
    approvals: async (): Promise<readonly Approval[]> => {
      const calls = (await confirmations()?.waiting()) ?? []
      const held = [...(await pins.waiting())].map(([id, each]): Approval => {
        const { server, tool, changes } = each
        return { kind: 'tool', id, upstream: server, tool: tool.name, message: heldText(each), changes }
      })
      return [...calls.map((call): Approval => ({ kind: 'call', ...call })), ...held]
    },
    approve: async (id: string): Promise<boolean> => {
      const held = pins.find(id)
      if (held === undefined) return (await confirmations()?.approve(id)) ?? false
      await pins.approve(held)
      note(held, 'approved')
      return true
    },
    refuse: async (id: string): Promise<boolean> => {
      const held = pins.find(id)
      if (held === undefined) return (await confirmations()?.refuse(id)) ?? false
      await pins.refuse(id)
      note(held, 'refused')
      return true
    },
  }
}
