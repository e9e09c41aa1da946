/** Hooks around an inference (MCP Live 0.2 §10). What follows an inference comes as a request where its answer may change the reply. */
import { notification, officialIds, request } from '../../../engine/method.ts'
import { integer, object, optional, record, type Shape, string } from '../../../jsonrpc/shape.ts'
import type { LiveBlock, WireContent } from '../content/messages.ts'
import { speakingLive } from '../feature-sets/messages.ts'
import type { ModelInfo } from '../inference/messages.ts'

export interface BeforeInference {
  readonly inferenceId: string
  readonly conversationId: string
  readonly turnIndex: number
  /** Null: generation goes on without a new message. */
  readonly userMessage: string | null
  readonly model: ModelInfo
}

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
}

export interface AfterInference extends BeforeInference {
  readonly assistantMessage: string
  readonly usage: Usage
}

export const positions = ['system', 'beforeUser', 'afterUser'] as const
export type Position = (typeof positions)[number]

export interface Injection {
  readonly namespace: string
  readonly position: Position
  readonly content: readonly LiveBlock[]
  readonly metadata?: Record<string, unknown>
}

export interface WireInjection {
  readonly namespace: string
  readonly position: string
  readonly content: WireContent
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface BeforeResult {
  readonly featureSet: string
  readonly contextInjections: readonly WireInjection[]
}

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

export const afterInference = request<AfterResult>()({ ...after, declares: speakingLive })
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
