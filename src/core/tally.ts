/** Counts by key. A key that counts nothing is forgotten, so that the table holds only who is there. */
export class Tally<K> {
  readonly #counts = new Map<K, number>()

  of(key: K): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: K, by: number): void {
    const count = this.of(key) + by
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  /** How many keys count something. */
  get size(): number {
    return this.#counts.size
  }
}
