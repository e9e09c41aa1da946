/**
 * Budgets: grants that hold units. Units are reserved before a call and settled after it, so that calls at the same time cannot
 * overdraw together; what a process reserved that died comes back.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import { add, check, type Entry, type Op, put, remove, type Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import type { ProcessLeases } from '../journal/process-leases.ts'
import { type Problem, problem } from '../problem.ts'
import { matches } from '../scope.ts'
import { type Grant, grantKey, isStanding } from './grant.ts'
import type { Grants } from './grants.ts'
import { keepChargesOp, periodOf, type Quota, type QuotaStatus } from './quota.ts'

interface BudgetsOptions {
  readonly grants: Grants
  readonly runners: ProcessLeases
  /** Ids of reservations: not used twice. */
  readonly id: () => string
  /** Reservations of one budget at once. Default 1,000. */
  readonly reservations?: number
  /** A reservation that was not settled for so long is given up, though its process lives. Default 10 minutes. */
  readonly holdMs?: number
}

/** What a call is expected to cost. */
interface ExpectedCost {
  readonly action: string
  readonly resource: string
  readonly units: number
  /** Ids of budgets that the caller presents. */
  readonly presented?: readonly string[]
  /** What holds for everybody. */
  readonly quotas?: readonly Quota[]
}

interface SettleOptions {
  /** How often it was done. Default once; never, where it was not begun. */
  readonly calls?: 0 | 1
  /** Written with it; where that does not hold, nothing is. */
  readonly also?: readonly Op[]
  /** The name under which `refunding` finds it, should it be taken back. */
  readonly refundable?: string | undefined
}

/** Units that were taken from budgets for one call, until it is known what the call cost. */
export interface Reservation {
  /**
   * It has ended, and this is what it cost: also more than was reserved, since what was spent was spent. False where what
   * should be written with it did not hold: then nothing was written.
   */
  settle(units: number, options?: SettleOptions): Promise<boolean>
  /** What is now left of the quotas that it was reserved from. */
  quotas(): Promise<readonly QuotaStatus[]>
}

/** What units, or calls, are taken from: a grant by the version of its record, or the period of a quota, which has none. */
interface Allowance {
  readonly grant: Grant
  readonly version: number | undefined
  readonly quota: Quota | undefined
}

/** What was reserved of one, as it lies in the store. */
interface Slip {
  readonly allowance: Allowance
  readonly key: string
  readonly version: number
}

/** In millionths. */
interface Amounts {
  readonly units: number
  readonly calls: number
}

const graceMs = 60_000

