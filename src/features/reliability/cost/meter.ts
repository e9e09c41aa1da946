/** What one call costs, while it runs: what was expected, what its handler says it spent, and how much it may. */
import type { Reservation } from '../../../core/grant/budgets.ts'
import type { QuotaStatus } from '../../../core/grant/quota.ts'
import { problem } from '../../../core/problem.ts'
import { isCount } from './messages.ts'

/** The author's view of it. */
export interface CallCost {
  /** What it was expected to cost; undefined where nobody knew. */
  readonly estimate: number | undefined
  /** What it has cost by now, as far as its handler has said. */
  readonly spent: number
  /** What the caller still allows; undefined where it set no bound. */
  readonly left: number | undefined
  /**
   * So many units were spent. Once said, the call costs what was added, and not what was expected. Throws where that is more
   * than the caller allows: it is counted all the same, but there is no sense in going on.
   */
  add(units: number): void
}

export class CostMeter implements CallCost {
  readonly estimate: number | undefined
  readonly most: number | undefined
  readonly reservation: Reservation | undefined
  /** What earlier rounds of the same call have cost, and paid. */
  readonly before: number
  /** In this round; undefined until something is added. */
  added: number | undefined = undefined
  /** Set when it is over. */
  used: number | undefined = undefined
  durationMs = 0
  quota: QuotaStatus | undefined = undefined

  constructor(facts: Pick<CostMeter, 'estimate' | 'most' | 'reservation' | 'before'>) {
    this.estimate = facts.estimate
    this.most = facts.most
    this.reservation = facts.reservation
    this.before = facts.before
  }

  get spent(): number {
    return this.before + (this.added ?? 0)
  }

  get left(): number | undefined {
    return this.most === undefined ? undefined : Math.max(0, this.most - this.spent)
  }

  add(units: number): void {
    if (!isCount(units)) throw new TypeError(`${units} is no number of units: give a finite number of at least 0`)
    this.added = (this.added ?? 0) + units
    if (this.most !== undefined && this.spent > this.most)
      throw problem('BUDGET_EXCEEDED', `${this.spent} units were spent, and the caller allows ${this.most}`, {
        suggestion: 'Do less in one call, or allow more',
        details: { units: this.spent, max_units: this.most },
        actor: 'user',
      })
  }
}
