/** Problems on the wire: an object in a result's `_meta` under the extension's id, or the data of an error. */

import type { Category, Problem, ProblemCode } from '../../../core/problem.ts'
import { problemFactsOf, problemFrom } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ToolAttempts } from '../../mcp/tools/messages.ts'

/** What other features may use of problems. */
interface ProblemPort {
  /** What the `_meta` of a failed call's result says of it; undefined for a peer that does not know problems. */
  meta(exchange: Exchange, problem: Problem): Readonly<Record<string, unknown>> | undefined
  /** The problem in whatever was thrown. */
  of(thrown: unknown): Problem
}

/** What other features may use of problems. */
export const problemPort = port<ProblemPort>('problem')

/** The name of the extension. */
export const problemExtension = `${NS}/problem`

/** A problem as it is sent. */
export interface WireProblem {
  readonly code: string
  readonly message: string
  readonly category: Category
  readonly retry_after_seconds?: number
  readonly user_actionable?: boolean
  readonly suggestion?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly documentation_url?: string
  readonly correlation_id?: string
}

/** An extension's method failed: the data of the error is the problem (beside the range that JSON-RPC and MCP keep to themselves). */
export const problemErrors = { problem: { default: -31000 } }

/** What an HTTP status says by itself; of any other only that it failed is known. */
export const statusCodes: ReadonlyMap<number, ProblemCode> = new Map<number, ProblemCode>([
  [401, 'AUTHENTICATION_REQUIRED'],
  [403, 'PERMISSION_DENIED'],
  [408, 'OPERATION_TIMEOUT'],
  [413, 'PAYLOAD_TOO_LARGE'],
  [425, 'SERVER_UNAVAILABLE'],
  [429, 'RATE_LIMIT_EXCEEDED'],
  [502, 'SERVER_UNAVAILABLE'],
  [503, 'SERVER_UNAVAILABLE'],
  [504, 'SERVER_UNAVAILABLE'],
])

/** `correlation` joins it with what was written about the request, where it has no id of its own. */
export function toWire(problem: Problem, correlation?: string): WireProblem {
  const { code, message, category, userActionable, suggestion, details, ...rest } = problemFactsOf(problem)
  const correlationId = rest.correlationId ?? correlation
  return {
    code,
    message,
    category,
    ...(rest.retryAfterSeconds === undefined ? {} : { retry_after_seconds: rest.retryAfterSeconds }),
    ...(userActionable ? { user_actionable: true } : {}),
    ...(suggestion === undefined ? {} : { suggestion }),
    ...(details === undefined ? {} : { details }),
    ...(rest.documentation === undefined ? {} : { documentation_url: rest.documentation }),
    ...(correlationId === undefined ? {} : { correlation_id: correlationId }),
  }
}

/** Undefined where it is none. */
export function fromWire(value: unknown): Problem | undefined {
  if (!isRecord(value)) return undefined
  return problemFrom({
    code: value['code'],
    message: value['message'],
    category: value['category'],
    retryAfterSeconds: value['retry_after_seconds'],
    userActionable: value['user_actionable'],
    suggestion: value['suggestion'],
    details: value['details'],
    documentation: value['documentation_url'],
    correlationId: value['correlation_id'],
  })
}

/** What failures mean, for other features of a client. */
export interface ClientProblems {
  classify(error: unknown): Problem
  /** Attempts a call, and again where that can help and does no harm. */
  retry<T extends { readonly problem: Problem | undefined }>(call: ToolAttempts<T>): Promise<T>
}

/** The client's problems. */
export const problemsPort: Port<ClientProblems> = port('problems')
