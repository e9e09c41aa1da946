/**
 * Asking the user about one call, by a form or by a page of the server. Also binds the answer to the exact call, and counts its use
 * across retries.
 */
import { approvalDigest } from '../../../core/digest.ts'
import { UsedHandles } from '../../../core/handle.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { addRetryState, type Exchange, retryState } from '../../../engine/exchange.ts'
import { isNobody, ownerOf } from '../../../engine/owner.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type ElicitResult, elicit, isYesNo, takesElicitation, yesNoForm } from '../../mcp/elicitation/messages.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'
import { confirmationExtension, confirmationText, isRisk, type Risk, risks } from './messages.ts'
import { type ConfirmationParts, type ConfirmFacts, confirmMessage } from './server.ts'

/** How long an answer, a token or an approval by page is valid. */
export const approvalMs = 300_000

/** A call that needs confirmation, with everything the answer is bound to. */
export interface ObligedCall {
  readonly parts: ConfirmationParts
  readonly exchange: Exchange
  readonly facts: ConfirmFacts
  /** Who calls. */
  readonly owner: string
  readonly tool: string
  readonly args: Params
  /** The question that the user reads. */
  readonly text: string
  readonly risk: Risk
  /** The digest of the tool's current definition. */
  readonly definition: string
  /** The digest of tool, arguments and definition. */
  readonly binding: string
}

/** Reads the call from an exchange, and computes what the answer is bound to. */
export async function callOf(parts: ConfirmationParts, exchange: Exchange, facts: ConfirmFacts): Promise<ObligedCall> {
  const tool = exchange.params['name'] as string
  const args = (exchange.params['arguments'] ?? {}) as Params
  const definition = (await parts.port(toolsPort).catalog.digestOf(tool)) ?? ''
  return {
    parts,
    exchange,
    facts,
    owner: await ownerOf(exchange),
    tool,
    args,
    text: confirmationText(parts.name, tool, confirmMessage(facts), args),
    risk: riskOf(facts, args),
    definition,
    binding: await approvalDigest(tool, args, definition),
  }
}

/** The risk shown for one call; never above what the tool declares. */
function riskOf({ risk: worst = 'destructive', riskOf: lower }: ConfirmFacts, args: Params): Risk {
  try {
    const said = lower?.(args)
    return isRisk(said) && risks.indexOf(said) < risks.indexOf(worst) ? said : worst
  } catch {
    return worst
  }
}

/** What was used up, so that it counts once. */
export async function spendingOf({ store, clock }: ConfirmationParts): Promise<UsedHandles> {
  return new UsedHandles({ store: await store(), clock })
}

/** The problem for a call that the user declined. */
export function declined({ tool }: ObligedCall): Problem {
  return problem('CONFIRMATION_DECLINED', `The user declined this call of ${clip(tool)}`, {
    suggestion: 'Do not repeat the call unless the user asks for it',
  })
}

/** The problem for a call that still needs confirmation. */
export function required({ tool, risk }: ObligedCall, why: string, suggestion: string, more?: Params): Problem {
  return problem('CONFIRMATION_REQUIRED', `${clip(tool)} requires confirmation by the user: ${why}`, {
    suggestion,
    actor: 'user',
    details: { tool, risk_level: risk, ...more },
  })
}

/** The kind of the sealed id of an approval request; it cannot be forged. */
export const pageKind = 'confirmation-page'

/** Asks by a page of the server. Returns if approved; throws if not, or not yet. */
export async function byPage(call: ObligedCall, approved: () => Promise<boolean>): Promise<void> {
  const { exchange } = call
  if (isNobody(call.owner))
    throw required(
      call,
      'an approval needs a signed-in caller or a session',
      'The server must run with authorization or with sessions',
    )
  const url = await exchange.once('confirmation page', () => addressOf(call))
  if (takesElicitation(exchange.peer, 'url')) {
    const elicitationId = await exchange.once('confirmation id', () => crypto.randomUUID())
    const params = { mode: 'url' as const, message: call.text, url, elicitationId }
    const answer = await ask(call, params, { elicitation: { url: {} } }, isElicitAnswer)
    if (answer !== undefined && answer.action !== 'accept') throw declined(call)
    // Accepting the URL only means that the user opened the page; the approval itself is checked separately.
    if (answer !== undefined && (await approved())) return
  }
  throw required(call, 'the call has not been approved yet', `Approve the call at ${url}, then repeat it`, { approval_url: url })
}

async function addressOf({ parts, facts, owner, tool, args, text, risk, binding }: ObligedCall): Promise<string> {
  const { seal, clock } = parts
  const data = { owner, tool, message: text, risk, binding }
  const id = await seal.seal({ kind: pageKind, expiresAt: clock.now() + approvalMs, data })
  const url = facts.url?.({ id, tool, arguments: args, message: text, risk }) ?? ''
  if (isSafeAddress(url)) return url
  throw new TypeError(`confirm.url of tool "${tool}" must return an https URL, or an http URL of this machine`)
}

