/** A wait that ends: by its work, by its time, or by somebody who gives up. What comes later is no matter. */

import type { Clock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'

/** Why a wait was given up when its time was over. */
export class DeadlineExceeded extends Error {
  override readonly name = 'TimeIsUp'
}

/**
 * Runs `work` with a signal that aborts after `ms`, or with the given one. Rejects with `TimeIsUp` in the first case. `graceMs`: how
 * long work that was told to stop may take to do so; what it does until then has happened before this rejects.
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  graceMs = 0,
): Promise<T> {
  const over = new AbortController()
  const cancel = clock.setTimeout(() => over.abort(new DeadlineExceeded(`It took longer than ${ms} ms`)), ms, true)
  const either = AbortSignal.any([signal, over.signal])
  const working = work(either)
  try {
    return await unlessAborted(working, either)
  } catch (error) {
    if (either.aborted && graceMs > 0) await settled(clock, working, graceMs)
    throw error
  } finally {
    cancel()
  }
}

function settled(clock: Clock, working: Promise<unknown>, ms: number): Promise<void> {
  return new Promise(resolve => {
    const cancel = clock.setTimeout(resolve, ms, true)
    const done = (): void => {
      cancel()
      resolve()
    }
    working.then(done, done)
  })
}
