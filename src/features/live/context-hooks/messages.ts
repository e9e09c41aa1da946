/**
 * Wire messages of the hooks around an inference (MCP Live 0.2 §10). `context/afterInference` is a request if its answer may change the
 * reply, otherwise a notification.
 */
import { notification, officialIds, request } from '../../../engine/method.ts'
import { integer, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import type { LiveBlock, WireContent } from '../content/messages.ts'
import { liveDeclaration } from '../feature-sets/messages.ts'
import type { ModelInfo } from '../model-info/messages.ts'

/** An inference that is about to begin, as hooks see it. */
export interface BeforeInference {
  /** The id of the inference. */
  readonly inferenceId: string
  /** The id of the conversation. */
  readonly conversationId: string
  /** The number of the turn in the conversation. */
  readonly turnIndex: number
  /** The message of the user. Null: the model continues without a new message, or the server may not see it. */
  readonly userMessage: string | null
  /** The model that is about to run. */
  readonly model: ModelInfo
}

/** The tokens that an inference used. */
export interface Usage {
  /** Tokens of the prompt. */
  readonly inputTokens: number
  /** Tokens of the answer. */
  readonly outputTokens: number
}

/** An inference that has ended, as hooks see it. */
export interface AfterInference extends BeforeInference {
  /** The answer of the model. */
  readonly assistantMessage: string
  /** The tokens that the inference used. */
  readonly usage: Usage
}

/** The positions of an injection in the prompt. */
export const positions = ['system', 'beforeUser', 'afterUser'] as const
/** Where an injection goes: at the start of the prompt (`system`), before or after the user's message. */
export type Position = (typeof positions)[number]

/** Content that a server adds to the prompt. */
export interface Injection {
  /** Names the source of the content, usually the feature set. */
  readonly namespace: string
  /** Where in the prompt it goes. */
  readonly position: Position
  /** The content to add. */
  readonly content: readonly LiveBlock[]
  /** Further facts from the server. */
  readonly metadata?: Record<string, unknown>
}

/** An injection as it is sent. */
interface WireInjection {
  /** A name that `positions` may not contain; such an injection is dropped. */
  readonly namespace: string
  readonly position: string
  readonly content: WireContent
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A server's answer before an inference. */
interface BeforeResult {
  readonly featureSet: string
  readonly contextInjections: readonly WireInjection[]
}

/** A server's answer after an inference. */
export interface AfterResult {
  readonly featureSet: string
  readonly modifiedResponse?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

const textOrNull: Shape<string | null> = {
  optional: false,
  schema: () => ({ type: ['string', 'null'] }),
  check: value => (value === null || typeof value === 'string' ? undefined : { path: '', expected: 'a string or null' }),
}

const turn = {
  inferenceId: string,
  conversationId: string,
  turnIndex: integer,
  userMessage: textOrNull,
  model: optional(record),
}

/** Asks a server for injections before an inference. */
export const beforeInference = request<BeforeResult>()({
  name: 'context/beforeInference',
  to: 'server',
  in: officialIds,
  params: object(turn),
  declares: liveDeclaration,
})

const after = {
  name: 'context/afterInference',
  to: 'server',
  in: officialIds,
  params: object({ ...turn, assistantMessage: string, usage: optional(record) }),
} as const

/** Asks a server whether it changes the answer of an inference. */
export const afterInference = request<AfterResult>()({ ...after, declares: liveDeclaration })
/** Tells a server the answer of an inference. */
export const afterInferenceNotice = notification(after)

/** Tells a server that an inference began or ended (0.5). */
export const inferenceLifecycle = notification({
  name: 'inference/lifecycle',
  to: 'server',
  in: officialIds,
  params: object({
    phase: string,
    inferenceId: optional(string),
    conversationId: optional(string),
    turnIndex: optional(integer),
    usage: optional(record),
  }),
})
