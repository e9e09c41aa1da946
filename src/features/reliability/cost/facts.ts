/** What an author says of what a tool costs, how long it takes, and how much of it there is; and what others are told of that. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Quota } from '../../../core/grant/quota.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import {
  type CostCategory,
  categories,
  isCount,
  type Latency,
  latencies,
  operationalExtension,
  type WireOperational,
} from './messages.ts'

export interface CostFacts {
  /** `requires_approval`: the user has to agree to each call, as with `confirm`. */
  readonly category: CostCategory
  /** What a call costs, as far as that can be known before. Absent: unknown, unless it is free. */
  readonly estimatedUnits?: number
  /** What a call with these arguments costs: for budgets it counts instead. */
  readonly unitsFor?: (args: Params) => number
  /** What a unit is called. Default: as the server says for all. */
  readonly unitLabel?: string
  /** A call that is taken back in a transaction costs nothing then. Default false: what was spent was spent. */
  readonly refundable?: boolean
}

/** So many calls, or units, for each caller in each period. */
export interface QuotaFacts {
  readonly calls?: number
  readonly units?: number
  readonly per: Duration
}

/** The options of a tool. */
export interface Priced {
  /** What a call costs. */
  readonly cost?: CostFacts
  /** How long it takes: clients wait accordingly. */
  readonly latency?: Latency
  /** How much of it each caller gets. */
  readonly quota?: QuotaFacts
}

const costKinds: KindsOf<CostFacts> = {
  category: 'string',
  estimatedUnits: 'number',
  unitsFor: 'function',
  unitLabel: 'string',
  refundable: 'boolean',
}

/** Throws where what was said makes no sense. */
export function checkPriced(tool: string, { cost, latency, quota }: Priced): void {
  const where = `of tool "${clip(tool)}"`
  if (cost !== undefined) checkCost(`The option cost ${where}`, cost)
  if (quota !== undefined) costQuota(tool, quota, `The option quota ${where}`)
  if (latency !== undefined && !latencies.includes(latency))
    throw new TypeError(`The option latency ${where} is "${clip(String(latency))}"; give one of ${latencies.join(', ')}`)
}

function checkCost(where: string, cost: CostFacts): void {
  checkOptions(where, cost, costKinds)
  const { category, estimatedUnits, unitsFor } = cost
  if (!categories.includes(category))
    throw new TypeError(`${where}: category is "${clip(String(category))}"; give one of ${categories.join(', ')}`)
  if (estimatedUnits !== undefined && !isCount(estimatedUnits))
    throw new TypeError(`${where}: estimatedUnits is ${estimatedUnits}; give a finite number of at least 0`)
  if (category === 'free' && ((estimatedUnits ?? 0) > 0 || unitsFor !== undefined))
    throw new TypeError(`${where}: what is free costs no units; make it 'metered'`)
}

/** The quota as it is counted. Throws where what was said makes no sense. */
export function costQuota(name: string, quota: QuotaFacts, where: string): Quota {
  checkOptions(where, quota, { calls: 'number', units: 'number', per: 'any' })
  const { calls, units, per } = quota
  const most = calls ?? units
  if ((calls === undefined) === (units === undefined) || most === undefined)
    throw new TypeError(`${where}: give either calls or units`)
  if (!(Number.isFinite(most) && most > 0 && most <= 1e9))
    throw new TypeError(`${where} is ${most}: give a number above 0, up to a thousand million`)
  const periodMs = toMilliseconds(per, `${where}: per`)
  if (!(periodMs >= 1000)) throw new TypeError(`${where}: per is at least a second`)
  return { name, counts: calls === undefined ? 'units' : 'calls', most, periodMs }
}

/** What a list tells everybody of the tool. */
export function pricedMeta({ cost, latency }: Priced, unitLabel?: string): Readonly<Record<string, WireOperational>> | undefined {
  if (cost === undefined && latency === undefined) return undefined
  const label = cost?.unitLabel ?? unitLabel
  return {
    [operationalExtension]: {
      ...(cost === undefined
        ? {}
        : {
            cost: {
              category: cost.category,
              ...(cost.estimatedUnits === undefined ? {} : { estimated_units: cost.estimatedUnits }),
              ...(label === undefined ? {} : { unit_label: label }),
            },
          }),
      ...(latency === undefined ? {} : { latency }),
    },
  }
}

/** What a call will cost; undefined where nobody knows. */
export function estimateOf(cost: CostFacts | undefined, args: Params): number | undefined {
  if (cost === undefined) return undefined
  const units = cost.unitsFor === undefined ? cost.estimatedUnits : cost.unitsFor(args)
  if (units !== undefined && !isCount(units)) throw new TypeError(`unitsFor gave ${units}: give a finite number of at least 0`)
  return units ?? (cost.category === 'free' ? 0 : undefined)
}
