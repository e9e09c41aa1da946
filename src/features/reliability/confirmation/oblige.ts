/**
 * Getting the yes: from an approval that was given before, from the token of an earlier refusal, or by asking now. Whatever it
 * comes from, it is good for this very call alone, and once.
 */
import { refusal } from '../../../core/grant/decide.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import type { Next } from '../../../engine/stages.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { because, type FailedResult } from '../../mcp/tools/messages.ts'
import { askForm } from './ask.ts'
import { approvalMs, callOf, declined, type ObligedCall, obligation, required } from './call.ts'
import type { ConfirmFacts } from './facts.ts'
import { confirmationExtension, type WireRequired } from './messages.ts'
import { byPage } from './page.ts'
import { approvedRound, keepApproved } from './rounds.ts'
import type { ConfirmationParts } from './server.ts'

export async function obliged(parts: ConfirmationParts, exchange: Exchange, facts: ConfirmFacts, next: Next): Promise<unknown> {
  const call = await callOf(parts, exchange, facts)
  if (await approvedRound(parts, exchange, call)) return next()
  if (await approvedBefore(parts, call)) return proceed(exchange, call, next)
  if (facts.channel === 'url') {
    await byPage(parts, exchange, call, facts, () => approvedBefore(parts, call))
    return proceed(exchange, call, next)
  }
  if (await approvedByToken(parts, exchange, call)) return proceed(exchange, call, next)
  if (await askForm(parts, exchange, call)) return next()
  if (parts.toEveryone === true || declared(exchange.peer, confirmationExtension) !== undefined)
    return offerToken(parts, exchange, call)
  throw required(call, 'this client has no way to ask', 'Use a client that can ask its user (elicitation)')
}

/** A handler that asks something itself is entered again for its answers: the yes that it had goes with them. */
function proceed(exchange: Exchange, call: ObligedCall, next: Next): unknown {
  keepApproved(exchange, call)
  return next()
}

/** By a grant: a list of calls that were approved together, or a number of them. Each use is counted. */
async function approvedBefore(parts: ConfirmationParts, { owner, tool, binding }: ObligedCall): Promise<boolean> {
  const grants = await parts.grants()
  const question = { owner, action: 'call', resource: tool, needs: [], obligations: [obligation], binding: () => binding }
  for (;;) {
    const decision = await grants.decide(question)
    if (decision.kind === 'deny') throw refusal(decision)
    if (decision.kind === 'ask') return false
    // Otherwise somebody else took what was left of it: the next look finds less, in the end nothing.
    if (await grants.use(decision.uses)) return true
  }
}

async function approvedByToken(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall): Promise<boolean> {
  const said = exchange.meta?.[confirmationExtension]
  const token = isRecord(said) ? said['confirmation_token'] : undefined
  if (!isRecord(said) || token === undefined) return false
  const opened = await parts.seal.read(token, purposeOf(call)).catch(() => undefined)
  if (opened === undefined) return false
  if (said['user_confirmed'] === false) throw declined(call)
  return said['user_confirmed'] === true && (await parts.spending()).spend(opened)
}

function purposeOf({ owner, binding }: ObligedCall) {
  return { kind: 'confirmation', principal: owner, bound: binding }
}

/** The refusal that a peer which knows confirmations can do something about. */
async function offerToken(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall): Promise<FailedResult> {
  const expiresAt = parts.clock.now() + approvalMs
  const offer: WireRequired = {
    status: 'confirmation_required',
    confirmation_message: call.text,
    risk_level: call.risk,
    confirmation_token: await parts.seal.seal({ ...purposeOf(call), expiresAt, data: null }),
  }
  const problem = required(call, call.text, 'Ask the user, and call again with the token that came with this')
  return {
    content: [{ type: 'text', text: `${problem.message}. ${problem.suggestion}` }],
    isError: true,
    _meta: { ...parts.problemMeta(exchange, problem), [confirmationExtension]: offer },
    [because]: problem,
  }
}
