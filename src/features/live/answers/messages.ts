/**
 * Types for answering a message that a server sends on its own initiative. One answerer serves a request, a notification and a delivery
 * of the listen binding; it asks the gate what the connection currently permits. Separate because every client part of MCP Live needs
 * these types.
 */
import type { Why } from '../../../core/suggestion.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Announced, SetUse } from '../dialects/messages.ts'

/** One message of a server while it is answered. */
export interface AnswerContext {
  /** Aborted when the server cancels the message or the connection ends. */
  readonly signal: AbortSignal
  /** Sends one piece of the answer ahead of the final result; settles when the server has received it. */
  chunk(index: number, delta: string): Awaitable<void>
}

/** Answers one method that a server sends to its host. */
export interface Answerer {
  /** The method that is answered. */
  readonly method: Method
  /**
   * True for data, which waits until the server knows the selection. Control messages are answered at once, because servers block on
   * them.
   */
  readonly waits: boolean
  /** Computes the result; throws an McpError to refuse the message. */
  answer(params: Params, asked: AnswerContext): Awaitable<unknown>
}

/** What a connection tells the answerers about the server and the selected feature sets. */
export interface LiveGate {
  /** What the server announced in its handshake; undefined before that. */
  readonly announced: Announced | undefined
  /** Throws if the set is not declared, not enabled, or not allowed this use. */
  admit(featureSet: string, use: SetUse): void
  /** Like `admit`, but returns a boolean instead of throwing. */
  admits(featureSet: string, use: SetUse): boolean
  /** The sets that are allowed this use; for messages that name no set. */
  admitted(use: SetUse): readonly string[]
  /** Reports something that was dropped or ignored to the host. */
  diagnose(why: Why): void
}

/** The error for a message whose capability the server did not announce. */
export function unannounced(method: string, capability: string): McpError {
  return new McpError('method-not-found', `The server has not announced ${capability}, so there is no ${method} here`, {
    data: { capability, fix: `Announce ${capability} in experimental.mcpl` },
  })
}
