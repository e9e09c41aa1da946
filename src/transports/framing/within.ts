/** Waiting with a deadline. */
import type { Cancel, Clock } from '../../core/clock.ts'

/** True if the promise settled in time. */
export async function within(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  let cancel: Cancel | undefined
  const late = new Promise<boolean>(done => {
    cancel = clock.setTimeout(() => done(false), ms)
  })
  const settled = promise.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    cancel?.()
  }
}
