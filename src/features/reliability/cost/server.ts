/** Tools that cost something, or of which there is only so much. What counts it is loaded with the first such call. */

import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Budgets } from '../../../core/grant/budgets.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Quota } from '../../../core/grant/quota.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { Trace } from '../../../core/log.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { ownerNamed } from '../../../engine/owner.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
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
  type WireOperational,
} from './messages.ts'
import type { CostMeter } from './runtime.ts'

/** What an author may say for all tools that have a cost. */
export interface CostOptions {
  /** What a unit is called: `credits`, `cents`, … */
  readonly unitLabel?: string
  /** How much each caller gets of all of them together. */
  readonly quota?: QuotaFacts
  /** How much some callers get of all of them, beside that. Cheap: it is asked for every call that is counted. */
  readonly quotasFor?: (caller: Caller) => readonly SharedQuota[]
}

/** All callers that are given one of the same name share it. */
export interface SharedQuota extends QuotaFacts {
  readonly name: string
}

/** The options of `createServer` for it. */
export interface CostServerOptions {
  /** What holds for all tools with a `cost`. */
  readonly cost?: CostOptions
}

/** What it adds to the server of an author. */
export interface BudgetsApi {
  /** What callers may spend beside what quotas allow. */
  readonly budgets: BudgetsControl
}

/** What it adds to the context of a call. */
export interface CostContext {
  /** What this call costs: what was expected, what may be spent, and what was. Of tools with a `cost`. */
  readonly cost: CallCost
}

/** The options `cost`, `latency` and `quota` of tools; `server.budgets` and `ctx.cost`. */
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
    const { clock, trace, began, grants, journal } = kit
    const budgets = lazyBudgets(grants, journal)
    const tools = kit.port(toolsPort)
    const server = costServer({
      clock,
      trace,
      began,
      budgets,
      unitLabel,
      facts: tool => tools.facts<Priced>(tool),
      quota: quota === undefined ? undefined : costQuota('all', quota, 'cost.quota'),
      quotasFor: quotasFor && (caller => quotasFor(caller).map(sharedQuota)),
    })
    tools.extend({
      kinds: { cost: 'object', latency: 'string', quota: 'object' },
      declare: (tool, facts: Priced) => server.declare(tool, facts),
      meta: (_, facts: Priced) => pricedMeta(facts, unitLabel),
    })
    return {
      sides: [server.side],
      provides: provide(costPort, {
        of: server.of,
        price: ({ cost: said }: Priced) =>
          said?.category === 'requires_approval' ? unitsText(said.estimatedUnits, said.unitLabel ?? unitLabel) : undefined,
        undone: async step => {
          const [{ refunding }, { store }] = await Promise.all([import('../../../core/grant/quota.ts'), journal()])
          return refunding(store, clock, step)
        },
      }),
      server: { budgets: budgetsControl(grants, budgets) },
    }
  },
})

/** No principal has such a key. */
function sharedQuota({ name, ...facts }: SharedQuota): Quota {
  return { ...costQuota(name, facts, 'cost.quotasFor'), owner: `~shared.${encodeURIComponent(name)}` }
}

/** What counting needs of the server. */
export interface CostParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly budgets: () => Promise<Budgets>
  /** What a tool says of itself; undefined where there is no such tool. */
  readonly facts: (tool: string) => Priced | undefined
  readonly quota: Quota | undefined
  readonly quotasFor?: ((caller: Caller) => readonly Quota[]) | undefined
  readonly unitLabel: string | undefined
  /** Called when the first tool declares something: until then no call is looked at but those that bring a budget. */
  readonly began: () => void
}

interface CostServer {
  readonly side: Side
  /** A tool is offered that says this of itself. Throws where it makes no sense. */
  declare(tool: string, facts: Priced): void
  /** What a call costs, for its handler. */
  of(exchange: Exchange): CallCost
}

