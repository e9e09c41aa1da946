/**
 * Tracks deliveries of the listen binding on the host's side: each is processed once however often it arrives, a lost answer is
 * repeated, and the cursor advances only past completed deliveries.
 */
import type { WireAnswer, WireDelivery } from './messages.ts'

/** `work`: new. `wait`: being processed. Otherwise the known answer. */
type EventStatus = 'work' | 'wait' | WireAnswer

interface Open {
  readonly cursor: string
  done: boolean
}

/** Limit of answers kept for repeated deliveries. */
const mostStored = 1_024

/** The deliveries of one server. */
export class Deliveries {
  /** In the order of arrival. */
  readonly #open = new Map<string, Open>()
  // Undefined as value: the delivery needs no answer.
  readonly #answers = new Map<string, WireAnswer | undefined>()
  readonly #most: number
  #cursor: string | undefined = undefined

  /** `most`: how many may be processed at once; further ones are ignored and come again. */
  constructor(most = 1_000) {
    this.#most = most
  }

  /** Everything up to here is completed. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  /** A stream starts here. If nothing is redelivered, everything before is completed. */
  begin(cursor: string, redelivers: number): void {
    if (redelivers === 0 && this.#open.size === 0) this.#cursor ??= cursor
  }

  /** Decides what to do with a delivery. */
  take({ deliveryId, cursor, answer }: WireDelivery): EventStatus {
    const known = this.#answers.get(deliveryId)
    if (known !== undefined) return known
    if (this.#open.has(deliveryId) || this.#answers.has(deliveryId)) return 'wait'
    if (this.#open.size >= this.#most) return 'wait'
    this.#open.set(deliveryId, { cursor, done: false })
    if (!answer) this.#keep(deliveryId, undefined)
    return 'work'
  }

  /** Stores the answer, which the server may not have received yet. */
  answered(answer: WireAnswer): void {
    this.#keep(answer.deliveryId, answer)
  }

  /** Completes a delivery; the cursor moves past all completed ones at the front. */
  done(deliveryId: string): void {
    const one = this.#open.get(deliveryId)
    if (one === undefined) return
    one.done = true
    for (const [id, { cursor, done }] of this.#open) {
      if (!done) return
      this.#open.delete(id)
      this.#cursor = cursor
    }
  }

  #keep(deliveryId: string, answer: WireAnswer | undefined): void {
    this.#answers.set(deliveryId, answer)
    if (this.#answers.size > mostStored) this.#answers.delete(this.#answers.keys().next().value as string)
  }
}
