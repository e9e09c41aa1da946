/** Pauses on an injected clock, and chance that can be had again. */
import type { Clock } from '../../core/clock.ts'

/** Ends early, with the signal's reason, when it aborts. */
export function pauseFor(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
