/** Cost and latency on the wire: what a tool says of itself, what a call may cost at most, and what it did cost. */

import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Op } from '../../../stores/store.ts'

/** What a call costs, for its handler. */
export interface CallCost {
  /** What it was expected to cost; undefined where nobody knew. */
  readonly estimate: number | undefined
  /** What it has cost by now, as far as its handler has said. */
  readonly spent: number
  /** What the caller still allows; undefined where it set no bound. */
  readonly left: number | undefined
  /**
   * So many units were spent. Once said, the call costs what was added, and not what was expected. Throws where that is more
   * than the caller allows: it is counted all the same, but there is no sense in going on.
   */
  add(units: number): void
}

/** What other features may use of costs. */
interface CostPort {
  /** What a call costs, for its handler. */
  of(exchange: Exchange): CallCost
  /** What the user has to agree to pay for each call of a tool, in words; undefined where nothing is. */
  price(facts: object): string | undefined
  /** The writes that give back what a step of a unit of work has cost, by the name of the step. */
  undone(step: string): Promise<readonly Op[]>
}

/** What other features may use of costs. */
export const costPort = port<CostPort>('cost')

/** The name of the extension. */
export const operationalExtension = `${NS}/operational`

/** What calls of a tool may cost. */
export const categories = ['free', 'metered', 'requires_approval'] as const
/** Whether a call costs something, and whether somebody has to agree to that first. */
export type CostCategory = (typeof categories)[number]

/** How long calls of a tool may take. */
export const latencies = ['instant', 'seconds', 'minutes'] as const
/** How long a call takes, by and large. */
export type Latency = (typeof latencies)[number]

interface WireCost {
  readonly category?: CostCategory
  readonly estimated_units?: number
  readonly unit_label?: string
}

/** In a tool's `_meta`. Only what stays as it is: lists are kept, and shared. */
export interface WireOperational {
  readonly cost?: WireCost
  readonly latency?: Latency
}

/** In the `_meta` of a call. */
export interface WireBudget {
  readonly max_units?: number
  readonly deadline_ms?: number
}

interface WireQuota {
  readonly remaining: number
  readonly resets_at: string
}

/** In that of its result. */
export interface WireUsage {
  readonly units_used: number
  readonly unit_label?: string
  readonly duration_ms: number
  readonly quota?: WireQuota
}

/** What a tool says of its cost and of how long it takes. What it does not say is unknown, and never nothing. */
export interface OfferedCost {
  /** Undefined: nobody knows what it costs. */
  readonly category: CostCategory | undefined
  /** What a call costs, as far as is known; of a free tool 0. */
  readonly units: number | undefined
  readonly unitLabel: string | undefined
  readonly latency: Latency | undefined
}

/** Whatever is of another type than it must be was not said. */
export function offeredCost(meta: unknown): OfferedCost {
  const said = isRecord(meta) && isRecord(meta[operationalExtension]) ? meta[operationalExtension] : {}
  const cost = isRecord(said['cost']) ? said['cost'] : {}
  const category = categories.find(each => each === cost['category'])
  const units = isCount(cost['estimated_units']) ? cost['estimated_units'] : category === 'free' ? 0 : undefined
  return {
    category,
    units,
    unitLabel: labelOf(cost['unit_label']),
    latency: latencies.find(each => each === said['latency']),
  }
}

/** What a call has cost. */
export interface CallUsage {
  readonly units: number
  readonly unitLabel: string | undefined
  readonly durationMs: number | undefined
  /** What is left, and when there is as much as ever again. */
  readonly quota: { readonly remaining: number; readonly resetsAt: Date } | undefined
}

/** Undefined where the server does not tell. */
export function usageIn(meta: Readonly<Record<string, unknown>> | undefined): CallUsage | undefined {
  const said = meta?.[operationalExtension]
  if (!isRecord(said) || !isCount(said['units_used'])) return undefined
  const { units_used: units, duration_ms: duration } = said
  return {
    units,
    unitLabel: labelOf(said['unit_label']),
    durationMs: isCount(duration) ? duration : undefined,
    quota: quotaIn(said['quota']),
  }
}

function quotaIn(said: unknown): CallUsage['quota'] {
  if (!isRecord(said) || !isCount(said['remaining']) || typeof said['resets_at'] !== 'string') return undefined
  const resetsAt = new Date(said['resets_at'])
  return Number.isNaN(resetsAt.getTime()) ? undefined : { remaining: said['remaining'], resetsAt }
}

/** A number of units, or of milliseconds. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function labelOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? clip(value) : undefined
}

/** For people: `5 credits`. */
export function unitsText(units: number | undefined, label = 'units'): string {
  return units === undefined ? `an unknown number of ${label}` : `${units} ${label}`
}
