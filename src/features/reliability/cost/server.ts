/**
 * Server side of cost: the options `cost`, `latency` and `quota` of tools, `server.budgets` and `ctx.cost`. The code that counts is
 * loaded with the first call that costs something.
 */

import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Budgets } from '../../../core/grant/budgets.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Quota, QuotaStatus } from '../../../core/grant/quota.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange, field } from '../../../engine/exchange.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { ownerNamed } from '../../../engine/owner.ts'
import { defineServerFeature, lazily, provide, type ServerKit } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import type { CallCost } from './messages.ts'
import {
  type CostCategory,
  categories,
  costPort,
  isCount,
  type Latency,
  latencies,
  operationalExtension,
  unitsText,
} from './messages.ts'
import type { CostMeter } from './runtime.ts'

/** Settings for all tools with a cost. */
export interface CostOptions {
  /** The name of a unit: `credits`, `cents`, … Default: none is stated. */
  readonly unitLabel?: string
  /** The quota of each caller over all tools. Default: none. */
  readonly quota?: QuotaFacts
  /** Returns further quotas for a caller. Called for every counted call, so keep it fast. Default: none. */
  readonly quotasFor?: (caller: Caller) => readonly SharedQuota[]
}

/** A quota shared by all callers that are given the same name. */
export interface SharedQuota extends QuotaFacts {
  /** The name of the quota. Callers with the same name share it. */
  readonly name: string
}

/** The options of `createServer` that this feature reads. */
export interface CostServerOptions {
  /** Quotas and unit of all tools with a `cost`. Default: none. */
  readonly cost?: CostOptions
}

/** What the feature adds to the server. */
export interface BudgetsApi {
  /** Budgets that callers may spend, in addition to quotas. */
  readonly budgets: BudgetsControl
}

/** What the feature adds to `ctx`. */
export interface CostContext {
  /** What this call costs: estimate, limit and spent units. Only for tools with a `cost`. */
  readonly cost: CallCost
}

/** The server feature: `cost`, `latency` and `quota` of tools, `server.budgets` and `ctx.cost`. */
export const costFeature = defineServerFeature<CostServerOptions, BudgetsApi>({
  name: 'cost',
  options: { cost: 'object' },
  context: {
    get cost() {
      const exchange = exchangeOf(this)
      return exchange.engine.ports.get(costPort).of(exchange)
    },
  } satisfies CostContext & ThisType<CallContext>,
  setup: (kit, { cost = {} }) => {
    checkOptions('cost', cost, { unitLabel: 'string', quota: 'object', quotasFor: 'function' })
    const { unitLabel, quota, quotasFor } = cost
    const { clock, grants, journal } = kit
    const tools = kit.port(toolsPort)
    const budgets = lazily(async () => {
      const [{ Budgets }, held, { runners }] = await Promise.all([import('../../../core/grant/budgets.ts'), grants(), journal()])
      return new Budgets({ grants: held, runners, id: () => crypto.randomUUID() })
    }).open
    const parts: CostParts = {
      ...kit,
      budgets,
      unitLabel,
      facts: ({ params }) => tools.facts<CostToolOption>(params['name'] as string),
      quota: quota && costQuota('all', quota, 'cost.quota'),
      quotasFor: quotasFor && (caller => quotasFor(caller).map(sharedQuota)),
    }
    let used = false
    const load = lazily(() => import('./runtime.ts')).open
    // Must be fast, because it runs for every call.
    const isCounted = (exchange: Exchange): boolean => {
      const facts = parts.facts(exchange)
      return facts?.cost !== undefined || facts?.quota !== undefined
    }
    const counts = (exchange: Exchange): boolean =>
      exchange.get(compensation) === undefined && ((used && isCounted(exchange)) || hasBudget(exchange))
    const layer = (
      stage: Layer['stage'],
      when: (exchange: Exchange) => boolean,
      work: 'reserveCost' | 'settleCost' | 'withUsage',
    ): Layer => ({
      stage,
      methods: [callTool.name],
      marked: true,
      concerns: isCounted,
      when,
      run: async (exchange, next) => (await load())[work](parts, exchange, next),
    })
    tools.extend<CostToolOption>({
      kinds: { cost: 'object', latency: 'string', quota: 'object' },
      declare: (tool, facts) => {
        checkPriced(tool, facts)
        if (used || (facts.cost ?? facts.latency ?? facts.quota) === undefined) return
        used = true
        // Until then only calls with a budget are looked at.
        kit.began()
      },
      meta: (_, facts) => pricedMeta(facts, unitLabel),
    })
    return {
      sides: [
        {
          // Always installed: a call may already be on its way under the old plan when the first tool declares a cost.
          layers: [
            layer(
              'decide',
              exchange => counts(exchange) && declaredSettings(exchange.peer, operationalExtension) !== undefined,
              'withUsage',
            ),
            layer('budget', counts, 'reserveCost'),
            layer('execute', exchange => exchange.get(costMeter) !== undefined, 'settleCost'),
          ],
          capabilities: revision => (used ? extensionCapability(revision, operationalExtension) : {}),
        },
      ],
      provides: provide(costPort, {
        of: exchange => {
          const meter = exchange.get(costMeter)
          if (meter !== undefined) return meter
          const tool = clip(String(exchange.params['name'] ?? exchange.route.name))
          throw new TypeError(`${tool} has no cost to count. Give the tool the option cost, such as { category: 'metered' }`)
        },
        price: ({ cost: said }: CostToolOption) =>
          said?.category === 'requires_approval' ? unitsText(said.estimatedUnits, said.unitLabel ?? unitLabel) : undefined,
        undone: async step => {
          const [{ refundOps: refunding }, { store }] = await Promise.all([import('../../../core/grant/quota.ts'), journal()])
          return refunding(store, clock, step)
        },
      }),
      server: { budgets: budgetsControl(grants, budgets) },
    }
  },
})

