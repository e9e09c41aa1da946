/** Thinking for a server (MCP Live 0.2 §11): its request, the parts of the answer while they form, and the answer. */
import { McpError } from '../../../jsonrpc/error.ts'
import { type AnswerContext, type Answerer, type LiveGate, unannounced } from '../answers/messages.ts'
import { readInference, writeInference } from '../dialects/messages.ts'
import { type ModelInfo, modelInfo } from '../model-info/messages.ts'
import { hookInProgress, type InferenceRequest, type InferenceResult, requestInference } from './messages.ts'

/** Runs an inference that a server asks for. */
export type OnInfer = (
  request: InferenceRequest,
  context: { readonly signal: AbortSignal; chunk(delta: string): void },
) => Promise<InferenceResult>

/** `hooked`: whether the server has a hook in flight, whose answer must not wait for this (§10.7). */
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
        // Consent may have been withdrawn while the answer formed.
        gate.admit(featureSet, 'inferenceRequest')
        // The answer carries the whole, and comes after all its parts.
        await parts.sent()
        return writeInference(result)
      },
    },
  ]
}

/** One part at a time; what forms while one is under way goes with the next, so that a slow server gets fewer. */
class Parts {
  readonly #asked: AnswerContext
  #waiting = ''
  #index = 0
  #pumping: Promise<void> | undefined = undefined
  /** One did not arrive: another after it would leave a gap. */
  #broken = false

  constructor(asked: AnswerContext) {
    this.#asked = asked
  }

  add(delta: string): void {
    if (delta === '' || this.#broken) return
    this.#waiting += delta
    this.#pumping ??= this.#pump()
  }

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
      // The answer still carries all of it.
      this.#broken = true
    }
    this.#pumping = undefined
  }
}

/** Answers which model runs. */
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
