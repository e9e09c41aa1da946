/** One queue for all that waits for whoever runs the gateway: calls that a rule asks about, and definitions that are not the pinned ones. */
import type { Risk } from '../../features/reliability/confirmation/messages.ts'
import type { HeldTool } from '../../host/servers/pins.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { Server } from '../../server/api.ts'
import type { Notes } from './notes.ts'
import { heldText, type ToolPins } from './pins.ts'

export type Approval =
  | {
      readonly kind: 'call'
      readonly id: string
      readonly tool: string
      readonly message: string
      readonly risk: Risk
      /** Absent where they are too long to be kept. */
      readonly arguments?: Params
      readonly principal?: string
      /** Milliseconds since the epoch. */
      readonly askedAt: number
      readonly expires: number
    }
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