/** Counts what a call costs; set when its cost is reserved. */
export const costMeter = field<CostMeter>()

/** The owner key starts with `~`, which no principal's key does. */
function sharedQuota({ name, ...facts }: SharedQuota): Quota {
  return { ...costQuota(name, facts, 'cost.quotasFor'), owner: `~shared.${encodeURIComponent(name)}` }
}

/** What counting needs from the server. */
export interface CostParts extends Pick<ServerKit, 'clock' | 'trace'> {
  readonly budgets: () => Promise<Budgets>
  /** The settings of the called tool; undefined if it does not exist. */
  readonly facts: (exchange: Exchange) => CostToolOption | undefined
  readonly quota: Quota | undefined
  readonly quotasFor: ((caller: Caller) => readonly Quota[]) | undefined
  readonly unitLabel: string | undefined
}

function hasBudget({ meta }: Exchange): boolean {
  return meta?.[operationalExtension] !== undefined
}

/** What an author declares about the cost of a tool. */
export interface CostFacts {
  /** `requires_approval`: the user must agree to each call, as with `confirm`. */
  readonly category: CostCategory
  /** The expected cost of a call. Absent: unknown, unless the tool is free. */
  readonly estimatedUnits?: number
  /** Returns the expected cost for these arguments. Default: `estimatedUnits`. */
  readonly unitsFor?: (args: Params) => number
  /** The name of a unit. Default: the server's. */
  readonly unitLabel?: string
  /** Whether a call that is rolled back in a transaction is refunded. Default false. */
  readonly refundable?: boolean
}

/** A number of calls or units per caller and period. */
interface QuotaFacts {
  /** The most calls per period, up to 1,000,000,000. Give either `calls` or `units`. */
  readonly calls?: number
  /** The most units per period, up to 1,000,000,000. Give either `calls` or `units`. */
  readonly units?: number
  /** The length of the period, at least 1 s. */
  readonly per: Duration
}

