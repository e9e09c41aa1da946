/** Whether work failed because it was told to stop, which is nobody's mistake, or for a reason of its own. */
import { McpError } from '../jsonrpc/error.ts'
import type { Exchange } from './exchange.ts'

/** How many causes are followed: a chain of them may be a ring. */
const deepest = 8

/** Libraries hand on the reason they were given, wrap it, or throw an `AbortError` of their own. */
export function failedByStop(exchange: Exchange, error: unknown): boolean {
  if (!exchange.cancelled) return false
  const { reason } = exchange.signal
  let at = error
  for (let depth = 0; depth < deepest && at instanceof Error; depth++) {
    if (at === reason || at.name === 'AbortError') return true
    at = at.cause
  }
  return false
}

/** What its caller is told, where there is still somebody to hear it. It has no cause, so that logs do not take it for a mistake. */
export function stoppedFailure(): McpError {
  return new McpError('internal', 'The request was stopped before it was done')
}
