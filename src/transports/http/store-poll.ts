/** Looking again whenever a store hints at a change, and now and then without a hint: hints may be for others, and may get lost. */
import type { Clock } from '../../core/clock.ts'
import type { Store } from '../../stores/store.ts'

interface StorePollOptions {
  readonly store: Store
  readonly clock: Clock
  readonly prefixes: readonly string[]
  readonly signal: AbortSignal
  /** True when there was something new. */
  readonly look: () => Promise<boolean>
}

const everyMs = 1_000
/** After hints that brought nothing the next one waits, longer each time: where many write, most hints are for others. */
const leastGapMs = 10
const mostGapMs = 200

/** Looks at once and then again and again, until the signal. Rejects when a look does. */
export async function pollStore({ store, clock, prefixes, signal, look }: StorePollOptions): Promise<void> {
  const watching = new AbortController()
  const end = (): void => watching.abort()
  signal.addEventListener('abort', end)
  const hints = store.watch(prefixes, watching.signal)[Symbol.asyncIterator]()
  let hint = next(hints)
  let gapMs = 0
  try {
    while (!signal.aborted) {
      gapMs = (await look()) ? 0 : Math.min(Math.max(gapMs * 2, leastGapMs), mostGapMs)
      if (!(await within(clock, signal, everyMs, hint))) continue
      hint = next(hints)
      if (gapMs > leastGapMs) await within(clock, signal, gapMs)
    }
  } finally {
    signal.removeEventListener('abort', end)
    end()
  }
}

/** Never, once there are no more. */
async function next(hints: AsyncIterator<void>): Promise<void> {
  if ((await hints.next()).done === true) await new Promise(() => {})
}

/** Whether it came in time; without it, just the time. */
function within(clock: Clock, signal: AbortSignal, ms: number, coming?: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const settle = (came: boolean): void => {
      cancel()
      signal.removeEventListener('abort', aborted)
      resolve(came)
    }
    const aborted = (): void => settle(false)
    const cancel = clock.setTimeout(() => settle(false), ms, true)
    signal.addEventListener('abort', aborted)
    coming?.then(() => settle(true), reject)
    if (signal.aborted) aborted()
  })
}
