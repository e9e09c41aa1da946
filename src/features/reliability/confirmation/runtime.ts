/**
 * Obtains a confirmation: from an earlier approval, from the token of an earlier refusal, or by asking now. Each is valid once, for
 * exactly this call. Loaded with the first call that needs it.
 */
import type { AnswerRecord } from '../../../core/answers.ts'
import { toMilliseconds } from '../../../core/clock.ts'
import { approvalDigest } from '../../../core/digest.ts'
import { denialProblem } from '../../../core/grant/grant.ts'
import type { OpenedHandle } from '../../../core/handle.ts'
import { Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { isNobody } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Op } from '../../../stores/store.ts'
import { type FailedResult, failureProblem, toolsPort } from '../../mcp/tools/messages.ts'
import { problemPort } from '../problem/messages.ts'
import {
  approvalMs,
  approvedRound,
  askForm,
  byPage,
  callOf,
  declined,
  keepApproved,
  type ObligedCall,
  pageKind,
  required,
  spendingOf,
} from './ask.ts'
import { type ApprovedCalls, confirmationExtension, type Risk } from './messages.ts'
import { answer, answeredAs, argumentsOf, byQueue, type OperatorAnswer, type WaitingCall, waiting } from './queue.ts'
import type { ConfirmationParts, ConfirmFacts } from './server.ts'

/** Audit entries for the confirmation of one call. */
interface ObligedAudit {
  /** Entries committed together with the use of an approval; `answered`: who gave it, and when. */
  given(by: string, answered?: OperatorAnswer): readonly Op[]
  /** Writes an entry on its own. */
  agreed(by: string): Promise<void>
  refused(problem: Problem): Promise<void>
}

const silent: ObligedAudit = { given: () => [], agreed: async () => {}, refused: async () => {} }

async function auditOf({ parts, exchange, owner, tool: target, binding, risk, facts }: ObligedCall): Promise<ObligedAudit> {
  const audit = await parts.audit()
  if (audit === undefined) return silent
  const about = { owner, target, correlation: exchange.correlation, more: { ...facts.about, binding, risk } }
  const given = (by: string, answered?: OperatorAnswer) => {
    const more = answered === undefined ? about.more : { ...about.more, by: answered.by, answered_at: answered.at }
    return { ...about, event: 'confirmation_given', outcome: by, more } as const
  }
  return {
    given: (by, answered) => [audit.line(given(by, answered))],
    agreed: by => audit.write(given(by)),
    refused: ({ code }) => audit.write({ ...about, event: 'confirmation_refused', outcome: code }),
  }
}

/** Runs the call if it is confirmed; otherwise asks, or refuses. */
export async function obtainConfirmation(
  parts: ConfirmationParts,
  exchange: Exchange,
  facts: ConfirmFacts,
  next: Next,
): Promise<unknown> {
  const call = await callOf(parts, exchange, facts)
  if (await approvedRound(call)) return next()
  const audit = await auditOf(call)
  try {
    const by = await agreed(call, audit)
    if (by === undefined) return await offerToken(call)
    if (by !== 'form') keepApproved(call)
  } catch (error) {
    if (error instanceof Problem) await audit.refused(error)
    throw error
  }
  // If the handler asks questions itself, the call is repeated with the answers, and the confirmation travels with it.
  return next()
}

/** Where the confirmation came from; undefined if the client can get one by a token. Throws if there is none. */
async function agreed(
  call: ObligedCall,
  audit: ObligedAudit,
): Promise<'grant' | 'page' | 'queue' | 'token' | 'form' | undefined> {
  const { parts, exchange, facts } = call
  const byOperator = (): Promise<'queue'> => byQueue(call, answered => audit.given('queue', answered))
  const before = (): Promise<boolean> => approvedBefore(call, audit.given('grant'))
  if (await before()) return 'grant'
  if (facts.channel === 'url') {
    await byPage(call, before)
    return 'page'
  }
  if (facts.channel === 'queue') return byOperator()
  if (await approvedByToken(call, audit.given('token'))) return 'token'
  if (await askForm(call)) {
    await audit.agreed('form')
    return 'form'
  }
  if (parts.toEveryone || declaredSettings(exchange.peer, confirmationExtension) !== undefined) return undefined
  if (facts.channel === 'either') return byOperator()
  throw required(call, 'this client cannot ask its user', 'Use a client that can ask its user (elicitation)')
}

/** Uses a grant: calls that were approved together, or a number of calls. Each use is counted. */
async function approvedBefore({ parts, owner, tool, binding }: ObligedCall, also: readonly Op[]): Promise<boolean> {
  const grants = await parts.grants()
  const question = { owner, action: 'call', resource: tool, needs: [], obligations: [obligation], binding: () => binding }
  for (;;) {
    const decision = await grants.decide(question)
    if (decision.kind === 'deny') throw denialProblem(decision)
    if (decision.kind === 'ask') return false
    // Another call used the grant in between; decide again with what is left.
    if (await grants.use(decision.uses, also)) return true
  }
}

// Checks the token that came with a repeated call.
async function approvedByToken(call: ObligedCall, also: readonly Op[]): Promise<boolean> {
  const { parts, exchange } = call
  const said = exchange.meta?.[confirmationExtension]
  const token = isRecord(said) ? said['confirmation_token'] : undefined
  if (!isRecord(said) || token === undefined) return false
  const opened = await parts.seal.read(token, purposeOf(call)).catch(() => undefined)
  if (opened === undefined) return false
  const spending = await spendingOf(parts)
  if (said['user_confirmed'] === false) {
    // A "no" uses up the token, so that it cannot become a "yes" later.
    await spending.spend(opened)
    throw declined(call)
  }
  return said['user_confirmed'] === true && spending.spend(opened, 1, also)
}

