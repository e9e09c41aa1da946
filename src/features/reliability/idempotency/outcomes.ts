/** The form in which outcomes of keyed calls are stored and replayed. Loaded with the first key. */
import type { Operation } from '../../../core/journal/operation.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type CallToolResult, type FailedResult, failureProblem, wrappedOutput } from '../../mcp/tools/messages.ts'
import { fromWire, problemExtension, problemPort, toWire, type WireProblem } from '../problem/messages.ts'
import { idempotencyExtension } from './messages.ts'
import type { IdempotencyParts } from './server.ts'

/** A stored outcome, as JSON; exactly one of `result`, `failure` and `lost` is set. */
interface Outcome {
  readonly result?: CallToolResult
  /** The problem behind a failed result. */
  readonly problem?: WireProblem
  /** The value's schema must be wrapped on older wires. */
  readonly wraps?: boolean
  /** The revision whose task the result names; other revisions cannot read it. */
  readonly task?: string
  /** The handler failed with a protocol error. */
  readonly failure?: { readonly kind: string; readonly message: string; readonly data?: unknown; readonly code?: number }
  /** The length of a result that was too long to store. */
  readonly lost?: number
}

type MarkedFailure = FailedResult & { readonly [wrappedOutput]?: boolean }

/** The outcome of an ended call, as it is stored. */
export interface RememberedOutcome {
  readonly status: 'done' | 'failed'
  readonly outcome: Outcome
  /** A shorter lifetime, for tasks. */
  readonly ttlMs?: number | undefined
}

/** Converts a result for storage. */
export function rememberResult(exchange: Exchange, result: MarkedFailure, longest: number): RememberedOutcome {
  try {
    return storedResult(exchange, result, longest)
  } catch {
    // The response fails for the same reason, and reports it.
    return rememberFailure(new McpError('internal', 'The result cannot be serialised as JSON'))
  }
}

/** Throws if the result is not JSON. */
function storedResult(exchange: Exchange, result: MarkedFailure, longest: number): RememberedOutcome {
  // The problem is stored separately, because its form depends on the client.
  const { [problemExtension]: _, ...meta } = result._meta ?? {}
  const { _meta, ...rest } = result
  const plain: CallToolResult = Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }
  const { length } = JSON.stringify(plain)
  const status = result.isError === true ? 'failed' : 'done'
  if (length > longest) return { status, outcome: { lost: length } }
  const why = result[failureProblem]
  const task = taskIn(result)
  return {
    status,
    ttlMs: task?.ttlMs,
    outcome: {
      result: plain,
      ...(why && { problem: toWire(why, exchange.correlated) }),
      ...(result[wrappedOutput] === true && { wraps: true }),
      ...(task && { task: exchange.peer.revision.id }),
    },
  }
}

/** Converts a protocol error for storage. */
export function rememberFailure({ kind, message, data, code }: McpError): RememberedOutcome {
  const more = { ...(isJson(data) ? { data } : {}), ...(code === undefined ? {} : { code }) }
  return { status: 'failed', outcome: { failure: { kind, message, ...more } } }
}

/** Answers a repeated call: returns the same result, or throws the same error. */
export function giveAgain({ port }: IdempotencyParts, exchange: Exchange, key: string, operation: Operation): CallToolResult {
  const { result, failure, lost, task, ...more } = operation.outcome as Outcome
  if (failure !== undefined) throw new McpError(failure.kind, failure.message, failure)
  if (result === undefined) throw tooLong(key, lost ?? 0)
  if (task !== undefined && task !== exchange.peer.revision.id) throw elsewhere(key, task)
  const why = more.problem === undefined ? undefined : fromWire(more.problem)
  const meta = why && port(problemPort).meta(exchange, why)
  const again: MarkedFailure = {
    ...result,
    ...(meta && { _meta: { ...result._meta, ...meta } }),
    ...(why && { [failureProblem]: why }),
    ...(more.wraps === true && { [wrappedOutput]: true }),
  }
  return withKeyMeta(exchange, key, again, operation, true)
}

/** Adds the key to the result, for clients that declared the extension. */
export function withKeyMeta<R extends CallToolResult>(
  { peer }: Exchange,
  key: string,
  result: R,
  { endedAt, startedAt, ttlMs }: Operation,
  replay: boolean,
  shortened = false,
): R {
  if (declaredSettings(peer, idempotencyExtension) === undefined) return result
  const stamp = {
    idempotency_key: key,
    was_replay: replay,
    original_timestamp: new Date(endedAt ?? startedAt).toISOString(),
    // How long the key is kept, if that is shorter than requested.
    ...(shortened && { idempotency_ttl_seconds: Math.floor(ttlMs / 1_000) }),
  }
  return { ...result, _meta: { ...result._meta, [idempotencyExtension]: stamp } }
}

/** The task in a result, in either of two wire forms, with its lifetime. */
function taskIn(result: object): { readonly ttlMs: number | undefined } | undefined {
  if (!isRecord(result) || result['content'] !== undefined) return undefined
  const task = result['resultType'] === 'task' ? result : result['task']
  if (!isRecord(task)) return undefined
  const ttl = task['ttlMs'] ?? task['ttl']
  return { ttlMs: typeof ttl === 'number' ? ttl : undefined }
}

// Error data of handlers may contain anything.
function isJson(data: unknown): boolean {
  try {
    return data !== undefined && JSON.stringify(data) !== undefined
  } catch {
    return false
  }
}

function tooLong(key: string, length: number): Problem {
  return problem('PAYLOAD_TOO_LARGE', `The call was executed, but its result of ${length} characters was too long to be stored`, {
    category: 'permanent',
    suggestion: 'Do not repeat the call. Read what it changed with another tool',
    details: { idempotency_key: key },
  })
}

function elsewhere(key: string, revision: string): Problem {
  return problem(
    'IDEMPOTENCY_CONFLICT',
    `The task with this idempotency key was started at revision ${revision} and is visible only at that revision`,
    {
      suggestion: `Request it at revision ${revision}`,
      details: { idempotency_key: key },
    },
  )
}
