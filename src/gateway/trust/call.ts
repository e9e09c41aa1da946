/** One call of a tool of some upstream, as what stands around it sees it. */
import type { CallToolResult } from '../../features/mcp/tools/messages.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { Context } from '../../server/context.ts'

export interface GatewayCall {
  /** The name of the server that it goes to. */
  readonly upstream: string
  /** The tool's own name there. */
  readonly tool: string
  /** The name under which clients see it. */
  readonly exposed: string
  readonly args: Params
  readonly ctx: Context
  readonly client: { readonly name?: string | undefined; readonly principal?: Principal | undefined }
  /**
   * It was begun before: its caller comes back with answers to what the upstream asked. What is done once for a call (paying for it,
   * writing it down) was done then.
   */
  readonly again: boolean
}

/** What the upstream answered, as it came. */
export type UpstreamResult = CallToolResult
