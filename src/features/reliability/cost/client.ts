/**
 * A client that knows what calls cost before it makes them: what is too dear is not sent, or only when its user agrees. What a
 * tool does not say is unknown, and never free.
 */
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { confirmationOf } from '../confirmation/messages.ts'
import {
  type CostCategory,
  isCount,
  type Latency,
  type OfferedCost,
  offeredCost,
  operationalExtension,
  unitsText,
  type WireBudget,
} from './messages.ts'

export { type CallUsage, type OfferedCost, offeredCost, usageIn } from './messages.ts'

/** What a call may take: units, or both units and time. */
export type CallBudget = number | { readonly units?: number; readonly time?: Duration }

/** What the user is asked. */
export interface CostQuestion {
  /** The full text: server, tool, and what it costs. */
  readonly message: string
  readonly tool: string
  readonly arguments: Params
  /** Undefined: nobody knows. */
  readonly units: number | undefined
  readonly unitLabel: string | undefined
  readonly category: CostCategory | undefined
}

export type OnCost = (question: CostQuestion, context: { readonly signal: AbortSignal | undefined }) => Awaitable<boolean>

export interface CostClientOptions {
  readonly onCost: OnCost | undefined
  /** The most units that a call may cost without anybody being asked. */
  readonly costLimit: number | undefined
}

/** One call, as this side needs to know it. */
export interface PricedCall {
  readonly server: string
  /** Whether the server keeps to the bound that comes with a call. */
  readonly bounded: boolean
  readonly tool: string
  readonly arguments: Params
  /** The `_meta` of the tool, as it was listed. */
  readonly about: unknown
  readonly budget: CallBudget | undefined
  readonly signal: AbortSignal | undefined
}

export interface CostClient {
  readonly side: Side
  /** Whether each tool must be known before it is called. */
  readonly watches: boolean
  /** What the call is sent with; throws where it must not be sent. */
  approve(call: PricedCall): Promise<Params | undefined>
}

export function costClient({ onCost, costLimit }: CostClientOptions): CostClient {
  if (costLimit !== undefined && !isCount(costLimit))
    throw new TypeError(`costLimit is ${costLimit}: give a finite number of at least 0`)
  return {
    watches: costLimit !== undefined,
    side: { capabilities: revision => declaration(revision, operationalExtension) },
    approve: async call => {
      const bound = boundOf(call.budget)
      const cost = offeredCost(call.about)
      const refusal = refusalOf(call, cost, bound.max_units, costLimit)
      if (refusal !== undefined) {
        if (onCost === undefined) throw refusal
        if ((await onCost(questionOf(call, cost), { signal: call.signal })) !== true) throw declined(call.tool)
      }
      // Whoever agreed to what nobody knows set no bound.
      const { max_units, ...rest } = bound
      const sent = refusal !== undefined && cost.units === undefined ? rest : bound
      return Object.keys(sent).length === 0 ? undefined : { [operationalExtension]: sent }
    },
  }
}

/** Whether a server says of its tools what they cost, or keeps to bounds. */
export function knowsCosts(server: Pick<Peer, 'revision' | 'capabilities'>): boolean {
  return declared(server, operationalExtension) !== undefined
}

/** How long to wait for a tool, by what it says of itself, where nobody says how long. */
const waitMs: Readonly<Record<Latency, number>> = { instant: 10_000, seconds: 60_000, minutes: 600_000 }

export function waitFor({ latency }: OfferedCost): number | undefined {
  return latency === undefined ? undefined : waitMs[latency]
}

function boundOf(budget: CallBudget | undefined): WireBudget {
  if (budget === undefined) return {}
  const { units, time } = typeof budget === 'number' ? { units: budget } : budget
  if (units !== undefined && !isCount(units)) throw new TypeError(`budget is ${units}: give a finite number of at least 0`)
  return {
    ...(units === undefined ? {} : { max_units: units }),
    ...(time === undefined ? {} : { deadline_ms: toMilliseconds(time, 'budget.time') }),
  }
}

/** Why the call is not to be made without a yes; undefined where it may. */
function refusalOf(
  { tool, about, bounded }: PricedCall,
  { category, units, unitLabel }: OfferedCost,
  budget: number | undefined,
  costLimit: number | undefined,
): Problem | undefined {
  const most = Math.min(budget ?? Number.POSITIVE_INFINITY, costLimit ?? Number.POSITIVE_INFINITY)
  // A metered tool stops at its bound by itself, where its server knows bounds.
  const unknown = units === undefined && !(bounded && category !== undefined && budget !== undefined && costLimit === undefined)
  if (most !== Number.POSITIVE_INFINITY && (unknown || (units ?? 0) > most))
    return problem('BUDGET_EXCEEDED', `${clip(tool)} costs ${unitsText(units, unitLabel)}, and at most ${most} are allowed`, {
      suggestion: 'Allow more (budget, costLimit), or give connect the option onCost',
      details: { max_units: most, ...(units === undefined ? {} : { units }) },
      actor: 'user',
    })
  // Where the tool asks for confirmation, the question names the cost: one yes is enough.
  if (category !== 'requires_approval' || confirmationOf(about) !== undefined) return undefined
  return problem(
    'CONFIRMATION_REQUIRED',
    `${clip(tool)} costs ${unitsText(units, unitLabel)}, and somebody has to agree to that`,
    {
      suggestion: 'Give connect the option onCost',
      actor: 'operator',
    },
  )
}

function questionOf({ server, tool, arguments: args }: PricedCall, { units, unitLabel, category }: OfferedCost): CostQuestion {
  const message = `${clip(server)}: ${clip(tool)} costs ${unitsText(units, unitLabel)}. Proceed?`
  return { message, tool, arguments: args, units, unitLabel, category }
}

function declined(tool: string): Problem {
  return problem('CONFIRMATION_DECLINED', `The user did not agree to what this call of ${clip(tool)} costs: it was not made`)
}
