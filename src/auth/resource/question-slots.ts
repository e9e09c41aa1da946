/**
 * How many tokens an issuer is asked about at once, and who has to wait. Whoever sends invented tokens fills the places of his own
 * address and waits behind himself: other addresses are asked for in turn, and tokens that were good before have places of their own.
 */
import { networkOf } from '../../core/occupancy.ts'
import { IssuerError } from './issuer.ts'

/** Questions under way at once, about tokens that nobody has seen yet: of all addresses, and of one. */
const mostQuestions = 64
const mostOfAddress = 16
/** Beside them, about tokens that were good before. */
const mostOfKnown = 64
/** Those who wait: of all addresses, and of one. */
const mostWaiting = 1_024
const mostWaitingOfAddress = 64

export interface TokenAsker {
  /** The network address of whoever sent the token. Undefined: all whose address is not known count as one. */
  readonly address?: string | undefined
  /** The token was good before. */
  readonly known: boolean
}

interface Address {
  asking: number
  readonly waiting: (() => void)[]
}

export class QuestionSlots {
  /** In the order in which they are served next. */
  readonly #addresses = new Map<string, Address>()
  #asking = 0
  #known = 0
  #waiting = 0

  /** Runs the question when there is a place for it; rejects where too many wait. */
  async ask<T>({ address, known }: TokenAsker, question: () => Promise<T>): Promise<T> {
    if (known && this.#known < mostOfKnown) {
      this.#known++
      return question().finally(() => this.#known--)
    }
    const from = networkOf(address ?? '')
    const own = this.#addresses.get(from) ?? { asking: 0, waiting: [] }
    this.#addresses.set(from, own)
    if (own.asking < mostOfAddress && this.#asking < mostQuestions) this.#take(own)
    else await this.#wait(own)
    return question().finally(() => this.#leave(from, own))
  }

  #take(own: Address): void {
    own.asking++
    this.#asking++
  }

  #wait(own: Address): Promise<void> {
    if (own.waiting.length >= mostWaitingOfAddress || this.#waiting >= mostWaiting)
      throw new IssuerError(`${own.waiting.length} tokens from this address wait to be asked about already`)
    this.#waiting++
    return new Promise(resolve => own.waiting.push(resolve))
  }

  #leave(from: string, own: Address): void {
    own.asking--
    this.#asking--
    for (const [name, next] of this.#addresses) {
      const go = next.asking < mostOfAddress ? next.waiting.shift() : undefined
      if (go === undefined) continue
      this.#waiting--
      this.#take(next)
      // Whoever was served comes after all others.
      this.#addresses.delete(name)
      this.#addresses.set(name, next)
      go()
      break
    }
    if (own.asking === 0 && own.waiting.length === 0 && this.#addresses.get(from) === own) this.#addresses.delete(from)
  }
}
