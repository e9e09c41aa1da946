/** A budget for checking one value. Counted in steps, so that it is the same on every machine. */

export class OverBudget extends Error {
  override readonly name = 'OverBudget'
}

export class Meter {
  #left: number

  constructor(steps: number) {
    this.#left = steps
  }

  get left(): number {
    return this.#left
  }

  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new OverBudget('The budget for checking this value is used up')
  }
}
