/** Tools that cost something, or of which there is only so much. What counts it is loaded with the first such call. */
import type { Clock } from '../../../core/clock.ts'
import type { Budgets } from '../../../core/grant/budgets.ts'
import type { Quota } from '../../../core/grant/quota.ts'
import type { Trace } from '../../../core/log.ts'
import { checkOptions } from '../../../core/options.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { type BudgetsControl, budgetsControl, lazyBudgets } from './budgets.ts'
import { checkPriced, costQuota, type Priced, pricedMeta, type QuotaFacts } from './facts.ts'
import { costPort, operationalExtension, unitsText } from './messages.ts'
import type { CallCost, CostMeter } from './meter.ts'

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
  let loading: Promise<typeof import('./pay.ts')> | undefined
  const load = () => {
    loading ??= import('./pay.ts')
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
