/**
 * Charging for a call: reserves the possible cost before it runs, and settles the actual cost afterwards. Loaded with the first call
 * that costs something.
 */

import type { Reservation } from '../../../core/grant/budgets.ts'
import type { Quota, QuotaStatus } from '../../../core/grant/quota.ts'
import { Problem, problem, problemOf } from '../../../core/problem.ts'
import { addRetryState, type Exchange, retryState } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { StoreError } from '../../../stores/store.ts'
import { type CallToolResult, callDeadlineMs, type FailedResult, failureProblem } from '../../mcp/tools/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'
import type { CallCost } from './messages.ts'
import { isCount, operationalExtension, usageIn } from './messages.ts'
import { tellLimit, tellWait } from './rates.ts'
import { type CostParts, type CostToolOption, costMeter, costQuota } from './server.ts'

/** At the budget stage: reserves the cost, or refuses; releases what was not needed. */
export async function reserveCost(parts: CostParts, exchange: Exchange, next: Next): Promise<unknown> {
  const tool = exchange.params['name'] as string
  const priced = parts.facts(exchange) ?? {}
  const { most, withinMs } = wishOf(exchange)
  const before = Number(exchange.get(retryState)?.[operationalExtension] ?? 0)
  exchange.set(callDeadlineMs, withinMs)
  const estimate = estimateOf(priced, exchange.input as Params)
  if (most !== undefined) checkBudget(tool, priced, before, estimate, most)
  // If there is no estimate, the caller's limit is reserved.
  const units = estimate ?? (most === undefined ? 0 : most - before)
  const reservation = await reserve(parts, exchange, tool, priced, units)
  const meter = new CostMeter({ estimate, most, reservation, before })
  exchange.set(costMeter, meter)
  try {
    return await next()
  } finally {
    // The call was refused before its handler ran. Detached calls settle in the background.
    if (meter.used === undefined && !exchange.detached) await settle(parts, exchange, meter, 0, 0)
  }
}

/** Around the handler: settles the actual cost when it has ended. */
export async function settleCost(parts: CostParts, exchange: Exchange, next: Next): Promise<unknown> {
  const meter = exchange.get(costMeter)
  if (meter === undefined) return next()
  const began = parts.clock.now()
  let result: FailedResult | undefined
  let thrown: unknown
  try {
    result = (await next()) as FailedResult
  } catch (error) {
    thrown = error
  }
  meter.durationMs = Math.max(0, Math.round(parts.clock.now() - began))
  if (exchange.asking?.pending === true) {
    // The call continues when its caller has answered: settle what was reported, and release the rest.
    await settle(parts, exchange, meter, meter.added ?? 0, 0)
    addRetryState(exchange, operationalExtension, `${meter.spent}`)
  } else await settle(parts, exchange, meter, spentOn(meter, result, thrown), 1)
  if (result === undefined) throw thrown
  return !exchange.detached ? result : stamp(parts, exchange, meter, result)
}

/** Around everything that may answer the call, including replayed results, which cost nothing. */
export async function withUsage(parts: CostParts, exchange: Exchange, next: Next): Promise<unknown> {
  const began = parts.clock.now()
  const result = await next()
  if (exchange.asking?.pending === true || exchange.detached || !isRecord(result)) return result
  if (!Array.isArray(result['content'])) return result
  let meter = exchange.get(costMeter)
  if (meter === undefined) {
    meter = new CostMeter({ estimate: 0, most: undefined, reservation: undefined, before: 0 })
    meter.durationMs = Math.max(0, Math.round(parts.clock.now() - began))
  }
  return stamp(parts, exchange, meter, result as unknown as CallToolResult)
}

