/** How an operation ended, as JSON: whoever comes back for it gets the same result, or the same failure. */
import { McpError } from '../../../jsonrpc/error.ts'
import { type CallToolResult, wraps } from '../../mcp/tools/messages.ts'

export interface EndedOperation {
  readonly status: 'done' | 'failed'
  readonly result?: CallToolResult
  /** The value is of a schema that older wires wrap. */
  readonly wraps?: true
  readonly failure?: { readonly kind: string; readonly message: string; readonly code?: number }
}

type Marked = CallToolResult & { readonly [wraps]?: boolean }

export function endedWith(result: Marked): EndedOperation {
  const status = result.isError === true ? 'failed' : 'done'
  // Not what writes itself: only what can be read again.
  const { content, structuredContent, isError, _meta } = result
  const plain: CallToolResult = {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  }
  return { status, result: plain, ...(result[wraps] === true ? { wraps: true } : {}) }
}

export function failedWith(error: unknown): EndedOperation {
  const { kind, message, code } = error instanceof McpError ? error : new McpError('internal', 'It failed')
  return { status: 'failed', failure: { kind, message, ...(code === undefined ? {} : { code }) } }
}

export function give(ended: EndedOperation): CallToolResult {
  const { result, failure } = ended
  if (result !== undefined) return ended.wraps === true ? Object.assign({ ...result }, { [wraps]: true }) : result
  throw new McpError(failure?.kind ?? 'internal', failure?.message ?? 'It failed', failure ?? {})
}
