/** Events that become one run: the first opens a window and gives it its inference, those within it join. */
import type { Clock } from '../../core/clock.ts'

export interface Group {
  readonly inferenceId: string
  readonly until: number
}

/** Events of one run, at most: what comes beyond opens the next window. */
const groupLimit = 100
const remembered = 10_000

export class Groups {
  readonly #clock: Clock
  readonly #open = new Map<string, Group & { count: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  join(key: string, withinMs: number, inferenceId: string): Group {
    const now = this.#clock.now()
    const open = this.#open.get(key)
    if (open !== undefined && open.until > now && open.count < groupLimit) {
      open.count++
      return open
    }
    if (this.#open.size >= remembered) this.#tidy(now)
    const group = { inferenceId, until: now + withinMs, count: 1 }
    this.#open.set(key, group)
    return group
  }

  #tidy(now: number): void {
    for (const [key, { until }] of this.#open) if (until <= now) this.#open.delete(key)
    // Nothing is lost with one that is still open: its next event begins another.
    if (this.#open.size >= remembered) this.#open.clear()
  }
}
