/**
 * Deliveries of the listen binding as their host keeps track of them: each is worked on once, however often it comes, its answer is
 * given again where the first one was lost, and the cursor passes only what needs no more care.
 */
import type { WireAnswer, WireDelivery } from './messages.ts'

/** `work`: it is new. `wait`: it is being worked on. Else the answer that it had. */
type Taken = 'work' | 'wait' | WireAnswer

interface Open {
  readonly cursor: string
  done: boolean
}

/** Answers that are kept in case their delivery comes again. */
const mostKept = 1_024

/** Messages that a server delivers on a listen request. */
export class Deliveries {
  /** In the order in which they came. */
  readonly #open = new Map<string, Open>()
  readonly #answers = new Map<string, WireAnswer | undefined>()
  readonly #most: number
  #cursor: string | undefined = undefined

  /** `most`: how many may be worked on at once; those beyond come again later. */
  constructor(most = 1_000) {
    this.#most = most
  }

  /** All up to here was answered or, if it wants no answer, heard. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  /** A stream has begun here. Where nothing comes again, nothing before it needs care. */
  begin(cursor: string, redelivers: number): void {
    if (redelivers === 0 && this.#open.size === 0) this.#cursor ??= cursor
  }

  take({ deliveryId, cursor, answer }: WireDelivery): Taken {
    const known = this.#answers.get(deliveryId)
    if (known !== undefined) return known
    if (this.#open.has(deliveryId) || this.#answers.has(deliveryId)) return 'wait'
    if (this.#open.size >= this.#most) return 'wait'
    this.#open.set(deliveryId, { cursor, done: false })
    if (!answer) this.#keep(deliveryId, undefined)
    return 'work'
  }

  /** It has its answer, which the server may not have yet. */
  answered(answer: WireAnswer): void {
    this.#keep(answer.deliveryId, answer)
  }

  /** Nothing more is to be done about it. */
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
    if (this.#answers.size > mostKept) this.#answers.delete(this.#answers.keys().next().value as string)
  }
}
