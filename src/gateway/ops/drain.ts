/** An end in good order: nothing new is taken, what is under way may end, and what does not in time is told so while that can be told. */
import type { Clock } from '../../core/clock.ts'
import type { Listening } from '../../transports/http/listening.ts'
import type { Upstreams } from '../upstreams/upstreams.ts'

/** How long an answer that says that its call was cut may take to get out. */
export const tellMs = 1_000
const lookMs = 25

interface DrainParts {
  readonly upstreams: Pick<Upstreams, 'busy' | 'close'>
  readonly clock: Clock
  readonly drainMs: number
}

/** Resolves when nobody waits for anything any more. `listening`: all that take requests. */
export async function drained(parts: DrainParts, listening: Iterable<Listening>): Promise<void> {
  const { upstreams, clock, drainMs } = parts
  const closing = Promise.all([...listening].map(each => each.close()))
  for (let waitedMs = 0; waitedMs < drainMs && upstreams.busy; waitedMs += lookMs)
    await new Promise<void>(resolve => clock.setTimeout(resolve, lookMs))
  // Calls whose server goes are answered: that it is not known what came of them.
  if (upstreams.busy) await upstreams.close()
  await closing
}
