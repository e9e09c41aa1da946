/**
 * Host side of inference for servers (MCP Live 0.2 §11): answers `inference/request` with a stream of pieces and the final result.
 */
import { McpError } from '../../../jsonrpc/error.ts'
import { type Answerer, type LiveGate, Pieces, unannounced } from '../answers/messages.ts'
import { readInference, writeInference } from '../dialects/messages.ts'
import { hookInProgress, type InferenceRequest, type InferenceResult, requestInference } from './messages.ts'

/** Runs an inference for a server. `chunk` sends a piece of the answer; pieces given after the promise has resolved are dropped. */
export type OnInfer = (
  request: InferenceRequest,
  context: {
    /** Aborted when the server cancels the request. */
    readonly signal: AbortSignal
    /** Sends a piece of the answer. */
    chunk(delta: string): void
  },
) => Promise<InferenceResult>

/** Answers inference requests. `hooked`: whether a hook of the server is running; it must not wait for an inference (§10.7). */
export function inferenceAnswerers(gate: LiveGate, onInfer: OnInfer, hooked: () => boolean): readonly Answerer[] {
  return [
    {
      method: requestInference,
      waits: true,
      answer: async (params, asked) => {
        if (!gate.announced.inference) throw unannounced(requestInference.name, 'inferenceRequest')
        const request = readInference(params)
        const { featureSet } = request
        gate.admit(featureSet, 'inferenceRequest')
        if (hooked()) {
          const message = 'A hook of this server is still running. Send the request again after the hook has been answered'
          throw new McpError('invalid-request', message, { data: { reason: hookInProgress, retryable: true } })
        }
        // A piece that gets lost is no loss: the final answer contains the whole text.
        const pieces = new Pieces({ send: asked.chunk, allowed: () => !asked.signal.aborted })
        const result = await onInfer(request, {
          signal: asked.signal,
          chunk: delta => {
            if (request.stream && gate.admits(featureSet, 'inferenceRequest')) pieces.add(delta)
          },
        })
        // Checked again, because consent may have been withdrawn meanwhile.
        gate.admit(featureSet, 'inferenceRequest')
        // The final answer must follow all its pieces.
        await pieces.end()
        return writeInference(result)
      },
    },
  ]
}
