/**
 * Budgets: grants that hold units. Units are reserved before a call and settled after it, so that calls at the same time cannot
 * overdraw together; what a process reserved that died comes back.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import { add, check, put, remove } from '../../stores/ops.ts'
import type { Entry, Op, Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import type { Runners } from '../journal/runners.ts'
import { type Problem, problem } from '../problem.ts'
import { type Grant, grantKey, isStanding } from './grant.ts'
import type { Counting, Grants } from './grants.ts'
import { matches } from './pattern.ts'

export interface BudgetsOptions {
  readonly grants: Grants
  readonly runners: Runners
  /** Ids of reservations: not used twice. */
  readonly id: () => string
  /** Reservations of one budget at once. Default 1,000. */
  readonly reservations?: number
  /** A reservation that was not settled for so long is given up, though its process lives. Default 10 minutes. */
  readonly holdMs?: number
}

/** What a call is expected to cost. */
export interface Expected {
  readonly action: string
  readonly resource: string
  readonly units: number
  /** Ids of budgets that the caller presents. */
  readonly presented?: readonly string[]
}

export interface Reservation {
  /**
   * It has ended, and this is what it cost: also more than was reserved, since what was spent was spent. `also` is written with
   * it; false where that did not hold, and then nothing was written.
   */
  settle(units: number, also?: readonly Op[]): Promise<boolean>
}

/** What was reserved of one budget, as it lies in the store. */
interface Slip {
  readonly grant: Grant
  readonly key: string
  readonly version: number
}

const graceMs = 60_000

export class Budgets {
  readonly #store: Store
  readonly #clock: Clock
  readonly #options: Required<BudgetsOptions>

  constructor(options: BudgetsOptions) {
    this.#store = options.grants.store
    this.#clock = options.grants.clock
    this.#options = { reservations: 1_000, holdMs: 600_000, ...options }
  }

  /** Takes the units from every budget that covers the call, or refuses and takes none. Undefined where no budget does. */
  async reserve(owner: string, expected: Expected): Promise<Reservation | undefined> {
    const units = millionths(expected.units)
    const budgets = await this.#covering(owner, expected)
    if (budgets.length === 0) return undefined
    const { runners } = this.#options
    const held = runners.hold()
    try {
      if (held !== undefined) await held
      const slips = await this.#take(budgets, units)
      return this.#reservation(slips, units)
    } catch (error) {
      runners.release()
      throw error
    }
  }

