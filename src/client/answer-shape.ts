/** What an answer must hold for the client to give it on. */
import type { Problem } from '../core/problem.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'

export function withArray<T>(result: unknown, method: string, member: string): T {
  if (isRecord(result) && Array.isArray(result[member])) return result as T
  throw new McpError('invalid-result', `The server answered ${method} without an array of ${member}`)
}

/** Of answers only what matters to the state. */
export interface Answered {
  readonly meta?: Params | undefined
  readonly _meta?: Params
  readonly isError?: boolean
  readonly problem?: Problem | undefined
}