// Adds usage to the result, for clients that declared the extension.
function stamp<R extends CallToolResult>(parts: CostParts, exchange: Exchange, meter: CostMeter, result: R): R {
  if (declaredSettings(exchange.peer, operationalExtension) === undefined) return result
  const label = parts.facts(exchange)?.cost?.unitLabel ?? parts.unitLabel
  // Without a quota here, report the one of an upstream, if the handler passed it on.
  const quota = meter.quota ?? quotaBehind(result)
  const usage = {
    units_used: meter.before + (meter.used ?? 0),
    ...(label === undefined ? {} : { unit_label: label }),
    // Execution time.
    duration_ms: meter.durationMs,
    ...(quota && { quota: { remaining: quota.remaining, resets_at: new Date(quota.resetsAt).toISOString() } }),
  }
  return { ...result, _meta: { ...result._meta, [operationalExtension]: usage } }
}

function quotaBehind({ _meta }: CallToolResult): Pick<QuotaStatus, 'remaining' | 'resetsAt'> | undefined {
  const said = usageIn(_meta)?.quota
  return said === undefined ? undefined : { remaining: said.remaining, resetsAt: said.resetsAt.getTime() }
}

async function reserve(parts: CostParts, exchange: Exchange, tool: string, priced: CostToolOption, units: number) {
  const quotas = [
    ...(priced.quota === undefined ? [] : [costQuota(tool, priced.quota, 'quota')]),
    ...(parts.quota === undefined ? [] : [parts.quota]),
    ...(parts.quotasFor?.(exchange.caller) ?? []),
  ]
  try {
    const [budgets, owner] = await Promise.all([parts.budgets(), ownerOf(exchange)])
    return await budgets.reserve(owner, { action: 'call', resource: tool, units, quotas })
  } catch (error) {
    if (error instanceof Problem && error.code === 'QUOTA_EXHAUSTED') tellExhausted(exchange, quotas, error)
    // A call whose cost cannot be counted is not executed.
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

function tellExhausted(exchange: Exchange, quotas: readonly Quota[], { retryAfter = 0, details }: Problem): void {
  const quota = quotas.find(({ name }) => name === details?.['quota'])
  const remaining = Number(details?.['remaining'] ?? 0)
  tellWait(exchange, retryAfter)
  if (quota !== undefined) tellLimit(exchange, { ...stateOf(quota), remaining, resetMs: retryAfter })
}

/** Settles the reservation. If that fails, it is traced, and the reservation expires by itself. */
async function settle(parts: CostParts, exchange: Exchange, meter: CostMeter, units: number, calls: 0 | 1): Promise<void> {
  meter.used = units
  const { reservation } = meter
  if (reservation === undefined) return
  try {
    await reservation.settle(units, { calls, refundable: await refundName(parts, exchange, calls) })
    if (declaredSettings(exchange.peer, operationalExtension) === undefined && exchange.caller.carrier !== 'http') return
    const statuses = await reservation.quotas()
    meter.quota = tightest(statuses)
    const now = parts.clock.now()
    for (const { quota, remaining, resetsAt } of statuses)
      tellLimit(exchange, { ...stateOf(quota), remaining, resetMs: resetsAt - now })
  } catch (error) {
    parts.trace('cost-not-settled', error)
  }
}

// A refundable step of a transaction is settled under a name, so that it can be refunded.
async function refundName(parts: CostParts, exchange: Exchange, calls: number): Promise<string | undefined> {
  const step = exchange.get(retryState)?.[transactionsExtension]
  if (calls === 0 || step === undefined) return undefined
  const { cost } = parts.facts(exchange) ?? {}
  return cost?.refundable === true ? `${await ownerOf(exchange)}/${step}` : undefined
}

/**
 * The reported units, else the estimate. Refused calls cost nothing; failed ones cost the estimate, because nobody knows how far they
 * came.
 */
function spentOn({ added, estimate = 0 }: CostMeter, result: FailedResult | undefined, thrown: unknown): number {
  if (added !== undefined) return added
  if (result === undefined) return thrown instanceof McpError && thrown.kind !== 'internal' ? 0 : estimate
  const why = result[failureProblem]
  return why === undefined || why.code === 'SERVER_ERROR' || why.code === 'OPERATION_TIMEOUT' ? estimate : 0
}

/** The expected cost of a call; undefined if unknown. */
function estimateOf({ cost }: CostToolOption, args: Params): number | undefined {
  if (cost === undefined) return undefined
  const units = cost.unitsFor === undefined ? cost.estimatedUnits : cost.unitsFor(args)
  if (units !== undefined && !isCount(units))
    throw new TypeError(`unitsFor returned ${units}. It must return a finite number of at least 0`)
  return units ?? (cost.category === 'free' ? 0 : undefined)
}

function checkBudget(tool: string, { cost }: CostToolOption, before: number, estimate: number | undefined, most: number): void {
  if (cost === undefined || before + (estimate ?? 0) > most) {
    const takes = cost === undefined ? 'has an unknown cost' : `costs ${before + (estimate ?? 0)} units`
    throw problem('BUDGET_EXCEEDED', `A call of ${clip(tool)} ${takes}, but at most ${most} units are allowed`, {
      suggestion: 'Raise max_units, or call a tool that costs less',
      details: { max_units: most, ...(estimate === undefined ? {} : { units: before + estimate }) },
      actor: 'user',
    })
  }
}

// The caller's limit.
function wishOf({ meta }: Exchange) {
  const { [operationalExtension]: said = {} } = meta ?? {}
  const where = `params._meta["${operationalExtension}"]`
  if (!isRecord(said)) throw invalid(`${where} must be an object with max_units or deadline_ms`)
  const { max_units: most, deadline_ms: withinMs } = said
  if (most !== undefined && !isCount(most)) throw invalid(`${where}.max_units must be a number of at least 0`)
  if (withinMs !== undefined && !(isCount(withinMs) && withinMs > 0))
    throw invalid(`${where}.deadline_ms must be a number above 0`)
  return { most, withinMs }
}

// The quota with the smallest remaining share.
function tightest(statuses: readonly QuotaStatus[]): QuotaStatus | undefined {
  const share = ({ remaining, quota }: QuotaStatus): number => remaining / quota.most
  return statuses.reduce<QuotaStatus | undefined>(
    (one, other) => (one === undefined || share(other) < share(one) ? other : one),
    undefined,
  )
}

function stateOf({ name, most, periodMs, counts }: Quota) {
  return { name, most, periodMs, ...(counts === 'units' ? { unit: 'units' } : {}) }
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', message)
}

/** Counts what one call costs. */
export class CostMeter implements CallCost {
  readonly estimate: number | undefined
  readonly most: number | undefined
  readonly reservation: Reservation | undefined
  /** What earlier rounds of the same call have cost; already settled. */
  readonly before: number
  /** Units reported in this round; undefined until then. */
  added: number | undefined = undefined
  /** Set when the call is settled. */
  used: number | undefined = undefined
  durationMs = 0
  quota: QuotaStatus | undefined = undefined

  constructor(facts: Pick<CostMeter, 'estimate' | 'most' | 'reservation' | 'before'>) {
    this.estimate = facts.estimate
    this.most = facts.most
    this.reservation = facts.reservation
    this.before = facts.before
  }

  get spent(): number {
    return this.before + (this.added ?? 0)
  }

  get left(): number | undefined {
    return this.most === undefined ? undefined : Math.max(0, this.most - this.spent)
  }

  add(units: number): void {
    if (!isCount(units)) throw new TypeError(`${units} is not a valid number of units. Give a finite number of at least 0`)
    this.added = (this.added ?? 0) + units
    if (this.most !== undefined && this.spent > this.most)
      throw problem('BUDGET_EXCEEDED', `The call has spent ${this.spent} units, but the caller allows only ${this.most}`, {
        suggestion: 'Do less in one call, or raise max_units',
        details: { units: this.spent, max_units: this.most },
        actor: 'user',
      })
  }
}
