/** Every failure of the runtime as a problem: what kind of failure it is decides the code, and with it whether trying again can help. */
import { Problem, type ProblemCode, problem, problemOf } from '../../../core/problem.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { statusCodes } from './messages.ts'

/** Kinds that are not the caller's mistake, or not only. All others that a caller can cause are. */
const codes: ReadonlyMap<string, ProblemCode> = new Map<string, ProblemCode>([
  ['rate-limited', 'RATE_LIMIT_EXCEEDED'],
  ['busy', 'SERVER_UNAVAILABLE'],
  ['timeout', 'OPERATION_TIMEOUT'],
  ['insufficient-scope', 'SCOPE_INSUFFICIENT'],
  ['unknown-tool', 'RESOURCE_NOT_FOUND'],
  ['unknown-prompt', 'RESOURCE_NOT_FOUND'],
  ['unknown-task', 'RESOURCE_NOT_FOUND'],
  ['resource-not-found', 'RESOURCE_NOT_FOUND'],
  ['session-unknown', 'RESOURCE_NOT_FOUND'],
  ['method-not-found', 'UNSUPPORTED'],
  ['capability-missing', 'UNSUPPORTED'],
  ['version-unsupported', 'UNSUPPORTED'],
  ['task-abandoned', 'OUTCOME_UNKNOWN'],
  ['internal', 'SERVER_ERROR'],
  ['remote', 'SERVER_ERROR'],
  ['invalid-answer', 'SERVER_ERROR'],
  ['invalid-result', 'SERVER_ERROR'],
])

/** The words of a protocol failure are the runtime's own, or its author's, for the caller; of anything else none are told. */
export function problemOfFailure(thrown: unknown): Problem {
  if (!(thrown instanceof McpError)) return problemOf(thrown)
  if (thrown.cause instanceof Problem) return thrown.cause
  const { retryAfterMs: retryAfter, scopes } = isRecord(thrown.data) ? thrown.data : {}
  return problem(codes.get(thrown.kind) ?? ofStatus(thrown.status), thrown.message, {
    cause: thrown,
    ...(Array.isArray(scopes) ? { details: { missing_scopes: scopes } } : {}),
    ...(typeof retryAfter === 'number' ? { retryAfter } : {}),
  })
}

/** A carrier that refuses knows no kinds: its status says whose mistake it is. */
function ofStatus(status: number | undefined): ProblemCode {
  if (status === undefined) return 'INVALID_INPUT'
  return statusCodes.get(status) ?? (status >= 500 ? 'SERVER_ERROR' : 'INVALID_INPUT')
}
