/** What the audit log is told of a yes or a no. */
import type { Problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Op } from '../../../stores/store.ts'
import type { ObligedCall } from './call.ts'
import type { ConfirmFacts } from './facts.ts'
import type { Answered } from './queue.ts'
import type { ConfirmationParts } from './server.ts'

export interface ObligedAudit {
  /** Written with the use of what the yes came from; `answered`: who gave it, and when. */
  given(by: string, answered?: Answered): readonly Op[]
  /** Written where nothing else is. */
  agreed(by: string): Promise<void>
  refused(problem: Problem): Promise<void>
}

const silent: ObligedAudit = { given: () => [], agreed: async () => {}, refused: async () => {} }

export async function auditOf(
  parts: ConfirmationParts,
  exchange: Exchange,
  call: ObligedCall,
  facts: ConfirmFacts,
): Promise<ObligedAudit> {
  const audit = await parts.audit()
  if (audit === undefined) return silent
  const { owner, tool: target, binding, risk } = call
  const about = { owner, target, correlation: exchange.correlation, more: { ...facts.about, binding, risk } }
  const given = (by: string, answered?: Answered) => {
    const more = answered === undefined ? about.more : { ...about.more, by: answered.by, answered_at: answered.at }
    return { ...about, event: 'confirmation_given', outcome: by, more } as const
  }
  return {
    given: (by, answered) => [audit.line(given(by, answered))],
    agreed: by => audit.write(given(by)),
    refused: ({ code }) => audit.write({ ...about, event: 'confirmation_refused', outcome: code }),
  }
}
