/** What came of a call, as text for another process, and back. */
import { Problem, type ProblemCode, type ProblemMore } from '../../core/problem.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { EndedCall } from './upstream-call.ts'

export type WrittenOutcome =
  | { readonly result: unknown }
  | { readonly mcp: { readonly kind: string; readonly message: string; readonly code?: number; readonly data?: unknown } }
  | { readonly connection: { readonly kind: ConnectionError['kind']; readonly message: string } }
  | { readonly problem: { readonly code: ProblemCode; readonly message: string; readonly more: ProblemMore } }
  | { readonly failed: string }

export function written(ended: EndedCall): WrittenOutcome {
  if ('result' in ended) return { result: ended.result }
  const { error } = ended
  if (error instanceof McpError) {
    const { kind, message, code, data } = error
    return { mcp: { kind, message, ...(code !== undefined && { code }), ...(data !== undefined && { data }) } }
  }
  if (error instanceof ConnectionError) return { connection: { kind: error.kind, message: error.message } }
  if (error instanceof Problem) {
    const { code, message, category, retryAfter, suggestion, actor, details } = error
    return { problem: { code, message, more: { category, retryAfter, suggestion, actor, details } } }
  }
  return { failed: error instanceof Error ? error.message : String(error) }
}

/** Gives the result, or throws what was thrown. */
export function readWrittenOutcome(ended: WrittenOutcome): unknown {
  if ('result' in ended) return ended.result
  if ('mcp' in ended) {
    const { kind, message, ...more } = ended.mcp
    throw new McpError(kind, message, more)
  }
  if ('connection' in ended) throw new ConnectionError(ended.connection.kind, ended.connection.message)
  if ('problem' in ended) throw new Problem(ended.problem.code, ended.problem.message, ended.problem.more)
  throw new Error(ended.failed)
}
