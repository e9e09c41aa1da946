/** Telling problems: to peers that declared the extension as an object, to all others in words and numbers. */

import { Problem, problemText, refusalIn } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { failureOf } from '../../../engine/outcome.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'
import { problemOfFailure } from './failures.ts'
import { problemErrors, problemExtension, problemPort, toWire } from './messages.ts'

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
