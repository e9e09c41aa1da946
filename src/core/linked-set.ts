/**
 * Things that come and go by the thousand, such as calls under way. A Set would do, but for one thing: its outgrown tables
 * keep what has long gone alive until the next full collection, which makes every collection dear. This leaves nothing behind.
 */

export interface Linked {
  /** Where it is in its bag; −1 outside. It can be in one only. */
  place: number
}

export class LinkedSet<T extends Linked> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    item.place = this.#items.push(item) - 1
  }

  /** The last one takes its place. False if it was not there. */
  delete(item: T): boolean {
    const { place } = item
    if (place === -1) return false
    const last = this.#items.pop()
    if (last !== undefined && last !== item) {
      this.#items[place] = last
      last.place = place
    }
    item.place = -1
    return true
  }

  /** All that are in it now, in no order; what comes or goes meanwhile changes nothing about that. */
  all(): T[] {
    return this.#items.slice()
  }
}
