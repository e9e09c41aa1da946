/** Cost and latency on the wire: what a tool declares, the limit of a call, and what it cost. Shared by both sides. */

import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Op } from '../../../stores/store.ts'

/** The cost of a call: `ctx.cost`. */
export interface CallCost {
  /** The expected cost; undefined if unknown. */
  readonly estimate: number | undefined
  /** What the handler has reported so far. */
  readonly spent: number
  /** What the caller's limit still allows; undefined without a limit. */
  readonly left: number | undefined
  /**
   * Reports spent units; from then on the call costs what was reported instead of the estimate. Throws if the caller's limit is
   * exceeded; the units are counted anyway.
   */
  add(units: number): void
}

/** What other features may do with costs. */
interface CostPort {
  /** `ctx.cost` of a call. */
  of(exchange: Exchange): CallCost
  /** The price that users must approve for each call, as text; undefined if none. */
  price(facts: object): string | undefined
  /** The store operations that refund a step of a transaction. */
  undone(step: string): Promise<readonly Op[]>
}

/** The port of this feature. */
export const costPort = port<CostPort>('cost')

/** The extension name. */
export const operationalExtension = `${NS}/operational`

/** The cost categories of tools. */
export const categories = ['free', 'metered', 'requires_approval'] as const
/** `metered`: costs units. `requires_approval`: the user must agree first. */
export type CostCategory = (typeof categories)[number]

/** The latency classes of tools. */
export const latencies = ['instant', 'seconds', 'minutes'] as const
/** How long a call usually takes. */
export type Latency = (typeof latencies)[number]

interface WireCost {
  readonly category?: CostCategory
  readonly estimated_units?: number
  readonly unit_label?: string
}

/** What a tool declares in `_meta`. Static, because tool lists are cached and shared. */
export interface WireOperational {
  readonly cost?: WireCost
  readonly latency?: Latency
}

/** The limit in the `_meta` of a call. */
export interface WireBudget {
  readonly max_units?: number
  readonly deadline_ms?: number
}

interface WireQuota {
  readonly remaining: number
  readonly resets_at: string
}

/** The usage in the `_meta` of a result. */
export interface WireUsage {
  readonly units_used: number
  /** Execution time in milliseconds. */
  readonly unit_label?: string
  readonly duration_ms: number
  readonly quota?: WireQuota
}

/** What a tool declares; what it does not declare is unknown, never zero. */
export interface OfferedCost {
  /** Undefined if unknown. */
  readonly category: CostCategory | undefined
  /** The estimated units of a call; 0 for a free tool. */
  readonly units: number | undefined
  /** The name of a unit. Undefined if unknown. */
  readonly unitLabel: string | undefined
  /** How long a call usually takes. Undefined if unknown. */
  readonly latency: Latency | undefined
}

/** Reads a tool's declaration; members of the wrong type are ignored. */
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
  /** The units that were spent. */
  readonly units: number
  /** The name of a unit. Undefined if unknown. */
  readonly unitLabel: string | undefined
  /** How long the server worked on the call, in milliseconds. Undefined if unknown. */
  readonly durationMs: number | undefined
  /** The remaining quota, and when it is full again. */
  readonly quota:
    | {
        /** Calls or units that are left. */
        readonly remaining: number
        /** When the quota is full again. */
        readonly resetsAt: Date
      }
    | undefined
}

/** Reads the usage in a result; undefined if the server does not report it. */
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

/** Whether a value is a finite number of at least 0. */
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