function isSafeAddress(url: string): boolean {
  const parsed = URL.parse(url)
  if (parsed?.protocol === 'https:') return true
  return parsed?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(parsed.hostname)
}

// Asking within the call by a form with one checkbox, as a request or inside the result, depending on the revision.

/** True: confirmed. False: the client cannot be asked. Throws if the user declines, or the answer is unreadable. */
export async function askForm(call: ObligedCall): Promise<boolean> {
  if (!takesElicitation(call.exchange.peer, 'form')) return false
  const params = { mode: 'form' as const, message: call.text, requestedSchema: yesNoForm }
  const answer = await ask(call, params, { elicitation: {} }, isYesNo)
  if (answer === undefined) return false
  if (answer.action !== 'accept' || answer.content?.['confirm'] !== true) throw declined(call)
  return true
}

/** Asks about this call; the answer counts once. Undefined if the client cannot be asked. */
async function ask(
  call: ObligedCall,
  params: { readonly mode: 'form' | 'url'; readonly message: string } & Params,
  requires: Params,
  accepts: (answer: unknown) => boolean,
): Promise<ElicitResult | undefined> {
  const { parts, exchange } = call
  const round = roundOf(call)
  keep(exchange, round)
  let answer: ElicitResult
  try {
    const options = { kind: 'confirm', key: `confirm-${round.id}`, requires, allowed: true, accepts, timeoutMs: approvalMs }
    answer = await exchange.ask(elicit, params, options)
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    // There is no stream on which to ask the client.
    if (error.kind === 'capability-missing') return undefined
    if (!unanswered.has(error.kind)) throw error
    throw required(call, 'the client returned no valid answer', 'Ask the user, then repeat the call')
  }
  if ((await parts.port(toolsPort).catalog.digestOf(call.tool)) !== call.definition)
    throw required(
      call,
      'the tool definition has changed since the user was asked',
      'Repeat the call; the user is then asked again',
    )
  // A pushed question is answered once; an answer that travels in `requestState` can be replayed and must be counted.
  if (exchange.peer.revision.asks === 'result') await useRound(call, round)
  return answer
}

const unanswered = new Set(['remote', 'timeout', 'invalid-answer', 'invalid-result'])

function isElicitAnswer(value: unknown): value is ElicitResult {
  return isRecord(value) && (value['action'] === 'accept' || value['action'] === 'decline' || value['action'] === 'cancel')
}

// On wires where questions travel in results, the call is repeated with the answer, and the state of its confirmation travels sealed.
// Each such state is good for one attempt, so it cannot be replayed.

/** Serialised as JSON. */
interface Round {
  /** Names the question; unguessable. */
  readonly id: string
  /** How many attempts were made with it. */
  readonly count: number
  /** The answer is valid until then. */
  readonly expires: number
  /** The tool's definition when the question was asked. */
  readonly definition: string
  readonly approved: boolean
}

/** The round that this call continues. If the tool has changed or the time is over, a new one starts and the user is asked again. */
function roundOf({ parts, exchange, definition }: ObligedCall): Round {
  const now = parts.clock.now()
  const text = exchange.get(retryState)?.[confirmationExtension]
  const stored: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isRecord(stored) && stored['definition'] === definition) {
    const round = stored as unknown as Round
    if (round.approved || round.expires > now) return round
  }
  return { ...fresh(definition), expires: now + approvalMs }
}

function keep(exchange: Exchange, round: Round): void {
  addRetryState(exchange, confirmationExtension, JSON.stringify(round))
}

/** Remembers that this call is confirmed, so that further rounds of it do not ask again. */
export function keepApproved({ exchange, definition }: ObligedCall): void {
  keep(exchange, { ...fresh(definition), approved: true })
}

/** Whether this call continues one that was confirmed before. */
export async function approvedRound(call: ObligedCall): Promise<boolean> {
  const { clock, askMs } = call.parts
  const round = roundOf(call)
  if (!round.approved) return false
  // The state may have to wait that long for answers to other questions.
  await useRound(call, { ...round, expires: clock.now() + askMs })
  return true
}

/** Uses up one attempt, and keeps the state for the next. */
async function useRound(call: ObligedCall, round: Round): Promise<void> {
  const handle = { id: `confirmation/${round.id}/${round.count}`, expiresAt: round.expires, data: undefined }
  if (!(await (await spendingOf(call.parts)).spend(handle)))
    throw required(call, 'the answer has already been used', 'Repeat the call without requestState; the user is then asked again')
  keep(call.exchange, { ...round, approved: true, count: round.count + 1 })
}

function fresh(definition: string): Round {
  return { id: crypto.randomUUID(), count: 0, expires: 0, definition, approved: false }
}
