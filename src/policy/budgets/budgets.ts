/**
 * What servers may spend: reserved before an inference, settled after it. Those at the same time cannot overdraw together, and what a
 * process reserved that died comes back.
 */
import { randomUUID } from 'node:crypto'
import { type Clock, type Duration, durationText, realClock, toMilliseconds } from '../../core/clock.ts'
import { Budgets, type Reservation as CoreReservation } from '../../core/grant/budgets.ts'
import { Grants } from '../../core/grant/grants.ts'
import type { Quota } from '../../core/grant/quota.ts'
import { ProcessLeases } from '../../core/journal/process-leases.ts'
import { Problem } from '../../core/problem.ts'
import { matches } from '../../core/scope.ts'
import { type Why, why } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { add, entriesUnder, type Op, prefixedStore, type Store } from '../../stores/store.ts'

interface HostBudgetsOptions {
  readonly store: Store
  readonly limits?: readonly BudgetLimit[]
  /** Told once in each window when most of a budget is gone. */
  readonly onWarn?: (what: Why, spender: Spender) => void
  readonly clock?: Clock
  readonly id?: () => string
}

/** What something is expected to take. One request where nothing is said. */
export interface Estimate extends Spender {
  /** The user began it: only budgets that say so are about it. */
  readonly user?: boolean
  readonly tokens?: number
  readonly money?: number
  readonly requests?: number
}

interface Actual {
  readonly tokens?: number
  readonly money?: number
  /** Default 1. 0 where it was not begun. */
  readonly requests?: 0 | 1
}

/** What was reserved for one inference. */
interface BudgetReservation {
  /** It has ended, and this is what it took: also more than was reserved, since what was spent was spent. */
  settle(actual: Actual): Promise<void>
}

/** A refusal, and after which time it may be otherwise. */
interface BudgetRefusal extends Why {
  readonly retryAfterMs?: number
}

/** A budget in its current window. */
export interface BudgetStatus {
  /** The budget. */
  readonly limit: BudgetLimit
  /** The server whose budget it is. Absent if it is one for several. */
  readonly server?: string
  /** The feature set whose budget it is. Absent if it is one for several. */
  readonly featureSet?: string
  /** How much is spent or reserved. */
  readonly used: number
  /** When the window ends, in milliseconds since the epoch. */
  readonly resetsAt: number
}

const owner = 'host'
const remembered = 1_000

/** The refusal of a budget that an error came of, as it is thrown by turns. */
export function budgetRefusal(error: unknown): BudgetRefusal | undefined {
  const said = error instanceof Problem ? error.details?.['why'] : undefined
  return isRecord(said) && String(said['rule']).startsWith('budgets') ? (said as unknown as BudgetRefusal) : undefined
}

/** The budgets of a host, on a store. Throws where a limit is mistaken. */
export class HostBudgets {
  readonly #store: Store
  readonly #clock: Clock
  #limits: readonly BudgetLimit[]
  readonly #runners: ProcessLeases
  readonly #budgets: Budgets
  readonly #onWarn: HostBudgetsOptions['onWarn']
  /** Windows that were warned of. */
  readonly #warned = new Set<string>()

  constructor({ store, limits = [], onWarn, clock = realClock, id = randomUUID }: HostBudgetsOptions) {
    checkLimits(limits)
    this.#store = prefixedStore(store, 'budgets/')
    this.#clock = clock
    this.#limits = limits
    this.#onWarn = onWarn
    this.#runners = new ProcessLeases({ store: this.#store, clock, id: id() })
    this.#budgets = new Budgets({ grants: new Grants({ store: this.#store, clock, id }), runners: this.#runners, id })
  }

