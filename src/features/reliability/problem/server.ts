/** Telling problems: to peers that declared the extension as an object, to all others in words and numbers. */
import { Problem, type ProblemCode, problem, problemOf, problemText, refusalIn } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { failureOf } from '../../../engine/outcome.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'
import { problemErrors, problemExtension, problemPort, statusCodes, toWire } from './messages.ts'

/** Problems beside the failures of calls and requests. */
export const problemFeature = defineServerFeature<object>({
  name: 'problem',
  setup: kit => {
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
  return { errors: problemErrors, capabilities: revision => declaration(revision, problemExtension) }
}

/** What the `_meta` of a failed call's result says of it; undefined for a peer that does not know problems. */
export function problemMeta({ peer, correlated }: Exchange, problem: Problem): Readonly<Record<string, unknown>> | undefined {
  return declared(peer, problemExtension) === undefined ? undefined : { [problemExtension]: toWire(problem, correlated) }
}

/**
 * The failure that a request is answered with, for what was thrown. A method of an extension fails with the problem as data;
 * any other keeps its own number and data, and has the problem beside them where the peer knows what that is.
 */
function explainFailure(exchange: Exchange, thrown: unknown): unknown {
  const refusal = exchange.route.method.extension === undefined ? undefined : refusalIn(thrown)
  // Whoever runs it has to know, whatever its caller is told.
  if (refusal !== undefined && refusal !== thrown) exchange.engine.trace('store-refused', thrown, exchange.caller)
  if (refusal !== undefined)
    return new McpError('problem', problemText(refusal), { cause: refusal, data: toWire(refusal, exchange.correlated) })
  if (declared(exchange.peer, problemExtension) === undefined) return thrown
  const failure = failureOf(thrown)
  // What only the server can see is found there by this id.
  return beside(failure, thrown, failure.kind === 'internal' ? exchange.correlation : exchange.correlated)
}

/** The same for what is refused before it has become a call: by the method table, by its envelope or parameters, by a carrier. */
function explainRefusal(peer: Peer, thrown: unknown): unknown {
  return declared(peer, problemExtension) === undefined ? thrown : beside(failureOf(thrown), thrown, undefined)
}

/** The failure with the problem beside its own data. */
function beside({ kind, message, data, code, cause }: McpError, thrown: unknown, correlation: string | undefined): McpError {
  const problem = toWire(thrown instanceof Problem ? thrown : problemOfFailure(thrown), correlation)
  return new McpError(kind, message, {
    cause,
    data: { ...(isRecord(data) ? data : data === undefined ? {} : { data }), [problemExtension]: problem },
    ...(code === undefined ? {} : { code }),
  })
}

// Every failure of the runtime as a problem: what kind of failure it is decides the code, and with it whether trying again can help.

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

/** A carrier that refuses knows no kinds: its status says whose mistake it is. */
function ofStatus(status: number | undefined): ProblemCode {
  if (status === undefined) return 'INVALID_INPUT'
  return statusCodes.get(status) ?? (status >= 500 ? 'SERVER_ERROR' : 'INVALID_INPUT')
}
