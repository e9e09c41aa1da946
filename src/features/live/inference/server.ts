/** Server side of inference (MCP Live 0.2 §11): `infer` returns a promise of the answer that can also be iterated for its pieces. */
import type { Clock } from '../../../core/clock.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, type Id, isRecord } from '../../../jsonrpc/message.ts'
import { blocksOf, type LiveBlock, type LiveInput, type WireContent, writeBlocks } from '../content/messages.ts'
import { liveRefusalOf, notEnabled } from '../feature-sets/messages.ts'
import type { HostDialect, LiveHost } from '../hosts/messages.ts'
import { type ModelInfo, modelInfo, modelInfoShape } from '../model-info/messages.ts'
import {
  type FinishReason,
  finishReasons,
  hookInProgress,
  type InferenceResult,
  type InferenceRole,
  inferenceChunk,
  inferenceRoles,
  requestInference,
  type WireInferenceResult,
} from './messages.ts'

/** A request to the model of the host. */
export interface InferenceInput {
  /** The prompt. Text stands for one user message. */
  readonly messages:
    | string
    | readonly {
        /** Who speaks: `system`, `user` or `assistant`. */
        readonly role: InferenceRole
        /** The content of the message: text or blocks. */
        readonly content: LiveInput
      }[]
  /** The most tokens of the answer. Default: the host decides. */
  readonly maxTokens?: number
  /** The sampling temperature. Default: the host decides. */
  readonly temperature?: number
  /** The conversation that it belongs to, as hooks name it. Default: none. */
  readonly conversationId?: string
  /** Whether the answer is streamed. Default: if you iterate it. */
  readonly stream?: boolean
  /** Cancels the request. */
  readonly signal?: AbortSignal
}

/** The answer as a promise; iterate it for the pieces. */
export interface Inference extends Promise<InferenceResult>, AsyncIterable<string> {}

interface InferenceParts {
  readonly clock: Clock
  /** Delivers a piece to the pending request of the session's host. */
  readonly chunked: (exchange: Exchange, id: Id, index: number, delta: string) => void
  /** The timeout of an inference. */
  readonly timeoutMs: number
}

/** Creates `infer` and the handler for pieces. */
export function inferenceServer(parts: InferenceParts) {
  const chunked = (exchange: Exchange): void => {
    const { requestId, index, delta } = exchange.params as { requestId: Id; index: number; delta: string }
    parts.chunked(exchange, requestId, index, delta)
  }
  const side: Side = { handlers: [[inferenceChunk, chunked]] }
  return {
    side,
    modelInfo: askModel,
    /** Starts an inference; `host` resolves to the host once no hook is running. */
    infer: (featureSet: string, input: InferenceInput, host: () => Promise<LiveHost>, exchange?: Exchange): Inference => {
      const deltas = new Deltas()
      const messages = messagesOf(featureSet, input.messages)
      const result = (async () => {
        const ask = async (): Promise<WireInferenceResult> => {
          const found = await host()
          // Decided late, so that iterating the result right after the call enables streaming.
          const stream = input.stream ?? deltas.wanted
          const { maxTokens, temperature, conversationId, signal } = input
          const params = {
            featureSet,
            ...given({ conversationId }),
            stream,
            messages: messages.map(({ role, content }) => ({ role, content: written(content, found.dialect) })),
            preferences: given({ maxTokens, temperature }),
          }
          const options = { signal, timeoutMs: parts.timeoutMs, exchange, ...(stream ? { onChunk: deltas.add } : {}) }
          return found.request(requestInference, params, options)
        }
        return resultOf(await withRetries(parts.clock, ask))
      })().catch(error => {
        throw explained(featureSet, error)
      })
      result.then(({ content }) => deltas.end(content), deltas.fail)
      return Object.assign(result, { [Symbol.asyncIterator]: () => deltas.iterate() })
    },
  }
}

