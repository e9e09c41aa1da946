/**
 * Inference that a server asks for by MCP Live (0.2 §11): no human is needed; policy, budget and routes decide. No hooks run for it,
 * so that no hook can cause another.
 */
import type { LiveHandlers } from '../../../client/live-handlers.ts'
import { type Why, why } from '../../../core/why.ts'
import type { FinishReason, InferenceRequest } from '../../../features/live/inference/messages.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { ModelFinish, ModelMessage, ModelRequest } from '../../models/model.ts'
import { generate } from '../generate.ts'
import { quoteFromServer } from '../model-content.ts'
import { askPermission, hostRefusalError, outcomeNoter } from '../permission.ts'
import type { LoopParts, LoopRequest } from '../ports.ts'
import { assistantBlocks, modelNamed, requestSystem } from './sampling.ts'

/** Which model answers whom: by `server/set`, `server`, or `set`. */
type Routes = ReadonlyMap<string, string>

export function inferenceFor(parts: LoopParts, server: string, routes: Routes): LiveHandlers['onInfer'] {
  return async (request, { signal, chunk }) => {
    const { featureSet, conversationId, stream } = request
    const about = { server, featureSet, kind: 'infer', began: parts.clock.now() }
    const told = outcomeNoter(parts, { ...about, ...(conversationId !== undefined && { conversation: conversationId }) })
    const wish: LoopRequest = { kind: 'infer', server, featureSet, payload: request }
    const { why: said, rule } = await askPermission(parts.policy, wish)
    if (said !== undefined) throw hostRefusalError(told, said)
    const leave = parts.policy.enter?.(wish)
    const model = modelNamed(parts.models, routes.get(`${server}/${featureSet}`) ?? routes.get(server) ?? routes.get(featureSet))
    try {
      const asked = modelRequest(request, parts.limits.answerTokens, server)
      const payer = { server, featureSet }
      const made = await generate({ ...parts, retries: parts.limits.retries, payer }, model, asked, signal, delta => {
        if (stream) chunk(delta)
      })
      told('success', undefined, rule)
      return { content: made.text, model: made.model, finishReason: finishOf(made.finishReason), usage: made.usage }
    } catch (error) {
      // Nobody waits for it any more, but it may have cost something.
      if (signal.aborted) told('failure', cancelled(server))
      signal.throwIfAborted()
      throw hostRefusalError(told, error)
    } finally {
      leave?.()
    }
  }
}

function modelRequest({ messages, preferences }: InferenceRequest, most: number, server: string): ModelRequest {
  const system = messages.filter(({ role }) => role === 'system').flatMap(({ content }) => content)
  const rest = messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }): ModelMessage => {
      if (role === 'assistant') return { role, content: assistantBlocks(content) }
      return { role: 'user', content: quoteFromServer('server-request', { server }, content) }
    })
  const { maxTokens, temperature } = preferences
  return {
    system: requestSystem(server, system),
    messages: rest,
    tools: [],
    maxTokens: Math.max(1, Math.min(maxTokens ?? most, most)),
    ...(temperature !== undefined && { temperature }),
  }
}

function cancelled(server: string): Why {
  return why('CANCELLED', 'inference', `${clip(server)} no longer wants the inference`, 'Nothing needs to be done')
}

/** Models that want tools have nobody to call them here. */
function finishOf(reason: ModelFinish): FinishReason {
  return reason === 'tool_use' ? 'end_turn' : reason
}
