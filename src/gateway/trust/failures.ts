/** Bare failures of servers behind the gateway, made readable for programs: a code, a category, and which server it was. */
import { Problem, type ProblemCode, problem } from '../../core/problem.ts'
import type { CallToolResult } from '../../features/mcp/tools/messages.ts'
import { fromWire, problemExtension, toWire } from '../../features/reliability/problem/messages.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

export interface CalledTool {
  readonly upstream: string
  readonly tool: string
}

const byNumber: ReadonlyMap<number, ProblemCode> = new Map<number, ProblemCode>([
  [-32700, 'INVALID_INPUT'],
  [-32600, 'INVALID_INPUT'],
  [-32602, 'INVALID_INPUT'],
  [-32601, 'UNSUPPORTED'],
  [-32002, 'RESOURCE_NOT_FOUND'],
  [-32029, 'RATE_LIMIT_EXCEEDED'],
  [429, 'RATE_LIMIT_EXCEEDED'],
])

/** The same refusal of a server, with the problem in it: what it told itself, else what its number says. */
export function categorised({ upstream, tool }: CalledTool, thrown: unknown): unknown {
  if (!(thrown instanceof McpError) || thrown.code === undefined || thrown.cause instanceof Problem) return thrown
  const { kind, message, code, data } = thrown
  const told = isRecord(data) ? fromWire(attributed({ upstream, tool }, data[problemExtension] ?? data)) : undefined
  const cause =
    told ?? problem(byNumber.get(code) ?? 'SERVER_ERROR', message, { details: { upstream, tool, code }, cause: thrown })
  return new McpError(kind, message, { code, cause, ...(data !== undefined && { data }) })
}

/** A problem that a server tells is its own, whatever it says: nobody shall take it for the gateway's. */
function attributed({ upstream, tool }: CalledTool, said: unknown): unknown {
  if (!isRecord(said)) return said
  return { ...said, details: { ...(isRecord(said['details']) && said['details']), upstream, tool } }
}

/** A result that says only that it failed also says so to programs. */
export function explained({ upstream, tool }: CalledTool, result: CallToolResult): CallToolResult {
  const said = isRecord(result._meta) ? result._meta[problemExtension] : undefined
  if (isRecord(said)) return { ...result, _meta: { ...result._meta, [problemExtension]: attributed({ upstream, tool }, said) } }
  const text = result.content?.find(block => block.type === 'text')
  const words = text?.type === 'text' ? clip(text.text, 500) : `${clip(tool)} failed`
  const told = problem('TOOL_FAILED', words, { category: 'permanent', details: { upstream, tool } })
  return { ...result, _meta: { ...result._meta, [problemExtension]: toWire(told) } }
}
