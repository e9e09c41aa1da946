/**
 * Server side of problems: adds them to failed results and errors for clients that declared the extension; others get text and codes.
 */
import { Problem, type ProblemCode, problem, problemOf, problemText, refusalIn } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { failureOf } from '../../../engine/outcome.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'
import { problemErrors, problemExtension, problemPort, statusCodes, toWire } from './messages.ts'

/** The server feature: explains failures as problems. */
export const problemFeature = defineServerFeature<object>({
  name: 'problem',
  setup: kit => {
    // Failed tool calls carry the problem in `_meta`.
    kit.port(toolsPort).extend({ explain: problemMeta })
    return {
      sides: [problemServer()],
      provides: provide(problemPort, { meta: problemMeta, of: problemOfFailure }),
      engine: { explain: explainFailure, explainTo: explainRefusal },
    }
  },
})

/** Declares the extension and its error codes. */
export function problemServer(): Side {
  return { errors: problemErrors, capabilities: revision => extensionCapability(revision, problemExtension) }
}

/** The `_meta` of a failed result; undefined if the client did not declare the extension. */
export function problemMeta({ peer, correlated }: Exchange, problem: Problem): Readonly<Record<string, unknown>> | undefined {
  return declaredSettings(peer, problemExtension) === undefined ? undefined : { [problemExtension]: toWire(problem, correlated) }
}

/**
 * The error that a request is answered with. Extension methods fail with the problem as data; other methods keep their own code and
 * data, and add the problem for clients that know it.
 */
function explainFailure(exchange: Exchange, thrown: unknown): unknown {
  const refusal = exchange.route.method.extension === undefined ? undefined : refusalIn(thrown)
  // The operator must learn of it, whatever the caller is told.
  if (refusal !== undefined && refusal !== thrown) exchange.engine.trace('store-refused', thrown, exchange.caller)
  if (refusal !== undefined)
    return new McpError('problem', problemText(refusal), { cause: refusal, data: toWire(refusal, exchange.correlated) })
  if (declaredSettings(exchange.peer, problemExtension) === undefined) return thrown
  const failure = failureOf(thrown)
  // The correlation id leads to the server's log.
  return beside(failure, thrown, failure.kind === 'internal' ? exchange.correlation : exchange.correlated)
}

/** The same for requests that are refused before they become a call. */
function explainRefusal(peer: Peer, thrown: unknown): unknown {
  return declaredSettings(peer, problemExtension) === undefined ? thrown : beside(failureOf(thrown), thrown, undefined)
}

/** Adds the problem to the data of the error. */
function beside({ kind, message, data, code, cause }: McpError, thrown: unknown, correlation: string | undefined): McpError {
  const problem = toWire(thrown instanceof Problem ? thrown : problemOfFailure(thrown), correlation)
  return new McpError(kind, message, {
    cause,
    data: { ...(isRecord(data) ? data : data === undefined ? {} : { data }), [problemExtension]: problem },
    ...(code === undefined ? {} : { code }),
  })
}

// Maps errors of the runtime to problems; the kind decides the code.

/** Kinds that are not simply the caller's mistake. */
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

/** Messages of protocol errors are meant for the caller; those of other errors are not shown. */
function problemOfFailure(thrown: unknown): Problem {
  if (!(thrown instanceof McpError)) return problemOf(thrown)
  if (thrown.cause instanceof Problem) return thrown.cause
  const { retryAfterMs: retryAfter, scopes } = isRecord(thrown.data) ? thrown.data : {}
  return problem(codes.get(thrown.kind) ?? ofStatus(thrown.status), thrown.message, {
    cause: thrown,
    ...(Array.isArray(scopes) ? { details: { missing_scopes: scopes } } : {}),
    ...(typeof retryAfter === 'number' ? { retryAfter } : {}),
  })
}

/** A carrier's refusal has only a status. */
function ofStatus(status: number | undefined): ProblemCode {
  if (status === undefined) return 'INVALID_INPUT'
  return statusCodes.get(status) ?? (status >= 500 ? 'SERVER_ERROR' : 'INVALID_INPUT')
}