function costServer(parts: CostParts): CostServer {
  const meters = new WeakMap<Exchange, CostMeter>()
  let used = false
  let loading: Promise<typeof import('./runtime.ts')> | undefined
  const load = () => {
    loading ??= import('./runtime.ts')
    return loading
  }
  const counts = (exchange: Exchange): boolean =>
    exchange.get(compensation) === undefined && ((used && isCounted(parts, exchange)) || hasBudget(exchange))
  const layer = (stage: Layer['stage'], when: Layer['when'], work: 'reserved' | 'settled' | 'stamped'): Layer => ({
    stage,
    methods: [callTool.name],
    marked: true,
    concerns: exchange => isCounted(parts, exchange),
    ...(when === undefined ? {} : { when }),
    run: async (exchange, next) => (await load())[work](parts, meters, exchange, next),
  })
  const told = (exchange: Exchange): boolean => counts(exchange) && declared(exchange.peer, operationalExtension) !== undefined
  const settling = layer('execute', exchange => (used || hasBudget(exchange)) && meters.has(exchange), 'settled')
  const layers = [layer('decide', told, 'stamped'), layer('budget', counts, 'reserved'), settling]
  return {
    side: {
      // All of them always: a call may have been on its way, by the plan of then, before the first tool said what it costs.
      layers,
      capabilities: revision => (used ? declaration(revision, operationalExtension) : {}),
    },
    declare: (tool, facts) => {
      checkPriced(tool, facts)
      if (used || (facts.cost ?? facts.latency ?? facts.quota) === undefined) return
      used = true
      parts.began()
    },
    of: exchange => {
      const meter = meters.get(exchange)
      if (meter !== undefined) return meter
      const tool = clip(String(exchange.params['name'] ?? exchange.route.name))
      throw new TypeError(`${tool} has no cost to be counted: give the tool the option cost, such as { category: 'metered' }`)
    },
  }
}

/** Cheap: every call is asked. */
function isCounted(parts: CostParts, { params }: Exchange): boolean {
  const facts = parts.facts(params['name'] as string)
  return facts !== undefined && (facts.cost !== undefined || facts.quota !== undefined)
}

function hasBudget({ meta }: Exchange): boolean {
  return meta !== undefined && Object.hasOwn(meta, operationalExtension)
}

/** What an author says of the cost of a tool. */
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
interface QuotaFacts {
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
function checkPriced(tool: string, { cost, latency, quota }: Priced): void {
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
function pricedMeta({ cost, latency }: Priced, unitLabel?: string): Readonly<Record<string, WireOperational>> | undefined {
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

/** Units that a caller may spend, beside what quotas allow. */
interface BudgetTerms {
  readonly units: number
  /** Default, and at most, a day. */
  readonly ttl?: Duration
  /** For which tools: a name, or a pattern such as `report_*`. Default all. */
  readonly tools?: string
}

/** Budgets of callers: whoever has one can spend no more than it holds, and one that is used up or over refuses what costs. */
interface BudgetsControl {
  /** Gives a principal, by its id, a budget; without one the owner of this process, over stdio and in memory. Gives its name. */
  give(terms: BudgetTerms, principal?: string): Promise<string>
  /** Units that are neither spent nor reserved; undefined where there is no such budget, or it is over. */
  left(budget: string, principal?: string): Promise<number | undefined>
  /** False where there is none. */
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
    left: async (budget, principal) => (await budgets()).left(await ownerNamed(principal), budget),
    revoke: async (budget, principal) => (await grants()).revoke(await ownerNamed(principal), budget),
  }
}

/** Opened when something is first counted. */
function lazyBudgets(grants: () => Promise<Grants>, journal: () => Promise<Journal>): () => Promise<Budgets> {
  let opening: Promise<Budgets> | undefined
  const open = async (): Promise<Budgets> => {
    const [{ Budgets }, held, { runners }] = await Promise.all([import('../../../core/grant/budgets.ts'), grants(), journal()])
    return new Budgets({ grants: held, runners, id: () => crypto.randomUUID() })
  }
  return () => {
    opening ??= open().catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }
}
