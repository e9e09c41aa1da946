/**
 * Inference that a server asks for by MCP Live (0.2 §11): no human is needed; policy, budget and routes decide. No hooks run for it,
 * so that no hook can cause another.
 */
import type { LiveHandlers } from '../../../client/live-handlers.ts'
import type { FinishReason, InferenceRequest } from '../../../features/live/inference/messages.ts'
import type { ModelFinish, ModelMessage, ModelRequest } from '../../models/model.ts'
import { textIn } from '../../models/model.ts'
import { text } from '../blocks.ts'
import { generate } from '../generate.ts'
import type { LoopParts } from '../loop-parts.ts'
import { refusal } from '../permit.ts'
import type { LoopAsked } from '../ports.ts'
import { modelNamed } from './choose-model.ts'
import { noted, refuse } from './refuse.ts'

/** Which model answers whom: by `server/set`, `server`, or `set`. */
export type Routes = ReadonlyMap<string, string>

export function inferenceFor(parts: LoopParts, server: string, routes: Routes): LiveHandlers['onInfer'] {
  return async (request, { signal, chunk }) => {
    const { featureSet, conversationId, stream } = request
    const about = { server, featureSet, kind: 'infer', began: parts.clock.now() }
    const told = noted(parts, { ...about, ...(conversationId !== undefined && { conversation: conversationId }) })
    const wish: LoopAsked = { kind: 'infer', server, featureSet, payload: request }
    const said = await refusal(parts.policy, wish)
    if (said !== undefined) throw refuse(told, said)
    const leave = parts.policy.enter?.(wish)
    const model = modelNamed(parts.models, routes.get(`${server}/${featureSet}`) ?? routes.get(server) ?? routes.get(featureSet))
    try {
      const asked = modelRequest(request, parts.limits.answerTokens)
      const payer = { server, featureSet }
      const made = await generate({ ...parts, retries: parts.limits.retries, payer }, model, asked, signal, delta => {
        if (stream) chunk(delta)
      })
      told('success')
      return { content: made.text, model: made.model, finishReason: finishOf(made.finishReason), usage: made.usage }
    } catch (error) {
      signal.throwIfAborted()
      throw refuse(told, error)
    } finally {
      leave?.()
    }
  }
}

/** Roles beyond the three that there are count as a user's. */
function modelRequest({ messages, preferences }: InferenceRequest, most: number): ModelRequest {
  const system = messages.filter(({ role }) => role === 'system').flatMap(({ content }) => content)
  const rest = messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }): ModelMessage => ({ role: role === 'assistant' ? 'assistant' : 'user', content }))
  const { maxTokens, temperature } = preferences
  return {
    system: system.length === 0 ? [] : [text(textIn(system))],
    messages: rest,
    tools: [],
    maxTokens: Math.max(1, Math.min(maxTokens ?? most, most)),
    ...(temperature !== undefined && { temperature }),
  }
}

/** Models that want tools have nobody to call them here. */
function finishOf(reason: ModelFinish): FinishReason {
  return reason === 'tool_use' ? 'end_turn' : reason
}
