/**
 * Waiters by the id of their request. Ids are given out in order, so most waiters sit in a slot of their own; one that outlasts a
 * whole turn makes room and goes to a map. A map alone would do, but with so much coming and going its outgrown tables keep
 * answered calls alive until the next full collection.
 */
import type { Id } from '../jsonrpc/message.ts'

interface Identified {
  readonly id: Id
}

/** A power of two. */
const slotCount = 64

export class PendingCalls<W extends Identified> {
  readonly #slots: (W | undefined)[] = new Array(slotCount).fill(undefined)
  #lasting: Map<Id, W> | undefined = undefined

  /** By the exact id, type included. */
  get(id: Id): W | undefined {
    const pending = this.#slots[slotOf(id)]
    return pending?.id === id ? pending : this.#lasting?.get(id)
  }

  add(pending: W): void {
    const slot = slotOf(pending.id)
    const before = this.#slots[slot]
    if (before !== undefined) {
      this.#lasting ??= new Map()
      this.#lasting.set(before.id, before)
    }
    this.#slots[slot] = pending
  }

  delete(id: Id): void {
    const slot = slotOf(id)
    if (this.#slots[slot]?.id === id) this.#slots[slot] = undefined
    else this.#lasting?.delete(id)
  }

  all(): W[] {
    return [...(this.#lasting?.values() ?? []), ...this.#slots.filter(pending => pending !== undefined)]
  }
}

function slotOf(id: Id): number {
  return typeof id === 'number' ? id & (slotCount - 1) : 0
}
