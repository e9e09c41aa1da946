/** What is remembered of a call that has ended, and how a repetition gets it. */

import type { Operation } from '../../../core/journal/operation.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { because, type CallToolResult, type FailedResult, wraps } from '../../mcp/tools/messages.ts'
import { fromWire, problemExtension, toWire, type WireProblem } from '../problem/messages.ts'
import { idempotencyExtension, type WireReplay } from './messages.ts'

/** Members of a result's `_meta` that tell a peer of a problem. */
export type ProblemMeta = (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined

/** JSON. One of `result`, `failure` and `lost` is there. */
interface Outcome {
  readonly result?: CallToolResult
  /** Why the result is a failure. */
  readonly problem?: WireProblem
  /** The value is of a schema that older wires wrap. */
  readonly wraps?: boolean
  /** The result names a task, which only this wire knows. */
  readonly task?: string
  /** The call was refused by a protocol failure of its handler. */
  readonly failure?: { readonly kind: string; readonly message: string; readonly data?: unknown; readonly code?: number }
  /** The result was longer than what is kept. */
  readonly lost?: number
}

type Marked = FailedResult & { readonly [wraps]?: boolean }

export interface RememberedOutcome {
  readonly status: 'done' | 'failed'
  readonly outcome: Outcome
  /** How long at most. */
  readonly ttlMs?: number | undefined
}

/** What to remember of a result. Throws where JSON cannot hold it. */
export function rememberResult(exchange: Exchange, result: Marked, longest: number): RememberedOutcome {
  const { [problemExtension]: _, ...meta } = result._meta ?? {}
  const { _meta, ...rest } = result
  const plain: CallToolResult = Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }
  const { length } = JSON.stringify(plain)
  const status = result.isError === true ? 'failed' : 'done'
  if (length > longest) return { status, outcome: { lost: length } }
  const why = result[because]
  const task = taskIn(result)
  return {
    status,
    ttlMs: task?.ttlMs,
    outcome: {
      result: plain,
      ...(why === undefined ? {} : { problem: toWire(why, exchange.correlated) }),
      ...(result[wraps] === true ? { wraps: true } : {}),
      ...(task === undefined ? {} : { task: exchange.peer.revision.id }),
    },
  }
}

export function rememberFailure({ kind, message, data, code }: McpError): RememberedOutcome {
  const more = { ...(isJson(data) ? { data } : {}), ...(code === undefined ? {} : { code }) }
  return { status: 'failed', outcome: { failure: { kind, message, ...more } } }
}

/** The answer to a repetition: the same result, or the same failure thrown. */
export function giveAgain(exchange: Exchange, key: string, operation: Operation, problemMeta: ProblemMeta): CallToolResult {
  const { result, failure, lost, task, ...more } = operation.outcome as Outcome
  if (failure !== undefined) throw new McpError(failure.kind, failure.message, failure)
  if (result === undefined) throw tooLong(key, lost ?? 0)
  if (task !== undefined && task !== exchange.peer.revision.id) throw elsewhere(key, task)
  const why = more.problem === undefined ? undefined : fromWire(more.problem)
  const meta = why === undefined ? undefined : problemMeta(exchange, why)
  const again: Marked = {
    ...result,
    ...(meta === undefined ? {} : { _meta: { ...result._meta, ...meta } }),
    ...(why === undefined ? {} : { [because]: why }),
    ...(more.wraps === true ? { [wraps]: true } : {}),
  }
  return stamped(exchange, key, again, operation, true)
}

/** Tells of the key in the result, to peers that know what that is. */
export function stamped<R extends CallToolResult>(
  { peer }: Exchange,
  key: string,
  result: R,
  { endedAt, startedAt, ttlMs }: Operation,
  replay: boolean,
  shortened = false,
): R {
  if (declared(peer, idempotencyExtension) === undefined) return result
  const original = new Date(endedAt ?? startedAt).toISOString()
  const stamp: WireReplay = {
    idempotency_key: key,
    was_replay: replay,
    original_timestamp: original,
    ...(shortened ? { idempotency_ttl_seconds: Math.floor(ttlMs / 1_000) } : {}),
  }
  return { ...result, _meta: { ...result._meta, [idempotencyExtension]: stamp } }
}

/** A call that became a task is answered with the task, in one of two forms; the task is kept for so long. */
function taskIn(result: object): { readonly ttlMs: number | undefined } | undefined {
  if (!isRecord(result) || result['content'] !== undefined) return undefined
  const task = result['resultType'] === 'task' ? result : result['task']
  if (!isRecord(task)) return undefined
  const ttl = task['ttlMs'] ?? task['ttl']
  return { ttlMs: typeof ttl === 'number' ? ttl : undefined }
}

function isJson(data: unknown): boolean {
  try {
    return data !== undefined && JSON.stringify(data) !== undefined
  } catch {
    return false
  }
}

function tooLong(key: string, length: number): Problem {
  return problem('PAYLOAD_TOO_LARGE', `It was done, but its result of ${length} characters was too long to be kept`, {
    category: 'permanent',
    suggestion: 'Read what it changed by another tool; do not do it again',
    details: { idempotency_key: key },
  })
}

function elsewhere(key: string, revision: string): Problem {
  return problem('IDEMPOTENCY_CONFLICT', `Under this key a task was begun at revision ${revision}, where alone it can be seen`, {
    suggestion: `Ask for it at revision ${revision}`,
    details: { idempotency_key: key },
  })
}
