/** Wire messages of inference that a server requests (MCP Live 0.2 §11). */
import { notification, request, sessionRevisionIds } from '../../../engine/method.ts'
import { array, boolean, integer, number, object, oneOf, optional, string, token } from '../../../jsonrpc/shape.ts'
import { type LiveBlock, wireContent } from '../content/messages.ts'
import type { Usage } from '../context-hooks/messages.ts'

/** The roles allowed in a request to the model. */
export const inferenceRoles = ['system', 'user', 'assistant'] as const
/** Who speaks in a message. */
export type InferenceRole = (typeof inferenceRoles)[number]

/** One message of the prompt. */
interface InferenceMessage {
  /** Who speaks: `system`, `user` or `assistant`. */
  readonly role: InferenceRole
  /** The content of the message. */
  readonly content: readonly LiveBlock[]
}

/** An inference that a server requests from its host. */
export interface InferenceRequest {
  /** The set that requests it. */
  readonly featureSet: string
  /** The conversation that it belongs to. */
  readonly conversationId?: string
  /** Whether pieces are sent before the result. */
  readonly stream: boolean
  /** The prompt, in order. */
  readonly messages: readonly InferenceMessage[]
  /** What the server wants of the model. */
  readonly preferences: {
    /** The most tokens of the answer. */
    readonly maxTokens?: number
    /** The sampling temperature. */
    readonly temperature?: number
  }
}

/** The finish reasons of the protocol. */
export const finishReasons = ['end_turn', 'max_tokens', 'stop_sequence'] as const
/** Why the model stopped. */
export type FinishReason = (typeof finishReasons)[number]

/** The model's answer. */
export interface InferenceResult {
  /** The text of the answer. */
  readonly content: string
  /** The model that actually ran. */
  readonly model: string
  /** Why the model stopped. */
  readonly finishReason: FinishReason
  /** The tokens that were used. */
  readonly usage: Usage
}

/** The reason in a refusal while a hook of the same server runs; the request can be repeated. */
export const hookInProgress = 'hook_in_progress'

/** The result as peers send it; unknown reasons and content blocks occur and are read too. */
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

/** A server requests an inference from its host. */
export const requestInference = request<WireInferenceResult>()({
  name: 'inference/request',
  to: 'client',
  in: sessionRevisionIds,
  params: object({
    featureSet: string,
    conversationId: optional(string),
    stream: optional(boolean),
    messages,
    preferences: optional(object({ maxTokens: optional(integer), temperature: optional(number) })),
  }),
})

/** A piece of the answer on session wires; in the listen binding pieces come with `live/answer`. */
export const inferenceChunk = notification({
  name: 'inference/chunk',
  to: 'server',
  in: sessionRevisionIds,
  params: object({ requestId: token, index: integer, delta: string }),
})
