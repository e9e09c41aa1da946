/** Events that become one run: the first opens a window and gives it its inference, those within it join. */
import type { Clock } from '../../core/clock.ts'

/** A window that events may still join. */
interface Group {
  readonly inferenceId: string
  readonly until: number
}

/** Events of one run, at most: what comes beyond opens the next window. */
const groupLimit = 100
/** They become one turn, which is one value of the store. */
const groupBytes = 2 * 1024 * 1024
const remembered = 10_000

/** The windows that are open. */
export class Groups {
  readonly #clock: Clock
  readonly #open = new Map<string, Group & { count: number; bytes: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  join(key: string, withinMs: number, inferenceId: string, bytes: number): Group {
    const now = this.#clock.now()
    const open = this.#open.get(key)
    if (open !== undefined && open.until > now && open.count < groupLimit && open.bytes + bytes <= groupBytes) {
      open.count++
      open.bytes += bytes
      return open
    }
    if (this.#open.size >= remembered) this.#tidy(now)
    const group = { inferenceId, until: now + withinMs, count: 1, bytes }
    this.#open.set(key, group)
    return group
  }

  #tidy(now: number): void {
    for (const [key, { until }] of this.#open) if (until <= now) this.#open.delete(key)
    // Nothing is lost with one that is still open: its next event begins another.
    if (this.#open.size >= remembered) this.#open.clear()
  }
}
