/** What calls cost, in a server: the quotas and budgets they are paid from, and the approval that some need. */
import type { Clock } from '../core/clock.ts'
import { type Duration, toMilliseconds } from '../core/duration.ts'
import type { Budgets } from '../core/grant/budgets.ts'
import type { Grants } from '../core/grant/grants.ts'
import type { Quota } from '../core/grant/quota.ts'
import type { Journal } from '../core/journal/journal.ts'
import type { Step, Unit } from '../core/journal/unit.ts'
import type { Trace } from '../core/log.ts'
import { checkOptions } from '../core/options.ts'
import { ownerKey } from '../core/owner.ts'
import { type Confirmable, type ConfirmFacts, confirmFacts, messageOf } from '../features/reliability/confirmation/facts.ts'
import { type Priced, quotaOf } from '../features/reliability/cost/facts.ts'
import { unitsText } from '../features/reliability/cost/messages.ts'
import { type CostOptions, type CostServer, costServer, type SharedQuota } from '../features/reliability/cost/server.ts'
import { stepName } from '../features/reliability/transactions/messages.ts'
import type { Op } from '../stores/store.ts'
import type { ServerOptions } from './options.ts'

export interface CostWiring {
  readonly clock: Clock
  readonly trace: Trace
  readonly grants: () => Promise<Grants>
  readonly journal: () => Promise<Journal>
  readonly facts: (tool: string) => Priced | undefined
  readonly began: () => void
}

/** Units that a caller may spend, beside what quotas allow. */
export interface BudgetTerms {
  readonly units: number
  /** Default, and at most, a day. */
  readonly ttl?: Duration
  /** For which tools: a name, or a pattern such as `report_*`. Default all. */
  readonly tools?: string
}

/** Budgets of callers: whoever has one can spend no more than it holds, and one that is used up or over refuses what costs. */
export interface BudgetsControl {
  /** Gives a principal, by its id, a budget; without one the owner of this process, over stdio and in memory. Gives its name. */
  give(terms: BudgetTerms, principal?: string): Promise<string>
  /** Units that are neither spent nor reserved; undefined where there is no such budget, or it is over. */
  left(budget: string, principal?: string): Promise<number | undefined>
  /** False where there is none. */
  revoke(budget: string, principal?: string): Promise<boolean>
}

export interface Costs {
  readonly server: CostServer
  readonly control: BudgetsControl
  /** What is given back with a step that is taken back. */
  readonly undone: (owner: string, step: Step, unit: Unit) => Promise<readonly Op[]>
}

const dayMs = 86_400_000

export function costsOf({ cost = {} }: ServerOptions, wiring: CostWiring): Costs {
  checkOptions('cost', cost, { unitLabel: 'string', quota: 'object', quotasFor: 'function' })
  const { quotasFor } = cost
  const { clock, trace, grants, journal, facts, began } = wiring
  const budgets = lazyBudgets(wiring)
  return {
    server: costServer({
      clock,
      trace,
      budgets,
      facts,
      began,
      quota: cost.quota === undefined ? undefined : quotaOf('all', cost.quota, 'cost.quota'),
      quotasFor: quotasFor && (caller => quotasFor(caller).map(sharedQuota)),
      unitLabel: cost.unitLabel,
    }),
    control: {
      give: async ({ units, ttl = dayMs, tools = '*' }, principal) => {
        const terms = { effect: 'budget', action: 'call', resource: tools, units, standing: true, source: 'operator' } as const
        const grant = await (await grants()).issue(await ownerNamed(principal), terms, toMilliseconds(ttl, 'ttl'))
        return grant.id
      },
      left: async (budget, principal) => (await budgets()).left(await ownerNamed(principal), budget),
      revoke: async (budget, principal) => (await grants()).revoke(await ownerNamed(principal), budget),
    },
    undone: async (owner, step, unit) => {
      const [{ refunding }, { store }] = await Promise.all([import('../core/grant/quota.ts'), journal()])
      return refunding(store, clock, `${owner}/${stepName(step.order, unit.id)}`)
    },
  }
}

/** No principal has such a key. */
function sharedQuota({ name, ...facts }: SharedQuota): Quota {
  return { ...quotaOf(name, facts, 'cost.quotasFor'), owner: `~shared.${encodeURIComponent(name)}` }
}

function lazyBudgets({ grants, journal }: CostWiring): () => Promise<Budgets> {
  let opening: Promise<Budgets> | undefined
  const open = async (): Promise<Budgets> => {
    const [{ Budgets }, held, { runners }] = await Promise.all([import('../core/grant/budgets.ts'), grants(), journal()])
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

/** The key of a principal that is not there now. */
export async function ownerNamed(principal: string | undefined): Promise<string> {
  const caller = { carrier: 'memory', ...(principal === undefined ? {} : { principal: { id: principal } }) } as const
  return (await ownerKey(caller)) as string
}

/** What the user has to agree to: the call itself, what it costs, or both, which is one question. */
export function approvalOf(facts: Confirmable & Priced, { unitLabel }: CostOptions = {}): ConfirmFacts | undefined {
  const own = confirmFacts(facts)
  const { cost } = facts
  if (cost?.category !== 'requires_approval') return own
  const price = `It costs ${unitsText(cost.estimatedUnits, cost.unitLabel ?? unitLabel)}.`
  if (own === undefined) return { message: `${price} Shall it be called?`, risk: 'safe' }
  // Where the price needs a yes, every call does.
  const { when: _, ...always } = own
  return { ...always, message: `${messageOf(own)} ${price}` }
}