/** The budgets of a store: reserves before a call, settles after it, and tells what is left. */
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
  async reserve(owner: string, expected: ExpectedCost): Promise<Reservation | undefined> {
    const amounts = { units: millionths(expected.units), calls: MILLION }
    const allowances = await this.#covering(owner, expected)
    if (allowances.length === 0) return undefined
    const { runners } = this.#options
    const held = runners.hold()
    try {
      if (held !== undefined) await held
      return this.#reservation(await this.#take(allowances, amounts), amounts)
    } catch (error) {
      runners.release()
      throw error
    }
  }

  #reservation(slips: readonly Slip[], reserved: Amounts): Reservation {
    let open = true
    return {
      settle: async (units, { calls = 1, also = [], refundable } = {}) => {
        const spent = { units: millionths(units), calls: millionths(calls) }
        if (!open) throw new Error('This reservation is already settled')
        open = false
        const stored = refundable === undefined ? [] : [this.#keeping(refundable, slips, spent)]
        return this.#settle(slips, reserved, spent, [...stored, ...also]).finally(() => this.#options.runners.release())
      },
      quotas: () =>
        Promise.all(
          slips.flatMap(({ allowance: { quota, grant } }) => (quota === undefined ? [] : [this.#status(quota, grant)])),
        ),
    }
  }

  async #status(quota: Quota, grant: Grant): Promise<QuotaStatus> {
    return { quota, remaining: await this.#left(grant), resetsAt: grant.expires }
  }

  #keeping(name: string, slips: readonly Slip[], spent: Amounts): Op {
    const charges = slips.map(({ allowance }) => ({
      key: unitsKey(allowance.grant),
      count: amountOf(allowance, spent),
      expires: allowance.grant.expires,
    }))
    return keepChargesOp(name, charges, this.#clock)
  }

  /** What is left of a quota in the present period. */
  quotaLeft(owner: string, quota: Quota): Promise<QuotaStatus> {
    return this.#status(quota, periodOf(quota, quota.owner ?? owner, this.#clock.now()))
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

  async #covering(owner: string, { action, resource, presented = [], quotas = [] }: ExpectedCost): Promise<readonly Allowance[]> {
    const now = this.#clock.now()
    const given = (await this.#options.grants.counting(owner, presented)).filter(
      ({ grant }) => grant.effect === 'budget' && matches(grant.action, action) && matches(grant.resource, resource),
    )
    return [
      ...given.map(({ grant, version }) => ({ grant, version, quota: undefined })),
      ...quotas.map(quota => ({ grant: periodOf(quota, quota.owner ?? owner, now), version: undefined, quota })),
    ]
  }

  async #take(allowances: readonly Allowance[], amounts: Amounts): Promise<readonly Slip[]> {
    const id = this.#options.id()
    const reaped = new Set<string>()
    for (;;) {
      const steps = allowances.map(allowance => this.#reserving(allowance, id, amountOf(allowance, amounts)))
      const outcome = await this.#store.commit(steps.flat())
      if (outcome.ok) {
        const perAllowance = outcome.results.length / allowances.length
        return allowances.map((allowance, i) => ({
          allowance,
          key: slipsPrefix(allowance.grant) + id,
          version: outcome.results[i * perAllowance + 1]?.version ?? 0,
        }))
      }
      const perAllowance = steps[0]?.length ?? 1
      const short = allowances[Math.floor(outcome.index / perAllowance)] as Allowance
      if (outcome.reason !== 'range' || reaped.has(short.grant.id))
        throw await this.#refusal(short, amountOf(short, amounts), outcome.index % perAllowance)
      // What the dead still hold may be all that is missing.
      reaped.add(short.grant.id)
      await this.#reap(short)
    }
  }

  #reserving({ grant, version }: Allowance, id: string, count: number): readonly Op[] {
    const { runners, reservations, holdMs } = this.#options
    const ttl = this.#ttl(grant)
    const slip = JSON.stringify({ units: count, runner: runners.id, until: this.#clock.now() + holdMs })
    return [
      check(grantKey(grant.owner, grant.id, isStanding(grant)), version),
      put(slipsPrefix(grant) + id, slip, { ifAbsent: true, ttl }),
      add(unitsKey(grant), count, { max: millionths(grant.units ?? 0), ttl }),
      add(slipCountKey(grant), 1, { max: reservations, ttl }),
    ]
  }

  async #settle(slips: readonly Slip[], reserved: Amounts, spent: Amounts, also: readonly Op[]): Promise<boolean> {
    const givenUp = new Set<Slip>()
    for (;;) {
      const steps = slips.map(slip => {
        const count = amountOf(slip.allowance, spent)
        return givenUp.has(slip)
          ? [this.#charge(slip.allowance.grant, count)]
          : this.#returning(slip, count - amountOf(slip.allowance, reserved))
      })
      const outcome = await this.#store.commit([...steps.flat(), ...also])
      // Others took this process for dead, and what it had reserved is back: all of what was spent is missing there.
      const lost = outcome.ok ? undefined : slips.find((_, i) => steps.slice(0, i).flat().length === outcome.index)
      if (lost === undefined || givenUp.has(lost)) return outcome.ok
      givenUp.add(lost)
    }
  }

  /** Gives back what the dead had reserved, and what was never settled. Whoever does it first has done it. */
  async #reap(allowance: Allowance): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(slipsPrefix(allowance.grant), after === undefined ? {} : { after })
      for (const entry of page) await this.#reapSlip(allowance, entry)
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }

  async #reapSlip(allowance: Allowance, { key, value, version }: Entry): Promise<void> {
    const { units, runner, until } = readSlip(value)
    if (until > this.#clock.now() && (await this.#options.runners.isAlive(runner))) return
    await this.#store.commit(this.#returning({ allowance, key, version }, -units))
  }

  #returning({ allowance: { grant }, key, version }: Slip, units: number): readonly Op[] {
    return [remove(key, version), this.#charge(grant, units), add(slipCountKey(grant), -1, { ttl: this.#ttl(grant) })]
  }

  #charge(grant: Grant, units: number): Op {
    return add(unitsKey(grant), units, { ttl: this.#ttl(grant) })
  }

  /** Outlives the grant a little: clocks of processes and stores differ. */
  #ttl(grant: Grant): number {
    return Math.max(0, grant.expires - this.#clock.now()) + graceMs
  }

  async #refusal({ grant, quota }: Allowance, count: number, step: number): Promise<Problem> {
    if (step === 0)
      return problem('BUDGET_EXCEEDED', 'The budget for this call was revoked', { suggestion: 'Request a new budget' })
    if (step > 2)
      return problem(
        'SERVER_UNAVAILABLE',
        `${this.#options.reservations} calls draw on this budget at the same time (the limit)`,
        {
          retryAfter: 1000,
        },
      )
    const facts = { units: count / MILLION, left: await this.#left(grant) }
    // Where one call takes more than there ever is, waiting does not help.
    if (quota !== undefined && facts.units <= quota.most) return exhausted(quota, facts, grant.expires, this.#clock.now())
    return problem('BUDGET_EXCEEDED', `The call costs ${facts.units} units, but only ${facts.left} are left in the budget`, {
      suggestion: 'Make a cheaper call, or request a larger budget',
      details: facts,
      actor: 'user',
    })
  }
}

function exhausted(
  { name, counts, most }: Quota,
  facts: { units: number; left: number },
  resetsAt: number,
  now: number,
): Problem {
  const { units, left } = facts
  const resets = new Date(resetsAt).toISOString()
  const takes =
    counts === 'calls' ? `${most} calls were made` : `the call costs ${units} units, but only ${left} of ${most} are left`
  return problem('QUOTA_EXHAUSTED', `The quota is used up: ${takes} until ${resets}`, {
    retryAfter: Math.max(1, resetsAt - now),
    suggestion: `Wait until ${resets}`,
    details: { quota: name, [counts]: units, remaining: left, resets_at: resets },
  })
}

/** Of a quota of calls each takes one, whatever it costs. */
function amountOf({ quota }: Allowance, { units, calls }: Amounts): number {
  return quota?.counts === 'calls' ? calls : units
}

/** Stores count in whole numbers, costs come in fractions. */
const MILLION = 1_000_000

function millionths(units: number): number {
  const count = Math.round(units * MILLION)
  if (Number.isSafeInteger(count) && count >= 0) return count
  throw new RangeError(`${units} is not a valid number of units: give one from 0 to ${Number.MAX_SAFE_INTEGER / MILLION}`)
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
  throw new Error('A stored reservation does not have the expected form. Another program may have written it')
}
