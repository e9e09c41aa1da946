/**
 * Handles that are good for a number of uses, counted on a store: whoever comes with one that is used up is told so, in every
 * process. What is remembered of a handle outlives it a little and is then forgotten, so it never grows beyond what is valid.
 */
import { add, type Op, type Store } from '../stores/store.ts'
import type { Clock } from './clock.ts'
import type { Opened } from './handle.ts'

/** Clocks of processes and stores differ; a mark that ended before its handle would let the handle be used again. */
const graceMs = 60_000

interface SpendingOptions {
  readonly store: Store
  readonly clock: Clock
}

export class Spending {
  readonly #store: Store
  readonly #clock: Clock

  constructor(options: SpendingOptions) {
    this.#store = options.store
    this.#clock = options.clock
  }

  /** Counts one use. False where it was used up already, or has ended. `also` is written with it, or nothing is. */
  async spend(handle: Opened, uses = 1, also: readonly Op[] = []): Promise<boolean> {
    if (handle.expiresAt <= this.#clock.now()) return false
    return (await this.#store.commit([this.spending(handle, uses), ...also])).ok
  }

  /** The step that counts one use, for a commit of other things; the commit fails where none is left. */
  spending(handle: Opened, uses = 1): Op {
    const ttl = Math.max(0, handle.expiresAt - this.#clock.now()) + graceMs
    return add(spentKey(handle), 1, { max: uses, ttl })
  }

  async isSpent(handle: Opened, uses = 1): Promise<boolean> {
    const entry = await this.#store.get(spentKey(handle))
    return entry !== undefined && Number(entry.value) >= uses
  }
}

function spentKey(handle: Opened): string {
  return `spent/${handle.id}`
}
