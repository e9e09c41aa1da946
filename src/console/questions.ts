/** How a question of a host stands in the queue, and how an answer of the queue answers it. */
import type { ElicitResult } from '../features/mcp/elicitation/messages.ts'
import type { ServerQuestion } from '../host/loop/answers/answers.ts'
import type { SampleReview, SampleReviewed } from '../host/loop/answers/sampling.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { ApprovalQuestion, OnApproval } from '../policy/approvals/question.ts'
import type { ApprovalRequest, GivenAnswer } from './approvals.ts'
import type { ApprovalForm, ApprovalKind, ApprovalPage, ApprovalSampling } from './contract/approvals.ts'

/** What a host takes as the answer to a question of its policy. */
type PolicyAnswer = Exclude<Awaited<ReturnType<OnApproval>>, boolean>

const kinds: Readonly<Partial<Record<ApprovalQuestion['asked']['kind'], ApprovalKind>>> = {
  tool: 'call',
  definition: 'tool',
  set: 'set',
}

/** A question of the policy. */
export function approvalRequestOf(question: ApprovalQuestion): ApprovalRequest {
  const { text, asked, rule, scopes, flaw, wider, lastsMs } = question
  const { server, tool, conversation, inferenceId } = asked
  const definition = asked.kind === 'definition' && isRecord(asked.payload) ? asked.payload : undefined
  return {
    ...{ kind: kinds[asked.kind] ?? 'access', server, text, rule },
    ...(tool !== undefined && { tool }),
    ...payloadOf(question),
    ...(Array.isArray(definition?.['changes']) && { changes: definition['changes'].map(String) }),
    ...(scopes.length > 0 && { scopes }),
    ...(flaw !== undefined && { flaw }),
    ...(wider.length > 0 && { wider }),
    ...(conversation !== undefined && { conversation }),
    ...(inferenceId !== undefined && { inferenceId }),
    ...(isUntilChanged(question) && { untilChanged: true as const }),
    lasts: lastsMs === 0 || isUntilChanged(question) ? ['once'] : ['once', spanOf(lastsMs)],
  }
}

/** Exactly what a yes lets happen. */
function payloadOf({ asked }: ApprovalQuestion): { readonly payload?: unknown; readonly after?: unknown } {
  const { kind, payload, featureSet, scope, tags, origin, resource, prompt } = asked
  if (kind === 'tool') return { payload: payload ?? {} }
  if (kind === 'definition') return isRecord(payload) ? { payload: payload['definition'], after: payload['definition'] } : {}
  const about = { kind, featureSet, resource, prompt, scope, tags, origin, payload }
  return { payload: Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined)) }
}

/** A yes to a definition or a feature set counts until that changes; of others it can be chosen. */
function isUntilChanged({ about }: ApprovalQuestion): boolean {
  return about === 'set' || about === 'definition'
}

/** Whole hours, minutes or seconds. */
function spanOf(ms: number): string {
  const [unit, length] = units.find(([, each]) => ms % each === 0) ?? ['ms', 1]
  return `${ms / length}${unit}`
}

const units: readonly (readonly [unit: string, length: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
]

/** The answer to a question of the policy. */
export function policyAnswerOf(question: ApprovalQuestion, given: GivenAnswer): PolicyAnswer {
  const { yes, reason, covers, by } = given
  const isOnce = (given.for ?? 'once') === 'once' && covers === undefined && !isUntilChanged(question)
  return {
    ...{ yes, by },
    ...(yes && isOnce && { for: 0 }),
    ...(reason !== undefined && { reason }),
    ...(covers !== undefined && { covers }),
  }
}

/** A question of a server. */
export function elicitRequestOf(question: ServerQuestion): ApprovalRequest {
  const { server, message, mode } = question
  const about = { server, rule: 'onElicit', risk: 'unknown' } as const
  if (mode === 'form') {
    const { schema, secrets } = question
    const payload: ApprovalForm = { message, schema, ...(secrets !== undefined && { secrets }) }
    return { ...about, kind: 'form', text: `${server} asks for input`, payload }
  }
  const { url, host, domain = host } = question
  const payload: ApprovalPage = { message, url, domain }
  return { ...about, kind: 'page', text: `${server} wants you to open a page of ${domain}`, payload }
}

/** The answer to a question of a server. */
export function elicitResultOf({ mode }: ServerQuestion, { yes, content = {} }: GivenAnswer): ElicitResult {
  if (!yes) return { action: 'decline' }
  return mode === 'form' ? { action: 'accept', content: content as NonNullable<ElicitResult['content']> } : { action: 'accept' }
}

/** A sampling request, or its answer. */
export function sampleRequestOf(review: SampleReview): ApprovalRequest {
  const { server, model, params, stage } = review
  const payload: ApprovalSampling = { stage, model, params, ...(stage === 'answer' && { result: review.result }) }
  const text = stage === 'prompt' ? `${server} asks ${model} for an answer` : `${server} gets this answer of ${model}`
  return { kind: 'sampling', server, text, rule: 'onSampleReview', payload }
}

/** The answer to a sampling request. */
export function sampleReviewedOf({ yes }: GivenAnswer): SampleReviewed {
  return { yes }
}
