/**
 * Host side of inference for servers (MCP Live 0.2 §11): answers `inference/request` with a stream of pieces and the final result, and
 * `model/info`.
 */
import { McpError } from '../../../jsonrpc/error.ts'
import { type AnswerContext, type Answerer, type LiveGate, unannounced } from '../answers/messages.ts'
import { readInference, writeInference } from '../dialects/messages.ts'
import { type ModelInfo, modelInfo } from '../model-info/messages.ts'
import { hookInProgress, type InferenceRequest, type InferenceResult, requestInference } from './messages.ts'

/** Runs an inference for a server. */
export type OnInfer = (
  request: InferenceRequest,
  context: { readonly signal: AbortSignal; chunk(delta: string): void },
) => Promise<InferenceResult>

/** Answers inference requests. `hooked`: whether a hook of the server is running; it must not wait for an inference (§10.7). */
export function inferenceAnswerers(gate: LiveGate, onInfer: OnInfer, hooked: () => boolean): readonly Answerer[] {
  return [
    {
      method: requestInference,
      waits: true,
      answer: async (params, asked) => {
        if (gate.announced?.inference !== true) throw unannounced(requestInference.name, 'inferenceRequest')
        const request = readInference(params)
        const { featureSet } = request
        gate.admit(featureSet, 'inferenceRequest')
        if (hooked()) {
          const message = 'A hook of this server is in flight: ask again when it is answered'
          throw new McpError('invalid-request', message, { data: { reason: hookInProgress, retryable: true } })
        }
        const parts = new Parts(asked)
        const result = await onInfer(request, {
          signal: asked.signal,
          chunk: delta => {
            if (request.stream && gate.admits(featureSet, 'inferenceRequest')) parts.add(delta)
          },
        })
        // Checked again, because consent may have been withdrawn meanwhile.
        gate.admit(featureSet, 'inferenceRequest')
        // The final answer must follow all its pieces.
        await parts.sent()
        return writeInference(result)
      },
    },
  ]
}

/** Sends one piece at a time; text that arrives meanwhile is joined into the next, so a slow server gets fewer pieces. */
class Parts {
  readonly #asked: AnswerContext
  #waiting = ''
  #index = 0
  #pumping: Promise<void> | undefined = undefined
  /** A piece was lost; later ones would leave a gap. */
  #broken = false

  constructor(asked: AnswerContext) {
    this.#asked = asked
  }

  add(delta: string): void {
    if (delta === '' || this.#broken) return
    this.#waiting += delta
    this.#pumping ??= this.#pump()
  }

  /** Resolves when all pieces are sent. */
  async sent(): Promise<void> {
    await this.#pumping
  }

  async #pump(): Promise<void> {
    try {
      while (this.#waiting !== '' && !this.#asked.signal.aborted) {
        const delta = this.#waiting
        this.#waiting = ''
        await this.#asked.chunk(this.#index++, delta)
      }
    } catch {
      // The final answer contains the whole text anyway.
      this.#broken = true
    }
    this.#pumping = undefined
  }
}

/** Answers `model/info`. */
export function modelAnswerers(current: () => ModelInfo): readonly Answerer[] {
  return [
    {
      method: modelInfo,
      waits: false,
      answer: () => {
        const { id, vendor, contextWindow, capabilities } = current()
        return { id, vendor, contextWindow, capabilities }
      },
    },
  ]
}