  #reservation(slips: readonly Slip[], units: number): Reservation {
    let open = true
    return {
      settle: async (spent, also = []) => {
        const cost = millionths(spent)
        if (!open) throw new Error('This reservation has been settled already')
        open = false
        return this.#settle(slips, units, cost, also).finally(() => this.#options.runners.release())
      },
    }
  }

  /** Units that are neither spent nor reserved; undefined where there is no such budget. */
  async left(owner: string, id: string): Promise<number | undefined> {
    const grant = await this.#options.grants.find(owner, id)
    return grant?.units === undefined ? undefined : this.#left(grant)
  }

  async #left(grant: Grant): Promise<number> {
    const gone = Number((await this.#store.get(unitsKey(grant)))?.value ?? 0)
    return Math.max(0, millionths(grant.units ?? 0) - gone) / MILLION
  }

  async #covering(owner: string, { action, resource, presented = [] }: Expected): Promise<readonly Counting[]> {
    return (await this.#options.grants.counting(owner, presented)).filter(
      ({ grant }) => grant.effect === 'budget' && matches(grant.action, action) && matches(grant.resource, resource),
    )
  }

  async #take(budgets: readonly Counting[], units: number): Promise<readonly Slip[]> {
    const id = this.#options.id()
    const reaped = new Set<string>()
    for (;;) {
      const steps = budgets.map(budget => this.#reserving(budget, id, units))
      const outcome = await this.#store.commit(steps.flat())
      if (outcome.ok) {
        const perBudget = outcome.results.length / budgets.length
        return budgets.map(({ grant }, i) => ({
          grant,
          key: slipsPrefix(grant) + id,
          version: outcome.results[i * perBudget + 1]?.version ?? 0,
        }))
      }
      const perBudget = steps[0]?.length ?? 1
      const short = budgets[Math.floor(outcome.index / perBudget)]?.grant as Grant
      if (outcome.reason !== 'range' || reaped.has(short.id)) throw await this.#refusal(short, units, outcome.index % perBudget)
      // What the dead still hold may be all that is missing.
      reaped.add(short.id)
      await this.#reap(short)
    }
  }

  #reserving({ grant, version }: Counting, id: string, units: number): readonly Op[] {
    const { runners, reservations, holdMs } = this.#options
    const ttl = this.#ttl(grant)
    const slip = JSON.stringify({ units, runner: runners.id, until: this.#clock.now() + holdMs })
    return [
      check(grantKey(grant.owner, grant.id, isStanding(grant)), version),
      put(slipsPrefix(grant) + id, slip, { ifAbsent: true, ttl }),
      add(unitsKey(grant), units, { max: millionths(grant.units ?? 0), ttl }),
      add(slipCountKey(grant), 1, { max: reservations, ttl }),
    ]
  }

  async #settle(slips: readonly Slip[], reserved: number, spent: number, also: readonly Op[]): Promise<boolean> {
    const givenUp = new Set<Slip>()
    for (;;) {
      const steps = slips.map(slip =>
        givenUp.has(slip) ? [this.#charge(slip.grant, spent)] : this.#returning(slip, spent - reserved),
      )
      const outcome = await this.#store.commit([...steps.flat(), ...also])
      // Others took this process for dead, and what it had reserved is back: all of what was spent is missing there.
      const lost = outcome.ok ? undefined : slips.find((_, i) => steps.slice(0, i).flat().length === outcome.index)
      if (lost === undefined || givenUp.has(lost)) return outcome.ok
      givenUp.add(lost)
    }
  }

  /** Gives back what the dead had reserved, and what was never settled. Whoever does it first has done it. */
  async #reap(grant: Grant): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(slipsPrefix(grant), after === undefined ? {} : { after })
      for (const entry of page) await this.#reapSlip(grant, entry)
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }

  async #reapSlip(grant: Grant, { key, value, version }: Entry): Promise<void> {
    const { units, runner, until } = readSlip(value)
    if (until > this.#clock.now() && (await this.#options.runners.isAlive(runner))) return
    await this.#store.commit(this.#returning({ grant, key, version }, -units))
  }

  #returning({ grant, key, version }: Slip, units: number): readonly Op[] {
    return [remove(key, version), this.#charge(grant, units), add(slipCountKey(grant), -1, { ttl: this.#ttl(grant) })]
  }

  #charge(grant: Grant, units: number): Op {
    return add(unitsKey(grant), units, { ttl: this.#ttl(grant) })
  }

  /** Outlives the grant a little: clocks of processes and stores differ. */
  #ttl(grant: Grant): number {
    return Math.max(0, grant.expires - this.#clock.now()) + graceMs
  }

  async #refusal(grant: Grant, units: number, step: number): Promise<Problem> {
    const left = await this.#left(grant)
    if (step === 0) return problem('BUDGET_EXCEEDED', 'The budget for this was taken back just now')
    if (step > 2)
      return problem('SERVER_UNAVAILABLE', `${this.#options.reservations} calls are being paid from one budget at once`, {
        retryAfter: 1000,
      })
    return problem('BUDGET_EXCEEDED', `This takes ${units / MILLION} units, and ${left} are left`, {
      suggestion: 'Do less, or ask for a larger budget',
      details: { units: units / MILLION, left },
      actor: 'user',
    })
  }
}

/** Stores count in whole numbers, costs come in fractions. */
const MILLION = 1_000_000

function millionths(units: number): number {
  const count = Math.round(units * MILLION)
  if (Number.isSafeInteger(count) && count >= 0) return count
  throw new RangeError(`${units} is no number of units: give one from 0 to ${Number.MAX_SAFE_INTEGER / MILLION}`)
}

function unitsKey(grant: Grant): string {
  return `budget/${grant.owner}/${grant.id}/units`
}

function slipCountKey(grant: Grant): string {
  return `budget/${grant.owner}/${grant.id}/count`
}

function slipsPrefix(grant: Grant): string {
  return `budget/${grant.owner}/${grant.id}/slip/`
}

function readSlip(text: string): { readonly units: number; readonly runner: string; readonly until: number } {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value.units === 'number' && typeof value.runner === 'string' && typeof value.until === 'number')
    return { units: value.units, runner: value.runner, until: value.until }
  throw new Error('A reservation cannot be read: was it written by another program?')
}
