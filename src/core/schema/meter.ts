/** A budget for checking one value against a foreign schema. Counted in steps, so that it is the same on every machine. */

/** What entering a subschema costs, worked out from the subschema beforehand. */
export interface Step {
  readonly weight: number
  /** Its rules go through a whole text. */
  readonly text: boolean
  /** Its rules go through all members of an object, whatever they are. */
  readonly members: boolean
}

export class OverBudget extends Error {
  override readonly name = 'OverBudget'
}

export class Meter {
  #left = 0

  get left(): number {
    return this.#left
  }

  reset(steps: number): void {
    this.#left = steps
  }

  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new OverBudget('The budget for checking this value is used up')
  }

  /** Returns true, as a rule that always holds. */
  spendStep({ weight, text, members }: Step, data: unknown): true {
    let steps = weight
    if (typeof data === 'string') steps += text ? data.length >> 4 : 0
    else if (Array.isArray(data)) steps += data.length >> 3
    else if (members && typeof data === 'object' && data !== null) steps += Object.keys(data).length * 2
    this.spend(steps)
    return true
  }

  /** Writing something as text and looking it up. */
  spendText(length: number): void {
    this.spend(8 + (length >> 2))
  }
}
