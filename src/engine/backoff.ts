/** Trying again: how long to wait before, and what is not worth it. */
import type { Clock } from '../core/clock.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'

/** What lasted this long was no failure. */
export const steadyMs = 10_000

/** Doubles with each failure in a row, up to half a minute. */
export function backoffMs(failures: number): number {
  return Math.min(100 * 2 ** Math.min(failures, 20), 30_000)
}

/** An answer is final, and so is what HTTP refuses for good; a broken line is tried again. */
export function isFinalError(error: unknown): boolean {
  if (error instanceof McpError) return error.kind !== 'timeout' && (error.status === undefined || error.status < 500)
  if (!(error instanceof ConnectionError) || error.status === undefined) return false
  return error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429
}

/** Resolves after the time, or at once when the signal aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal, background = false): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const done = (): void => {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.setTimeout(done, ms, background)
    signal.addEventListener('abort', done, { once: true })
  })
}
