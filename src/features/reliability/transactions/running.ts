/** The steps that run in this process, so that a rollback can tell them to stop, and wait until they have. */
import type { Exchange } from '../../../engine/exchange.ts'

interface Step {
  readonly exchange: Exchange
  readonly over: Promise<void>
}

export class Running {
  readonly #steps = new Map<string, Step>()

  /** Gives what to call when the step has been settled; what its handler still does after that counts as running. */
  add(place: string, exchange: Exchange): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#steps.set(place, { exchange, over: promise })
    const over = (): void => {
      this.#steps.delete(place)
      resolve()
    }
    return () => {
      if (exchange.lingers === undefined) over()
      else exchange.lingers.then(over, over)
    }
  }

  /** Resolves when the step is over; undefined where it does not run here. */
  stop(place: string): Promise<void> | undefined {
    const step = this.#steps.get(place)
    step?.exchange.stop('The transaction is rolled back')
    return step?.over
  }
}
