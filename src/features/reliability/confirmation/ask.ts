/** One call that needs a yes: what is asked, and what the yes is bound to. */
import { binding } from '../../../core/digest.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { carried, carry, type Exchange } from '../../../engine/exchange.ts'
import { isNobody, ownerOf } from '../../../engine/owner.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type ElicitResult, elicit, isYesNo, takesElicitation, yesNoForm } from '../../mcp/elicitation/messages.ts'
import { confirmationExtension, confirmationText, type Risk } from './messages.ts'
import { type ConfirmationParts, type ConfirmFacts, confirmMessage, riskOf } from './server.ts'

/** The longest that an answer, a token or an approval by page is good for. */
export const approvalMs = 300_000

/** The obligation that a confirmation meets. */
export const obligation = 'confirm'

/** A call that needs a yes. */
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

/** Reads the call that needs a yes, with all that the yes is bound to. */
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

/** The refusal of a call that the user did not agree to. */
export function declined({ tool }: ObligedCall): Problem {
  return problem('CONFIRMATION_DECLINED', `The user did not agree to this call of ${clip(tool)}`, {
    suggestion: 'Do not call it again unless the user asks for it',
  })
}

/** The refusal of a call that still needs a yes. */
export function required({ tool, risk }: ObligedCall, why: string, suggestion: string, more?: Params): Problem {
  return problem('CONFIRMATION_REQUIRED', `${clip(tool)} runs only when the user has agreed: ${why}`, {
    suggestion,
    actor: 'user',
    details: { tool, risk_level: risk, ...more },
  })
}

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

// Asking the user within the call: a form with one box, pushed or inside the result, whichever the wire has.

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
async function ask(
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

function isElicitAnswer(value: unknown): value is ElicitResult {
  return isRecord(value) && (value['action'] === 'accept' || value['action'] === 'decline' || value['action'] === 'cancel')
}

// Where questions travel inside results, a call is made again with the answers, and what is known of its confirmation goes
// along in the sealed state. Each such state is good for one more try: whoever sends it twice is not let in twice.

/** JSON. */
interface Round {
  /** Names the question. Nobody can know it who was not asked. */
  readonly id: string
  /** How often the call was made with it. */
  readonly count: number
  /** The answer counts until then. */
  readonly expires: number
  /** The tool as it was when it was asked about. */
  readonly definition: string
  readonly approved: boolean
}

/** The round that this call continues, unless the tool is another one now or the time is over: then it is asked anew. */
function roundOf(exchange: Exchange, call: ObligedCall, now: number): Round {
  const text = exchange.get(carried)?.[confirmationExtension]
  const kept: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isRecord(kept) && kept['definition'] === call.definition) {
    const round = kept as unknown as Round
    if (round.approved || round.expires > now) return round
  }
  return { ...fresh(call), expires: now + approvalMs }
}

function keep(exchange: Exchange, round: Round): void {
  carry(exchange, confirmationExtension, JSON.stringify(round))
}

/** The user has agreed to this call, by whatever way: it is not asked about again for as long as it goes on. */
export function keepApproved(exchange: Exchange, call: ObligedCall): void {
  keep(exchange, { ...fresh(call), approved: true })
}

/** Whether the call goes on that was agreed to before. */
export async function approvedRound(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall): Promise<boolean> {
  const now = parts.clock.now()
  const round = roundOf(exchange, call, now)
  if (!round.approved) return false
  // Its state may wait that long for the answers to other questions.
  await useRound(parts, exchange, call, { ...round, expires: now + parts.askMs })
  return true
}

/** Counts one try, and keeps the next one. */
async function useRound(parts: ConfirmationParts, exchange: Exchange, call: ObligedCall, round: Round): Promise<void> {
  const handle = { id: `confirmation/${round.id}/${round.count}`, expiresAt: round.expires, data: undefined }
  if (!(await (await parts.spending()).spend(handle)))
    throw required(call, 'that answer was used before', 'Call it again without requestState: the user is asked anew')
  keep(exchange, { ...round, approved: true, count: round.count + 1 })
}

function fresh({ definition }: ObligedCall): Round {
  return { id: crypto.randomUUID(), count: 0, expires: 0, definition, approved: false }
}
