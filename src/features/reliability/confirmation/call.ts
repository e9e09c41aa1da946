/** One call that needs a yes: what is asked, and what the yes is bound to. */
import { binding } from '../../../core/digest.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { ownerOf } from '../../../engine/owner.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { type ConfirmFacts, confirmMessage, riskOf } from './facts.ts'
import { confirmationText, type Risk } from './messages.ts'
import type { ConfirmationParts } from './server.ts'

/** The longest that an answer, a token or an approval by page is good for. */
export const approvalMs = 300_000

/** The obligation that a confirmation meets. */
export const obligation = 'confirm'

export interface ObligedCall {
  readonly owner: string
  readonly tool: string
  readonly args: Params
  readonly text: string
  readonly risk: Risk
  /** The digest of the tool as it is offered now. */
  readonly definition: string
  /** The digest of tool, arguments and definition. */
  readonly binding: string
}

export async function callOf(parts: ConfirmationParts, exchange: Exchange, facts: ConfirmFacts): Promise<ObligedCall> {
  const tool = exchange.params['name'] as string
  const args = (exchange.params['arguments'] ?? {}) as Params
  const definition = (await parts.definition(tool)) ?? ''
  return {
    owner: await ownerOf(exchange),
    tool,
    args,
    text: confirmationText(parts.server, tool, confirmMessage(facts), args),
    risk: riskOf(facts, args),
    definition,
    binding: await binding(tool, args, definition),
  }
}

export function declined({ tool }: ObligedCall): Problem {
  return problem('CONFIRMATION_DECLINED', `The user did not agree to this call of ${clip(tool)}`, {
    suggestion: 'Do not call it again unless the user asks for it',
  })
}

export function required({ tool, risk }: ObligedCall, why: string, suggestion: string, more?: Params): Problem {
  return problem('CONFIRMATION_REQUIRED', `${clip(tool)} runs only when the user has agreed: ${why}`, {
    suggestion,
    actor: 'user',
    details: { tool, risk_level: risk, ...more },
  })
}
