/** Budgets that an author gives to callers, beside what quotas allow. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Budgets } from '../../../core/grant/budgets.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import { ownerNamed } from '../../../engine/owner.ts'

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

const dayMs = 86_400_000

export function budgetsControl(grants: () => Promise<Grants>, budgets: () => Promise<Budgets>): BudgetsControl {
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
export function lazyBudgets(grants: () => Promise<Grants>, journal: () => Promise<Journal>): () => Promise<Budgets> {
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