/** The options of a tool. */
export interface CostToolOption {
  /** What a call costs. Default: nothing is stated. */
  readonly cost?: CostFacts
  /** How long a call usually takes; clients choose their timeout by it. Default: nothing is stated. */
  readonly latency?: Latency
  /** The quota of each caller for this tool. Default: none. */
  readonly quota?: QuotaFacts
}

const costKinds: KindsOf<CostFacts> = {
  category: 'string',
  estimatedUnits: 'number',
  unitsFor: 'function',
  unitLabel: 'string',
  refundable: 'boolean',
}

/** Throws if the settings are invalid. */
function checkPriced(tool: string, { cost, latency, quota }: CostToolOption): void {
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
    throw new TypeError(`${where}: a free tool cannot cost units. Use the category 'metered'`)
}

/** Converts a quota to the form that is counted. Throws if it is invalid. */
export function costQuota(name: string, quota: QuotaFacts, where: string): Quota {
  checkOptions(where, quota, { calls: 'number', units: 'number', per: 'any' })
  const { calls, units, per } = quota
  const most = calls ?? units
  if ((calls === undefined) === (units === undefined) || most === undefined)
    throw new TypeError(`${where}: give exactly one of calls and units`)
  if (!(Number.isFinite(most) && most > 0 && most <= 1e9))
    throw new TypeError(`${where} is ${most}: give a number above 0, up to 1,000,000,000`)
  const periodMs = toMilliseconds(per, `${where}: per`)
  if (!(periodMs >= 1000)) throw new TypeError(`${where}: per must be at least one second`)
  return { name, counts: calls === undefined ? 'units' : 'calls', most, periodMs }
}

/** What the tool list tells clients. */
function pricedMeta({ cost, latency }: CostToolOption, unitLabel?: string): Params | undefined {
  if (cost === undefined && latency === undefined) return undefined
  const { category, estimatedUnits: units, unitLabel: label = unitLabel } = cost ?? {}
  const about = {
    category,
    ...(units === undefined ? {} : { estimated_units: units }),
    ...(label === undefined ? {} : { unit_label: label }),
  }
  return { [operationalExtension]: { ...(cost && { cost: about }), ...(latency && { latency }) } }
}

/** A budget in units. */
interface BudgetTerms {
  /** The units that may be spent, above 0. */
  readonly units: number
  /** How long the budget lasts, at most a day. Default: a day. */
  readonly ttl?: Duration
  /** The tools it applies to: a name, or a pattern such as `report_*`. Default all. */
  readonly tools?: string
}

/** Manages budgets. A caller with a budget cannot spend more; an exhausted or expired budget refuses calls that cost something. */
interface BudgetsControl {
  /** What is left of a quota that several callers share, in its current window. */
  shared(quota: SharedQuota): Promise<Pick<QuotaStatus, 'remaining' | 'resetsAt'>>
  /** Gives a budget to a principal, or without one to the local user (stdio, in memory). Returns its id. */
  give(terms: BudgetTerms, principal?: string): Promise<string>
  /** Units that are neither spent nor reserved; undefined if the budget is unknown or expired. */
  left(budget: string, principal?: string): Promise<number | undefined>
  /** Ends a budget; false if it does not exist. */
  revoke(budget: string, principal?: string): Promise<boolean>
}

const dayMs = 86_400_000

function budgetsControl(grants: () => Promise<Grants>, budgets: () => Promise<Budgets>): BudgetsControl {
  return {
    give: async ({ units, ttl = dayMs, tools = '*' }, principal) => {
      const terms = { effect: 'budget', action: 'call', resource: tools, units, standing: true, source: 'operator' } as const
      const grant = await (await grants()).issue(await ownerNamed(principal), terms, toMilliseconds(ttl, 'ttl'))
      return grant.id
    },
    shared: async quota => (await budgets()).quotaLeft('', sharedQuota(quota)),
    left: async (budget, principal) => (await budgets()).left(await ownerNamed(principal), budget),
    revoke: async (budget, principal) => (await grants()).revoke(await ownerNamed(principal), budget),
  }
}
