/** Asking the user within the call: a form with one box, pushed or inside the result, whichever the wire has. */
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type ElicitResult, elicit, isYesNo, takesElicitation, yesNoForm } from '../../mcp/elicitation/messages.ts'
import { approvalMs, declined, type ObligedCall, required } from './call.ts'
import { keep, roundOf, useRound } from './rounds.ts'
import type { ConfirmationParts } from './server.ts'

/** True: agreed. False: there is no way to ask. Throws where the user did not agree, or the answer is none. */
export async function askForm(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall): Promise<boolean> {
  if (!takesElicitation(exchange.peer, 'form')) return false
  const params = { mode: 'form' as const, message: call.text, requestedSchema: yesNoForm }
  const answer = await ask(parts, exchange, call, params, { elicitation: {} }, isYesNo)
  if (answer === undefined) return false
  if (answer.action !== 'accept' || answer.content?.['confirm'] !== true) throw declined(call)
  return true
}

/** The answer to a question about this call, which counts once; undefined where there is no way to ask. */
export async function ask(
  parts: ConfirmationParts,
  exchange: Exchange,
  call: ObligedCall,
  params: { readonly mode: 'form' | 'url'; readonly message: string } & Params,
  requires: Params,
  accepts: (answer: unknown) => boolean,
): Promise<ElicitResult | undefined> {
  const round = roundOf(exchange, call, parts.clock.now())
  keep(exchange, round)
  let answer: ElicitResult
  try {
    const options = { kind: 'confirm', key: `confirm-${round.id}`, requires, allowed: true, accepts, timeoutMs: approvalMs }
    answer = await exchange.ask(elicit, params, options)
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    // There is no stream on which the client could be asked.
    if (error.kind === 'capability-missing') return undefined
    if (!unanswered.has(error.kind)) throw error
    throw required(call, 'no answer came that can be read', 'Ask the user, and call it again')
  }
  if ((await parts.definition(call.tool)) !== call.definition)
    throw required(call, 'the tool has changed since it was asked about', 'Call it again: the user is asked anew')
  // A pushed question is answered once by nature; what travels in a state can be sent again.
  if (exchange.peer.revision.asks === 'result') await useRound(parts, exchange, call, round)
  return answer
}

const unanswered = new Set(['remote', 'timeout', 'invalid-answer', 'invalid-result'])

export function isElicitAnswer(value: unknown): value is ElicitResult {
  return isRecord(value) && (value['action'] === 'accept' || value['action'] === 'decline' || value['action'] === 'cancel')
}
