/** Problems on the wire: an object in the `_meta` of a result, or the data of an error. */

import type { Category, Problem, ProblemCode } from '../../../core/problem.ts'
import { problemFactsOf, problemFrom } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ToolAttempts } from '../../mcp/tools/messages.ts'

/** What other features may do with problems. */
interface ProblemPort {
  /** The `_meta` of a failed result; undefined if the client did not declare the extension. */
  meta(exchange: Exchange, problem: Problem): Readonly<Record<string, unknown>> | undefined
  /** The problem behind a thrown value. */
  of(thrown: unknown): Problem
}

/** The port of this feature. */
export const problemPort = port<ProblemPort>('problem')

/** The extension name. */
export const problemExtension = `${NS}/problem`

/** A problem on the wire. */
export interface WireProblem {
  readonly code: string
  readonly message: string
  readonly category: Category
  readonly retry_after_seconds?: number
  /** Whether the user can do something about it. */
  readonly user_actionable?: boolean
  readonly suggestion?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly documentation_url?: string
  /** Joins it with log entries of the server. */
  readonly correlation_id?: string
}

/** The error code of extension methods that fail with a problem; outside of the range reserved by JSON-RPC and MCP. */
export const problemErrors = { problem: { default: -31000 } }

/** What an HTTP status means by itself. */
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

/** Writes a problem. `correlation` is used if the problem has no id of its own. */
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

/** Reads a problem; undefined if it is not one. */
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

/** The classification of failures, for other client features. */
export interface ClientProblems {
  classify(error: unknown): Problem
  /** Runs a call with retries. */
  retry<T extends { readonly problem: Problem | undefined }>(call: ToolAttempts<T>): Promise<T>
}

/** The client port of this feature. */
export const problemsPort = port<ClientProblems>('problems')
