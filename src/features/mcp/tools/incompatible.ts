/** Servers whose answers have another shape than the protocol's: what is told of them, and what would help. */
import { type Problem, problem } from '../../../core/problem.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'

const suggestion = "If it follows davioe/mcp-extension-proposals, give connect the option profile: 'davioe'"

/** Whoever knows no handshake is no server of the protocol, at least not whole. */
export function incompatibleHandshake(error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== -32601) return error
  return problem('UNSUPPORTED', 'The server does not know initialize, so that no conversation can be opened with it', {
    cause: error,
    actor: 'operator',
    suggestion,
  })
}

/** Whether an entry of a list of tools is one of a manifest. */
export function isIncompatibleTool(tool: unknown): boolean {
  return isRecord(tool) && isRecord(tool['input_schema']) && !('inputSchema' in tool)
}

export function incompatibleTools(): Problem {
  return problem('UNSUPPORTED', 'The server lists its tools with input_schema, where the protocol has inputSchema', {
    actor: 'operator',
    suggestion,
  })
}

/** A result without content; undefined where it looks like nothing that we know. */
export function incompatibleResult(result: unknown): Problem | undefined {
  if (!isRecord(result) || !['result', 'error', 'requires_confirmation', 'session_state'].some(name => name in result))
    return undefined
  return problem('UNSUPPORTED', 'The server answered tools/call without content, in the shape of another implementation', {
    actor: 'operator',
    suggestion,
  })
}
