/** Hooks around an inference (MCP Live 0.2 §10). What follows an inference comes as a request where its answer may change the reply. */
import { notification, officialIds, request } from '../../../engine/method.ts'
import { integer, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import type { LiveBlock, WireContent } from '../content/messages.ts'
import { speakingLive } from '../feature-sets/messages.ts'
import type { ModelInfo } from '../model-info/messages.ts'

/** An inference that is about to begin, as hooks see it. */
export interface BeforeInference {
  readonly inferenceId: string
  readonly conversationId: string
  readonly turnIndex: number
  /** Null: generation goes on without a new message. */
  readonly userMessage: string | null
  readonly model: ModelInfo
}

/** Tokens that an inference took. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** An inference that has ended, as hooks see it. */
export interface AfterInference extends BeforeInference {
  readonly assistantMessage: string
  readonly usage: Usage
}

/** Where an injection may stand in the prompt. */
export const positions = ['system', 'beforeUser', 'afterUser'] as const
/** Where an injection stands. */
export type Position = (typeof positions)[number]

/** Content that a server adds to the prompt. */
export interface Injection {
  readonly namespace: string
  readonly position: Position
  readonly content: readonly LiveBlock[]
  readonly metadata?: Record<string, unknown>
}

/** An injection as it is sent. */
export interface WireInjection {
  readonly namespace: string
  readonly position: string
  readonly content: WireContent
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A server's answer before an inference. */
export interface BeforeResult {
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

/** Asks a server what to add to the context of an inference. */
export const beforeInference = request<BeforeResult>()({
  name: 'context/beforeInference',
  to: 'server',
  in: officialIds,
  params: object(turn),
  declares: speakingLive,
})

const after = {
  name: 'context/afterInference',
  to: 'server',
  in: officialIds,
  params: object({ ...turn, assistantMessage: string, usage: optional(record) }),
} as const

/** Asks a server to look at the answer of an inference. */
export const afterInference = request<AfterResult>()({ ...after, declares: speakingLive })
/** Tells a server of the answer of an inference, without waiting for it. */
export const afterInferenceTold = notification(after)

/** Hosts from 0.5 on: that an inference began or ended, and nothing of what was said. */
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
