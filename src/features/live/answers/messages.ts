/**
 * What answers a message that a server sends by itself: the same function, whether the message came as a request, without an id, or
 * inside a delivery of the listen binding. What a feature needs to know of the connection comes in through the gate.
 */
import type { Why } from '../../../core/suggestion.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Announced, SetUse } from '../dialects/messages.ts'

/** One message of a server while it is answered. */
export interface AnswerContext {
  /** Aborted when the server no longer wants the answer, or is gone. */
  readonly signal: AbortSignal
  /** Says a part of the answer before it; settles when the server has it. */
  chunk(index: number, delta: string): Awaitable<void>
}

/** Answers one method that a server sends to its host. */
export interface Answerer {
  readonly method: Method
  /** Data waits until the server knows what was selected; all else is answered at once, because servers wait for it. */
  readonly waits: boolean
  answer(params: Params, asked: AnswerContext): Awaitable<unknown>
}

/** What a connection is for those who answer on it. */
export interface LiveGate {
  /** What the server announced. Before its hello has come, nothing. */
  readonly announced: Announced | undefined
  /** Refuses what a set may not do: it is not declared, not enabled, or enabled for something else. */
  admit(featureSet: string, use: SetUse): void
  /** The same as a question. */
  admits(featureSet: string, use: SetUse): boolean
  /** The sets that may do it, for messages that name none. */
  admitted(use: SetUse): readonly string[]
  diagnose(why: Why): void
}

/** Of something that the server did not announce. */
export function unannounced(method: string, capability: string): McpError {
  return new McpError('method-not-found', `The server has not announced ${capability}, so there is no ${method} here`, {
    data: { capability, fix: `Announce ${capability} in experimental.mcpl` },
  })
}
