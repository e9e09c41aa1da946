/** Inference that a server asks for (MCP Live 0.2 §11). */
import { notification, request, sessionIds } from '../../../engine/method.ts'
import { array, boolean, integer, number, object, oneOf, optional, string, token } from '../../../jsonrpc/shape.ts'
import { type LiveBlock, wireContent } from '../content/messages.ts'
import type { Usage } from '../context-hooks/messages.ts'

/** Who said a message. Others have no place in a request to a model. */
export const inferenceRoles = ['system', 'user', 'assistant'] as const
/** Who speaks in a message of an inference. */
export type InferenceRole = (typeof inferenceRoles)[number]

interface InferenceMessage {
  readonly role: InferenceRole
  readonly content: readonly LiveBlock[]
}

/** An inference that a server asks its host for. */
export interface InferenceRequest {
  readonly featureSet: string
  readonly conversationId?: string
  readonly stream: boolean
  readonly messages: readonly InferenceMessage[]
  readonly preferences: { readonly maxTokens?: number; readonly temperature?: number }
}

/** Why an inference may end. */
export const finishReasons = ['end_turn', 'max_tokens', 'stop_sequence'] as const
/** Why an inference ended. */
export type FinishReason = (typeof finishReasons)[number]

/** What the model answered to an inference that a server asked for. */
export interface InferenceResult {
  readonly content: string
  /** The one that really ran. */
  readonly model: string
  readonly finishReason: FinishReason
  readonly usage: Usage
}

/** Why an inference is refused that a hook of the same server may be waiting for: it may be asked for again. */
export const hookInProgress = 'hook_in_progress'

/** Peers are seen with other reasons and with blocks for content; both are read. */
export interface WireInferenceResult {
  readonly content: unknown
  readonly model?: unknown
  readonly finishReason?: unknown
  readonly usage?: unknown
}

const listed = array(object({ role: oneOf(...inferenceRoles), content: wireContent }))
const messages: typeof listed = {
  optional: false,
  schema: () => ({ ...listed.schema(), minItems: 1 }),
  check: value =>
    Array.isArray(value) && value.length === 0
      ? { path: '', expected: 'an array with at least one message' }
      : listed.check(value),
}

/** Asks the host for an inference. */
export const requestInference = request<WireInferenceResult>()({
  name: 'inference/request',
  to: 'client',
  in: sessionIds,
  params: object({
    featureSet: string,
    conversationId: optional(string),
    stream: optional(boolean),
    messages,
    preferences: optional(object({ maxTokens: optional(integer), temperature: optional(number) })),
  }),
})

/** Where calls have ids. In the listen binding chunks come with `live/answer`. */
export const inferenceChunk = notification({
  name: 'inference/chunk',
  to: 'server',
  in: sessionIds,
  params: object({ requestId: token, index: integer, delta: string }),
})