function purposeOf({ owner, binding }: ObligedCall) {
  return { kind: 'confirmation', principal: owner, bound: binding }
}

/** The refusal that offers a token to clients that support confirmation. */
async function offerToken(call: ObligedCall): Promise<FailedResult> {
  const { parts, exchange } = call
  const expiresAt = parts.clock.now() + approvalMs
  const offer = {
    status: 'confirmation_required',
    confirmation_message: call.text,
    risk_level: call.risk,
    confirmation_token: await parts.seal.seal({ ...purposeOf(call), expiresAt, data: null }),
  }
  const problem = required(
    call,
    call.text,
    'Ask the user. If the user agrees, repeat the call with the confirmation_token of this result',
  )
  return {
    content: [{ type: 'text', text: `${problem.message}. ${problem.suggestion}` }],
    isError: true,
    _meta: { ...parts.port(problemPort).meta(exchange, problem), [confirmationExtension]: offer },
    [failureProblem]: problem,
  }
}

/** What an approval page shows. */
export interface PendingApproval {
  /** The name of the tool. */
  readonly tool: string
  /** The question, as a user reads it. */
  readonly message: string
  /** The worst effect that the call can have. */
  readonly risk: Risk
}

interface Page extends PendingApproval {
  readonly owner: string
  readonly binding: string
}

/** Approvals from outside of the call: by a page, by the operator, or for many calls at once. */
export class OutOfCallApprovals {
  readonly #parts: ConfirmationParts

  constructor(parts: ConfirmationParts) {
    this.#parts = parts
  }

  /** The request behind a page; undefined if it is unknown or expired. */
  async find(id: string): Promise<PendingApproval | undefined> {
    const found = await this.#open(id)
    if (found === undefined) return undefined
    const { tool, message, risk } = found.page
    return { tool, message, risk }
  }

  /**
   * Approves a request by page or a waiting call. False if it is unknown, expired or already answered. `by` and `reason`: who and why,
   * for the audit log.
   */
  async approve(id: string, by?: string, reason?: string): Promise<boolean> {
    const found = await this.#open(id)
    if (found === undefined) return this.#answer(id, true, by, reason)
    if (!(await (await spendingOf(this.#parts)).spend(found.handle))) return false
    const { owner, tool, binding: bound } = found.page
    await (await this.#parts.grants()).issue(owner, { ...fulfils(tool), bound: [bound], source: 'page' }, approvalMs)
    return true
  }

  /** Calls that wait for approval, of all processes on this store. */
  async waiting(): Promise<readonly WaitingCall[]> {
    return waiting(await this.#parts.store())
  }

  /** The arguments of a waiting call, however long; undefined if nothing waits under this id. */
  async argumentsOf(id: string): Promise<Params | undefined> {
    return argumentsOf(await this.#parts.store(), id)
  }

  /** Who answered a waiting call within the last hour, and how; undefined if nobody did. */
  async answered(id: string): Promise<AnswerRecord | undefined> {
    return answeredAs(await this.#parts.store(), id)
  }

  /** Refuses a waiting call; false if there is none. */
  refuse(id: string, by?: string, reason?: string): Promise<boolean> {
    return this.#answer(id, false, by, reason)
  }

  /** Records that the user has approved these calls of a tool. */
  async allow(owner: string, tool: string, approved: ApprovedCalls): Promise<void> {
    if (isNobody(owner))
      throw problem('UNSUPPORTED', 'Calls can be approved in advance only for a signed-in caller or a session', {
        suggestion: 'The server must run with authorization or with sessions',
        actor: 'operator',
      })
    const definition = await this.#parts.port(toolsPort).catalog.digestOf(tool)
    if (definition === undefined) throw new TypeError(`There is no tool "${tool}", so its calls cannot be approved`)
    const terms =
      'calls' in approved
        ? { bound: await Promise.all(approved.calls.map(args => approvalDigest(tool, args, definition))) }
        : { uses: approved.uses }
    const ttlMs = toMilliseconds(approved.ttl ?? approvalMs, 'ttl')
    await (await this.#parts.grants()).issue(owner, { ...fulfils(tool), ...terms, source: 'batch' }, ttlMs)
  }

  async #open(id: string): Promise<{ readonly handle: OpenedHandle; readonly page: Page } | undefined> {
    const handle = await this.#parts.seal.read(id, { kind: pageKind }).catch(() => undefined)
    if (handle === undefined || !isRecord(handle.data) || (await (await spendingOf(this.#parts)).isSpent(handle)))
      return undefined
    return { handle, page: handle.data as unknown as Page }
  }

  async #answer(id: string, yes: boolean, by: string | undefined, reason: string | undefined): Promise<boolean> {
    const { store, audit, clock } = this.#parts
    const [opened, log] = await Promise.all([store(), audit()])
    return answer(opened, id, yes, { clock, by, reason, audit: log })
  }
}

/** The name of the obligation in grants. */
const obligation = 'confirm'

function fulfils(tool: string) {
  // A tool name contains no `*`, so it matches only itself.
  return { effect: 'fulfil', action: obligation, resource: tool, standing: true } as const
}
