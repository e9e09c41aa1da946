/** Waiting: work in line by key (calls on the same state, changes of one lineage), and work that is waited for only for a time. */
import type { Clock } from '../core/clock.ts'

/** Runs work one after the other by key; a key is forgotten when its last work ends. */
export class KeyedQueue {
  /** The last work of each key. */
  readonly #tails = new Map<string, Promise<unknown>>()

  /** Runs when all earlier work of this key has ended, successfully or not. */
  inLine<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#tails.get(key) ?? Promise.resolve()).then(work, work)
    this.#tails.set(key, mine)
    const leave = (): void => {
      if (this.#tails.get(key) === mine) this.#tails.delete(key)
    }
    mine.then(leave, leave)
    return mine
  }
}

/** Waits for the work, but no longer than `ms`. Rejects where the work fails before. */
export function waitAtMost(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimeout(resolve, ms, true)
    work.then(resolve, reject).finally(cancel)
  })
}
