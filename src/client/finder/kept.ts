/** Answers that are good for a while: asked for once, however many want them. What failed is asked for again. */
import type { Clock } from '../../core/clock.ts'

interface Entry<T> {
  readonly answer: Promise<T>
  readonly expires: number
}

export class Kept<T> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #clock: Clock
  readonly #ttlMs: number
  readonly #max: number

  constructor(clock: Clock, ttlMs: number, max = 256) {
    this.#clock = clock
    this.#ttlMs = ttlMs
    this.#max = max
  }

  get(key: string, make: () => Promise<T>): Promise<T> {
    const found = this.#entries.get(key)
    if (found !== undefined && found.expires > this.#clock.now()) return found.answer
    this.#entries.delete(key)
    if (this.#entries.size >= this.#max) this.#entries.delete(this.#entries.keys().next().value as string)
    const entry = { answer: make(), expires: this.#clock.now() + this.#ttlMs }
    this.#entries.set(key, entry)
    entry.answer.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    })
    return entry.answer
  }
}
