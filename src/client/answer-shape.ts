/** What an answer must hold for the client to give it on. */
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'

export function withArray<T>(result: unknown, method: string, member: string): T {
  if (isRecord(result) && Array.isArray(result[member])) return result as T
  throw new McpError('invalid-result', `The server answered ${method} without an array of ${member}`)
}
