/**
 * Events that wait for a slow reader. One with a merge key replaces the one that waits under the same key, so that
 * progress does not pile up; it moves to the end, so that event ids keep rising.
 */
import { byteLength } from './event.ts'

interface Item {
  readonly text: string
  readonly bytes: number
}

export class EventQueue {
  /** Bytes that wait. */
  bytes = 0
  readonly #items = new Map<string | number, Item>()
  #next = 0

  get size(): number {
    return this.#items.size
  }

  add(text: string, merge: string | undefined): void {
    const key = merge ?? this.#next++
    this.#remove(key)
    const item = { text, bytes: byteLength(text) }
    this.#items.set(key, item)
    this.bytes += item.bytes
  }

  /** Takes the oldest one out. */
  shift(): string | undefined {
    for (const [key, { text }] of this.#items) {
      this.#remove(key)
      return text
    }
    return undefined
  }

  #remove(key: string | number): void {
    this.bytes -= this.#items.get(key)?.bytes ?? 0
    this.#items.delete(key)
  }
}