/** Retries while the host refuses because of a running hook. */
async function withRetries<T>(clock: Clock, ask: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const busy = error instanceof McpError && isRecord(error.data) && error.data['reason'] === hookInProgress
      if (!busy || attempt >= 5) throw error
      await new Promise<void>(resolve => clock.setTimeout(resolve, 100 * 2 ** attempt, true))
    }
  }
}

// Turns a host's refusal into a problem with a fix.
function explained(featureSet: string, error: unknown): unknown {
  const refusal = liveRefusalOf(error)
  if (refusal === undefined) return error
  return notEnabled(featureSet, (error as McpError & { data: Record<string, unknown> }).data['canEnable'])
}

/** A single text block is written as a string, because most hosts read only that. */
function written(content: readonly LiveBlock[], { source }: HostDialect): WireContent {
  const [only, ...more] = content
  return only?.type === 'text' && more.length === 0 ? only.text : writeBlocks(content, source)
}

function messagesOf(featureSet: string, given: InferenceInput['messages']) {
  const all = typeof given === 'string' ? [{ role: 'user' as const, content: given }] : given
  if (!Array.isArray(all) || all.length === 0)
    throw new TypeError(`infer of "${featureSet}" needs messages: a string, or [{ role: 'user', content: '…' }]`)
  return all.map(({ role, content }: { readonly role: InferenceRole; readonly content: LiveInput }) => {
    if (!inferenceRoles.includes(role))
      throw new TypeError(
        `infer of "${featureSet}" has a message with the role "${clip(String(role))}". The roles are ${inferenceRoles.join(', ')}`,
      )
    return { role, content: blocksOf(content, `infer of "${featureSet}"`) }
  })
}

/** Tolerates finish reasons and content forms of other hosts. */
function resultOf({ content, model, finishReason, usage }: WireInferenceResult): InferenceResult {
  const blocks = Array.isArray(content)
    ? content.map(block => (isRecord(block) ? textOf(block['text']) : '')).join('')
    : textOf(content)
  const counted = isRecord(usage) ? usage : {}
  return {
    content: blocks,
    model: textOf(model),
    finishReason: finishReasons.includes(finishReason as FinishReason) ? (finishReason as FinishReason) : 'end_turn',
    usage: { inputTokens: countOf(counted['inputTokens']), outputTokens: countOf(counted['outputTokens']) },
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const countOf = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0)

/** The pieces of an answer, in order; pieces that arrive early wait for their predecessors. */
class Deltas {
  wanted = false
  readonly #parts: string[] = []
  readonly #early = new Map<number, string>()
  #next = 0
  #ended = false
  #error: unknown = undefined
  #wake: (() => void) | undefined = undefined

  readonly add = (index: number, delta: string): void => {
    if (this.#ended || index < this.#next) return
    this.#early.set(index, delta)
    for (let part = this.#early.get(this.#next); part !== undefined; part = this.#early.get(this.#next)) {
      this.#early.delete(this.#next++)
      this.#parts.push(part)
    }
    this.#wake?.()
  }

  /** If the host sent no pieces, the whole text is the only one. */
  end(content: string): void {
    if (this.#next === 0) this.#parts.push(content)
    this.#ended = true
    this.#wake?.()
  }

  readonly fail = (error: unknown): void => {
    this.#ended = true
    this.#error = error
    this.#wake?.()
  }

  /** Sets `wanted` when iteration is set up, not at the first `next()`. */
  iterate(): AsyncGenerator<string, void, void> {
    this.wanted = true
    return this.#each()
  }

  async *#each(): AsyncGenerator<string, void, void> {
    for (let at = 0; ; ) {
      while (at < this.#parts.length) yield this.#parts[at++] as string
      if (this.#error !== undefined) throw this.#error
      if (this.#ended) return
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }
}

/** Asks a host which model it runs. */
async function askModel(host: LiveHost, exchange?: Exchange): Promise<ModelInfo> {
  const answer = await host.request(modelInfo, {}, { exchange })
  if (modelInfoShape.check(answer) === undefined) return answer
  throw new McpError('invalid-answer', `The host's response to ${modelInfo.name} is not valid`)
}
