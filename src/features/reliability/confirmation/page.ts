/** Approval by a page of the server's own: what the client says counts for nothing, only what the page tells the server. */
import type { Exchange } from '../../../engine/exchange.ts'
import { isNobody } from '../../../engine/owner.ts'
import { takesElicitation } from '../../mcp/elicitation/messages.ts'
import { ask, isElicitAnswer } from './ask.ts'
import { approvalMs, declined, type ObligedCall, required } from './call.ts'
import type { ConfirmFacts } from './facts.ts'
import type { ConfirmationParts } from './server.ts'

/** What names a request for approval: sealed, so that a page can be given it and nobody can make one up. */
export const pageKind = 'confirmation-page'

/** Returns once it is approved; throws where it is not, or not yet. */
export async function byPage(
  parts: ConfirmationParts,
  exchange: Exchange,
  call: ObligedCall,
  facts: ConfirmFacts,
  approved: () => Promise<boolean>,
): Promise<void> {
  if (isNobody(call.owner))
    throw required(call, 'an approval needs somebody whose it is', 'Serve it with authorization, or with sessions')
  const url = await exchange.once('confirmation page', () => addressOf(parts, call, facts))
  if (takesElicitation(exchange.peer, 'url')) {
    const elicitationId = await exchange.once('confirmation id', () => crypto.randomUUID())
    const params = { mode: 'url' as const, message: call.text, url, elicitationId }
    const answer = await ask(parts, exchange, call, params, { elicitation: { url: {} } }, isElicitAnswer)
    if (answer !== undefined && answer.action !== 'accept') throw declined(call)
    // Consent to see the page is not what the page asks for.
    if (answer !== undefined && (await approved())) return
  }
  throw required(call, 'it was not approved yet', `Approve it at ${url}, then call it again`, { approval_url: url })
}

async function addressOf({ seal, clock }: ConfirmationParts, call: ObligedCall, facts: ConfirmFacts): Promise<string> {
  const { owner, tool, args, text, risk, binding } = call
  const data = { owner, tool, message: text, risk, binding }
  const id = await seal.seal({ kind: pageKind, expiresAt: clock.now() + approvalMs, data })
  const url = facts.url?.({ id, tool, arguments: args, message: text, risk }) ?? ''
  if (isSafeAddress(url)) return url
  throw new TypeError(`The page that confirms ${tool} must be https, or http on this machine`)
}

function isSafeAddress(url: string): boolean {
  const parsed = URL.parse(url)
  if (parsed?.protocol === 'https:') return true
  return parsed?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(parsed.hostname)
}
