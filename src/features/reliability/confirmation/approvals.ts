/** Approvals that are given outside of the call that they are for: by a page, or for many calls at once. */

import { toMilliseconds } from '../../../core/clock.ts'
import { binding } from '../../../core/digest.ts'
import type { Opened } from '../../../core/handle.ts'
import { problem } from '../../../core/problem.ts'
import { isNobody } from '../../../engine/owner.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { approvalMs, obligation } from './call.ts'
import type { ApprovedCalls, Risk } from './messages.ts'
import { pageKind } from './page.ts'
import { answer, type WaitingCall, waiting } from './queue.ts'
import type { ConfirmationParts } from './server.ts'

/** What a page has to show. */
export interface PendingApproval {
  readonly tool: string
  readonly message: string
  readonly risk: Risk
}

export interface Approvals {
  /** Undefined where there is no such request, or it is over. */
  find(id: string): Promise<PendingApproval | undefined>
  /**
   * The person at the page, or whoever looks at what stands in line, has agreed. False where there is no such request, it is over,
   * or was answered before. `by`: who, for the audit log.
   */
  approve(id: string, by?: string): Promise<boolean>
  /** Calls that stand in line for an approval, on all processes of the store. */
  waiting(): Promise<readonly WaitingCall[]>
  /** One that stands in line shall not be made. False where there is none such. */
  refuse(id: string, by?: string): Promise<boolean>
  /** The user has agreed to these calls of a tool. */
  allow(owner: string, tool: string, approved: ApprovedCalls): Promise<void>
}

interface Page extends PendingApproval {
  readonly owner: string
  readonly binding: string
}

export function createApprovals(parts: ConfirmationParts): Approvals {
  const open = async (id: string): Promise<{ readonly handle: Opened; readonly page: Page } | undefined> => {
    const handle = await parts.seal.read(id, { kind: pageKind }).catch(() => undefined)
    if (handle === undefined || !isRecord(handle.data) || (await (await parts.spending()).isSpent(handle))) return undefined
    return { handle, page: handle.data as unknown as Page }
  }
  const answered = async (id: string, yes: boolean, by: string | undefined): Promise<boolean> => {
    const [store, audit] = await Promise.all([parts.store(), parts.audit()])
    return answer(store, id, yes, { clock: parts.clock, by, audit })
  }
  return {
    find: async id => {
      const found = await open(id)
      if (found === undefined) return undefined
      const { tool, message, risk } = found.page
      return { tool, message, risk }
    },
    approve: async (id, by) => {
      const found = await open(id)
      if (found === undefined) return answered(id, true, by)
      if (!(await (await parts.spending()).spend(found.handle))) return false
      const { owner, tool, binding: bound } = found.page
      await (await parts.grants()).issue(owner, { ...fulfils(tool), bound: [bound], source: 'page' }, approvalMs)
      return true
    },
    waiting: async () => waiting(await parts.store()),
    refuse: (id, by) => answered(id, false, by),
    allow: async (owner, tool, approved) => {
      if (isNobody(owner))
        throw problem('UNSUPPORTED', 'An approval of many calls needs somebody whose it is', {
          suggestion: 'Serve it with authorization, or with sessions',
          actor: 'operator',
        })
      const definition = await parts.definition(tool)
      if (definition === undefined) throw new TypeError(`There is no tool "${tool}" to approve calls of`)
      const terms =
        'calls' in approved
          ? { bound: await Promise.all(approved.calls.map(args => binding(tool, args, definition))) }
          : { uses: approved.uses }
      const ttlMs = toMilliseconds(approved.ttl ?? approvalMs, 'ttl')
      await (await parts.grants()).issue(owner, { ...fulfils(tool), ...terms, source: 'batch' }, ttlMs)
    },
  }
}

function fulfils(tool: string) {
  // A name may hold no star, so it matches itself alone.
  return { effect: 'fulfil', action: obligation, resource: tool, standing: true } as const
}
