/**
 * Sampling that a server asks for: policy says whether it is answered at once, looked at by the user (who may change the question
 * and the answer), or refused; the server's budget pays.
 */
import { type Why, why } from '../../../core/why.ts'
import type { OnSample } from '../../../features/mcp/sampling/client.ts'
import type { SamplingParams, SamplingResult } from '../../../features/mcp/sampling/messages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { generate } from '../generate.ts'
import type { LoopParts } from '../loop-parts.ts'
import type { LoopAsked, LoopVerdict } from '../ports.ts'
import { chooseModel } from './choose-model.ts'
import { noted, refuse } from './refuse.ts'
import { requestOf, resultOf } from './sampling-messages.ts'

/** What the user is shown, before a model is asked and before the server gets its answer. */
export type SampleReview =
  | { readonly stage: 'prompt'; readonly server: string; readonly model: string; readonly params: SamplingParams }
  | {
      readonly stage: 'answer'
      readonly server: string
      readonly model: string
      readonly params: SamplingParams
      readonly result: SamplingResult
    }

/** `yes: false` refuses; what is given back replaces what was shown. */
export interface SampleReviewed {
  readonly yes: boolean
  readonly why?: Why
  readonly params?: SamplingParams
  readonly result?: SamplingResult
}

export type OnSampleReview = (review: SampleReview, context: { readonly signal: AbortSignal }) => Awaitable<SampleReviewed>

/** What its wire calls a refusal. */
const kind = 'sampling-refused'

/** Sampling belongs to no feature set; its budget goes by this name. */
export const samplingSet = 'sampling'

export function samplingFor(parts: LoopParts, server: string, review: OnSampleReview | undefined): OnSample {
  return async (params, { signal }) => {
    const told = noted(parts, { server, kind: 'sample', began: parts.clock.now() })
    const asked: LoopAsked = { kind: 'sample', server, payload: params }
    const verdict = await parts.policy.decide(asked)
    if (verdict.do === 'deny' || verdict.do === 'hold') throw refuse(told, verdict.why, kind)
    let { rule } = verdict
    const show = async (shown: SampleReview): Promise<SampleReviewed> => {
      if (verdict.do !== 'ask') return { yes: true }
      const said = review === undefined ? await plainYes(parts, asked, verdict, shown) : await review(shown, { signal })
      if (review !== undefined) rule = `the user, when asked by ${verdict.rule}`
      if (said.yes) return said
      throw refuse(told, said.why ?? declined(server, verdict.rule), kind)
    }
    const leave = parts.policy.enter?.(asked)
    try {
      const result = await sample(parts, server, params, signal, show)
      told('success', undefined, rule)
      return result
    } catch (error) {
      throw error instanceof McpError ? error : refuse(told, error, kind)
    } finally {
      leave?.()
    }
  }
}

async function sample(
  parts: LoopParts,
  server: string,
  asked: SamplingParams,
  signal: AbortSignal,
  show: (review: SampleReview) => Promise<SampleReviewed>,
): Promise<SamplingResult> {
  const model = chooseModel(parts.models, asked.modelPreferences)
  const shown = { server, model: model.info.id }
  const params = (await show({ stage: 'prompt', ...shown, params: asked })).params ?? asked
  const request = requestOf(params, parts.limits.answerTokens, server)
  const payer = { server, featureSet: samplingSet }
  const said = await generate({ ...parts, retries: parts.limits.retries, payer }, model, request, signal, () => {})
  const result = resultOf(said)
  return (await show({ stage: 'answer', ...shown, params, result })).result ?? result
}

/** Without somebody who reads and changes it, the policy's own question is asked, once. */
async function plainYes(
  { policy }: LoopParts,
  asked: LoopAsked,
  verdict: LoopVerdict & { readonly do: 'ask' },
  { stage }: SampleReview,
): Promise<SampleReviewed> {
  return stage === 'answer' ? { yes: true } : policy.approve(asked, verdict)
}

function declined(server: string, rule: string): Why {
  return why('SAMPLE_DECLINED', rule, `The user declined sampling for ${server}`, 'Agree when asked, or allow it in the policy')
}