  /** A reservation, or why there is none. */
  async reserve(estimate: Estimate): Promise<BudgetReservation | BudgetRefusal> {
    const { server, featureSet, user = false, tokens = 0, money = 0, requests = 1 } = estimate
    const spender = { server, featureSet }
    const amounts = { tokens, money, requests }
    const about = this.#limits.filter(limit => limitApplies(limit, { ...spender, user }))
    const over = about.find(({ counts, most }) => amounts[counts] > most)
    if (over !== undefined) return neverEnough(over, amounts[over.counts])
    const taken: CoreReservation[] = []
    try {
      for (const unit of ['tokens', 'money'] as const) {
        // Requests are counted with the tokens, in one commit.
        const limits = about.filter(({ counts }) => counts === unit || (unit === 'tokens' && counts === 'requests'))
        if (limits.length === 0) continue
        const quotas = limits.map(limit => limitQuota(limit, spender))
        const got = await this.#budgets.reserve(owner, { action: unit, resource: server, units: amounts[unit], quotas })
        if (got !== undefined) taken.push(got)
      }
    } catch (error) {
      // Of several budgets one has not enough: what was taken from the others goes back.
      for (const each of taken) await each.settle(0, { calls: 0 })
      if (error instanceof Problem) return refusal(error, about)
      throw error
    }
    return { settle: actual => this.#settle(spender, taken, about, actual) }
  }

  async #settle(
    spender: Spender,
    taken: readonly CoreReservation[],
    about: readonly BudgetLimit[],
    actual: Actual,
  ): Promise<void> {
    const { tokens = 0, money = 0, requests: calls = 1 } = actual
    const also = spending(spender, { tokens, money, requests: calls }, this.#clock.now())
    const tokenAllowance = about.some(({ counts }) => counts !== 'money')
    for (const [at, each] of taken.entries()) {
      const units = at === 0 && tokenAllowance ? tokens : money
      await each.settle(units, { calls, ...(at === 0 && { also }) })
    }
    if (taken.length === 0 && also.length > 0) await this.#store.commit(also)
    if (this.#onWarn !== undefined) await this.#warn(spender, taken, about)
  }

  async #warn(spender: Spender, taken: readonly CoreReservation[], about: readonly BudgetLimit[]): Promise<void> {
    for (const { quota, remaining, resetsAt } of (await Promise.all(taken.map(each => each.quotas()))).flat()) {
      const limit = about.find(each => limitQuota(each, spender).name === quota.name)
      const window = `${quota.name} ${resetsAt}`
      const used = quota.most - remaining
      if (limit === undefined || used < quota.most * (limit.warnAt ?? 0.8) || this.#warned.has(window)) continue
      if (this.#warned.size >= remembered) this.#warned.clear()
      this.#warned.add(window)
      const message = `${used} of ${quota.most} ${limit.counts} of budget ${clip(limit.name)} are spent. The budget resets at ${new Date(resetsAt).toISOString()}`
      this.#onWarn?.(why('BUDGET_WARNING', `budgets.${limit.name}`, message, raise(limit)), spender)
    }
  }

  /** Why nothing at all can be spent now, and for how long; undefined where something can. Takes nothing. */
  async usedUp(spender: Spender): Promise<BudgetRefusal | undefined> {
    for (const limit of this.#limits.filter(each => limitApplies(each, spender))) {
      const { remaining, resetsAt } = await this.#budgets.quotaLeft(owner, limitQuota(limit, spender))
      // Of requests there are whole ones only.
      if (remaining >= (limit.counts === 'requests' ? 1 : Number.MIN_VALUE)) continue
      const retryAfterMs = Math.max(1, resetsAt - this.#clock.now())
      const message = `All ${limit.most} ${limit.counts} of budget ${clip(limit.name)} are spent. The budget resets at ${new Date(resetsAt).toISOString()}`
      const fix = `${raise(limit)}, or wait ${durationText(retryAfterMs)}`
      return { ...why('QUOTA_EXHAUSTED', `budgets.${limit.name}`, message, fix), retryAfterMs }
    }
    return undefined
  }

  /** What is left of each budget in the present window, for these spenders. */
  async left(spenders: readonly (Spender & { readonly user?: boolean })[]): Promise<readonly BudgetStatus[]> {
    const rows: BudgetStatus[] = []
    for (const limit of this.#limits) {
      const { by = 'server' } = limit
      const named = new Map(spenders.filter(each => limitApplies(limit, each)).map(each => [limitQuota(limit, each).name, each]))
      for (const [, { server, featureSet }] of named) {
        const { remaining, resetsAt } = await this.#budgets.quotaLeft(owner, limitQuota(limit, { server, featureSet }))
        const whose = by === 'all' ? {} : by === 'server' ? { server } : { server, featureSet }
        rows.push({ limit, ...whose, used: limit.most - remaining, resetsAt })
      }
    }
    return rows
  }

  /** Other limits from now on; what was spent under the same name in the same window stays spent. Throws where one is none. */
  update(limits: readonly BudgetLimit[]): void {
    checkLimits(limits)
    this.#limits = limits
  }

  /** Who spent what. */
  spent(options: SpentOptions = {}): Promise<readonly SpentRow[]> {
    return spentRows(this.#store, options)
  }

  close(): void {
    this.#runners.close()
  }
}

function neverEnough(limit: BudgetLimit, amount: number): BudgetRefusal {
  const message = `The request needs ${amount} ${limit.counts}, more than budget ${clip(limit.name)} allows (${limit.most})`
  return why('BUDGET_EXCEEDED', `budgets.${limit.name}`, message, raise(limit))
}

function refusal(problem: Problem, about: readonly BudgetLimit[]): BudgetRefusal {
  const quota: unknown = problem.details?.['quota']
  const limit = about.find(({ name }) => typeof quota === 'string' && quota.startsWith(`[${JSON.stringify(name)}`)) ?? about[0]
  const { retryAfter } = problem
  const wait = retryAfter === undefined ? '' : `, or wait ${durationText(retryAfter)}`
  const fix = limit === undefined ? 'Try again' : `${raise(limit)}${wait}`
  const said = why(problem.code, limit === undefined ? 'budgets' : `budgets.${limit.name}`, problem.message, fix)
  return retryAfter === undefined ? said : { ...said, retryAfterMs: retryAfter }
}

function raise({ name, counts }: BudgetLimit): string {
  return `Raise the limit of budget ${clip(name)} (most, in ${counts satisfies Spending})`
}

// What was spent, by server, feature set and day: counted with every settlement, for reports.

/** What one feature set of a server has spent. */
export interface SpentRow extends Spender {
  /** Tokens that were spent. */
  readonly tokens: number
  /** Money that was spent, in the currency of the model's price. */
  readonly money: number
  /** Requests to the model. */
  readonly requests: number
}

/** The days of a report. */
export interface SpentOptions {
  /** The first day: `2026-01-31`. Default: the oldest that is kept. */
  readonly from?: string
  /** The last day. Default: today. */
  readonly to?: string
}

const keepMs = 400 * 86_400_000
const million = 1_000_000

function spending({ server, featureSet }: Spender, spent: Readonly<Record<Spending, number>>, now: number): readonly Op[] {
  const day = new Date(now).toISOString().slice(0, 10)
  const place = `spent/${day}/${encodeURIComponent(server.toWellFormed())}/${encodeURIComponent(featureSet.toWellFormed())}`
  return Object.entries(spent)
    .filter(([, amount]) => amount > 0)
    .map(([what, amount]) => add(`${place}/${what}`, Math.round(amount * million), { ttl: keepMs }))
}

/** One row for each server and feature set, the most expensive first. */
async function spentRows(store: Store, { from, to }: SpentOptions): Promise<readonly SpentRow[]> {
  const rows = new Map<string, SpentRow>()
  const days = { ...(to !== undefined && { before: `spent/${to}~` }), ...(from !== undefined && { after: `spent/${from}` }) }
  for await (const { key, value } of entriesUnder(store, 'spent/', days)) {
    const [, , server = '', featureSet = '', what = ''] = key.split('/')
    const id = `${server}/${featureSet}`
    const names = { server: decodeURIComponent(server), featureSet: decodeURIComponent(featureSet) }
    const row = rows.get(id) ?? { ...names, tokens: 0, money: 0, requests: 0 }
    if (what === 'tokens' || what === 'money' || what === 'requests')
      rows.set(id, { ...row, [what]: (Math.round(row[what] * million) + Number(value)) / million })
  }
  return [...rows.values()].sort((a, b) => b.money - a.money || b.tokens - a.tokens || b.requests - a.requests)
}

// Limits of what servers may spend: so many tokens, so much money, so many requests in a time.

const spendings = ['tokens', 'money', 'requests'] as const
/** What a budget counts. */
export type Spending = (typeof spendings)[number]

/** A limit on what is spent in a window of time. */
export interface BudgetLimit {
  /**
   * The name of the budget, which refusals and warnings repeat. It must be unique.
   * @minLength 1
   * @example daily
   */
  readonly name: string
  /** What is counted: tokens, requests to the model, or money, for which the model needs a price. */
  readonly counts: Spending
  /**
   * How much may be spent in a window.
   * @exclusiveMinimum 0
   * @maximum 1000000000
   */
  readonly most: number
  /**
   * The length of a window, at least one second. Windows follow one another, and each begins with nothing spent.
   * @minimum 1000
   * @example 1d
   */
  readonly per: Duration
  /** Servers that the budget is about. `*` stands for any characters. By default all. */
  readonly server?: string | readonly string[]
  /** Feature sets that the budget is about. `*` stands for any characters. By default all. */
  readonly featureSet?: string | readonly string[]
  /**
   * Who has a budget of this size: all servers together, each server, or each feature set.
   * @default server
   */
  readonly by?: 'all' | 'server' | 'featureSet'
  /**
   * The share of the budget after which the user is warned, above 0 and at most 1.
   * @exclusiveMinimum 0
   * @maximum 1
   * @default 0.8
   */
  readonly warnAt?: number
  /**
   * Whether the budget also limits the turns that the user begins.
   * @default false
   */
  readonly user?: boolean
}

/** Who spends. */
export interface Spender {
  /** The name of the server. */
  readonly server: string
  /** The name of the feature set. */
  readonly featureSet: string
}

/** The one who spends in turns that the user begins. */
export const userSpender = { server: 'host', featureSet: 'conversation' } as const satisfies Spender

/** Whether the user spends, in a turn that the user began. */
export function isUserSpender({ server, featureSet }: Spender): boolean {
  return server === userSpender.server && featureSet === userSpender.featureSet
}

const members = new Set(['name', 'counts', 'most', 'per', 'server', 'featureSet', 'by', 'warnAt', 'user'])

/** Throws where a limit is none. */
export function checkLimits(limits: readonly BudgetLimit[]): void {
  const names = new Set<string>()
  for (const limit of limits) {
    const { name, counts, most, per, by = 'server', warnAt = 0.8, user = false } = limit
    const wrong = (what: string): TypeError => new TypeError(`Budget ${clip(String(name))}: ${what}`)
    if (typeof name !== 'string' || name === '' || names.has(name))
      throw wrong('the name is missing or used twice. Give each budget its own name')
    const unknownKey = Object.keys(limit).find(member => !members.has(member))
    if (unknownKey !== undefined) throw wrong(`${clip(unknownKey)} is not known. Use ${[...members].join(', ')}`)
    if (!spendings.includes(counts)) throw wrong(`counts must be one of ${spendings.join(', ')}, not ${clip(String(counts))}`)
    if (!(most > 0 && most <= 1e9)) throw wrong(`most must be a number above 0 and up to 1000000000, not ${most}`)
    if (!(toMilliseconds(per, 'per') >= 1_000)) throw wrong('per must be at least 1s')
    if (!['all', 'server', 'featureSet'].includes(by))
      throw wrong(`by must be all, server or featureSet, not ${clip(String(by))}`)
    if (!(warnAt > 0 && warnAt <= 1)) throw wrong(`warnAt must be above 0 and at most 1, not ${warnAt}`)
    if (typeof user !== 'boolean') throw wrong(`user must be true or false, not ${clip(String(user))}`)
    names.add(name)
  }
}

/** `user`: the user spends, for a turn of their own. */
function limitApplies({ server, featureSet, user }: BudgetLimit, spender: Spender & { readonly user?: boolean }): boolean {
  if (spender.user === true && user !== true) return false
  const fits = (patterns: BudgetLimit['server'], text: string): boolean =>
    patterns === undefined || [patterns].flat().some(pattern => matches(pattern, text))
  return fits(server, spender.server) && fits(featureSet, spender.featureSet)
}

/** The limit as a quota of this spender. */
function limitQuota({ name, counts, most, per, by = 'server' }: BudgetLimit, { server, featureSet }: Spender): Quota {
  const whose = by === 'all' ? [] : by === 'server' ? [server] : [server, featureSet]
  const periodMs = toMilliseconds(per)
  return { name: JSON.stringify([name, ...whose]), counts: counts === 'requests' ? 'calls' : 'units', most, periodMs }
}
