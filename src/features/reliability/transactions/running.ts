/** The steps that run in this process, so that a rollback can tell them to stop, and wait until they have. */
import type { Exchange } from '../../../engine/exchange.ts'

export interface RunningStep {
  readonly exchange: Exchange
  /** Resolves when its handler has ended and its record is written. */
  readonly over: Promise<void>
  /** Its record says already that nobody knows how it ends: nobody else notices when it does. */
  unseen: boolean
  /** It was waited for as long as one can. */
  waited: boolean
}

export class Running {
  readonly #steps = new Map<string, RunningStep>()

  /** Gives what to call when the step has been settled; `lingers`: what its handler still does after that, which counts as running. */
  add(place: string, exchange: Exchange): (lingers?: PromiseLike<unknown>) => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    const step: RunningStep = { exchange, over: promise, unseen: false, waited: false }
    this.#steps.set(place, step)
    const over = (): void => {
      if (this.#steps.get(place) === step) this.#steps.delete(place)
      resolve()
    }
    return lingers => {
      step.unseen = lingers !== undefined
      if (lingers === undefined) over()
      else lingers.then(over, over)
    }
  }

  /** Undefined where it does not run here. */
  stop(place: string): RunningStep | undefined {
    const step = this.#steps.get(place)
    step?.exchange.stop('The transaction is rolled back')
    return step
  }
}
