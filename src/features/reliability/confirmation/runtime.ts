/**
 * Obtains a confirmation: from an earlier approval, from the token of an earlier refusal, or by asking now. Each is valid once, for
 * exactly this call. Loaded with the first call that needs it.
 */
import { toMilliseconds } from '../../../core/clock.ts'
import { binding } from '../../../core/digest.ts'
import { denialProblem } from '../../../core/grant/grant.ts'
import type { Opened } from '../../../core/handle.ts'
import { Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import { isNobody } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Op } from '../../../stores/store.ts'
import { because, type FailedResult } from '../../mcp/tools/messages.ts'
import {
  approvalMs,
  approvedRound,
  askForm,
  byPage,
  callOf,
  declined,
  keepApproved,
  type ObligedCall,
  obligation,
  pageKind,
  required,
} from './ask.ts'
import { type ApprovedCalls, confirmationExtension, type Risk, type WireRequired } from './messages.ts'
import { type Answered, answer, byQueue, type WaitingCall, waiting } from './queue.ts'
import type { ConfirmationParts, ConfirmFacts } from './server.ts'

/** Audit entries for the confirmation of one call. */
interface ObligedAudit {
  /** Entries committed together with the use of an approval; `answered`: who gave it, and when. */
  given(by: string, answered?: Answered): readonly Op[]
  /** Writes an entry on its own. */
  agreed(by: string): Promise<void>
  refused(problem: Problem): Promise<void>
}

const silent: ObligedAudit = { given: () => [], agreed: async () => {}, refused: async () => {} }

async function auditOf(
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

/** Runs the call if it is confirmed; otherwise asks, or refuses. */
export async function obtainConfirmation(
  parts: ConfirmationParts,
  exchange: Exchange,
  facts: ConfirmFacts,
  next: Next,
): Promise<unknown> {
  const call = await callOf(parts, exchange, facts)
  if (await approvedRound(parts, exchange, call)) return next()
  const audit = await auditOf(parts, exchange, call, facts)
  try {
    const by = await agreed(parts, exchange, call, facts, audit)
    if (by === undefined) return await offerToken(parts, exchange, call)
    if (by !== 'form') keepApproved(exchange, call)
  } catch (error) {
    if (error instanceof Problem) await audit.refused(error)
    throw error
  }
  // If the handler asks questions itself, the call is repeated with the answers, and the confirmation travels with it.
  return next()
}

/** Where the confirmation came from; undefined if the client can get one by a token. Throws if there is none. */
async function agreed(
  parts: ConfirmationParts,
  exchange: Exchange,
  call: ObligedCall,
  facts: ConfirmFacts,
  audit: ObligedAudit,
): Promise<'grant' | 'page' | 'queue' | 'token' | 'form' | undefined> {
  const byWhom = (answered: Answered): readonly Op[] => audit.given('queue', answered)
  const before = (): Promise<boolean> => approvedBefore(parts, call, audit.given('grant'))
  if (await before()) return 'grant'
  if (facts.channel === 'url') {
    await byPage(parts, exchange, call, facts, before)
    return 'page'
  }
  if (facts.channel === 'queue') return byQueue(parts, exchange, call, facts, byWhom)
  if (await approvedByToken(parts, exchange, call, audit.given('token'))) return 'token'
  if (await askForm(parts, exchange, call)) {
    await audit.agreed('form')
    return 'form'
  }
  if (parts.toEveryone === true || declared(exchange.peer, confirmationExtension) !== undefined) return undefined
  if (facts.channel === 'either') return byQueue(parts, exchange, call, facts, byWhom)
  throw required(call, 'this client has no way to ask', 'Use a client that can ask its user (elicitation)')
}

/** Uses a grant: calls that were approved together, or a number of calls. Each use is counted. */
async function approvedBefore(
  parts: ConfirmationParts,
  { owner, tool, binding }: ObligedCall,
  also: readonly Op[],
): Promise<boolean> {
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
async function approvedByToken(
  parts: ConfirmationParts,
  exchange: Exchange,
  call: ObligedCall,
  also: readonly Op[],
): Promise<boolean> {
  const said = exchange.meta?.[confirmationExtension]
  const token = isRecord(said) ? said['confirmation_token'] : undefined
  if (!isRecord(said) || token === undefined) return false
  const opened = await parts.seal.read(token, purposeOf(call)).catch(() => undefined)
  if (opened === undefined) return false
  const spending = await parts.spending()
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

/** What an approval page shows. */
export interface PendingApproval {
  readonly tool: string
  readonly message: string
  readonly risk: Risk
}

/** Approvals from outside of the call: by a page, by the operator, or for many calls at once. */
export interface Approvals {
  /** The request behind a page; undefined if it is unknown or expired. */
  find(id: string): Promise<PendingApproval | undefined>
  /**
   * Approves a request by page or a waiting call. False if it is unknown, expired or already answered. `by`: who, for the audit log.
   */
  approve(id: string, by?: string): Promise<boolean>
  /** Calls that wait for approval, of all processes on this store. */
  waiting(): Promise<readonly WaitingCall[]>
  /** Refuses a waiting call; false if there is none. */
  refuse(id: string, by?: string): Promise<boolean>
  /** Records that the user has approved these calls of a tool. */
  allow(owner: string, tool: string, approved: ApprovedCalls): Promise<void>
}

interface Page extends PendingApproval {
  readonly owner: string
  readonly binding: string
}

/** Creates the API for approvals. */
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
  // A tool name contains no `*`, so it matches only itself.
  return { effect: 'fulfil', action: obligation, resource: tool, standing: true } as const
}
