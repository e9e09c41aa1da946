/**
 * What goes wrong on a line, on purpose: each rule names a fault, the methods that it strikes and how often. Chance comes from a seed, so
 * that what a test has seen it sees again.
 */

import { seeded } from '../../core/clock.ts'
import { type Duration, toMilliseconds } from '../../core/duration.ts'
import { clip } from '../../jsonrpc/limits.ts'

export const faultKinds = ['delay', 'drop', 'duplicate', 'reorder', 'cut', 'error', 'garbage'] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  readonly kind: FaultKind
  /** The method whose answers, or which itself, it strikes; `*` at its end stands for any rest. Default: all. */
  readonly method?: string
  /** 0 … 1. Default 1. */
  readonly probability?: number
  /** `delay`: how long. Default 1 s. */
  readonly ms?: number
  /** `error`: its number. Default −32603. */
  readonly code?: number
}

/** Rules, as objects or as they are written on a command line. */
export type FaultsOption = readonly (Fault | string)[]

const written = /^([a-z]+)(?:=([^@:]+))?(?:@([^:]+))?(?::([\d.]+))?$/

/** @example parseFault('delay=200ms@tools/call:0.5') */
export function parseFault(text: string): Fault {
  const [, kind, value, method, chance] = written.exec(text) ?? []
  const known = faultKinds.find(each => each === kind)
  const probability = chance === undefined ? 1 : Number(chance)
  if (known === undefined || !(probability >= 0 && probability <= 1))
    throw new TypeError(
      `The fault "${clip(text)}" cannot be read: write KIND[=VALUE][@METHOD][:PROBABILITY], where KIND is one of ${faultKinds.join(', ')}, as in delay=200ms@tools/call:0.5`,
    )
  return {
    kind: known,
    probability,
    ...(method !== undefined && { method }),
    ...(known === 'delay' && { ms: toMilliseconds((value ?? '1s') as Duration, 'delay') }),
    ...(known === 'error' && { code: codeOf(value) }),
  }
}

function codeOf(value = '-32603'): number {
  const code = Number(value)
  if (Number.isSafeInteger(code)) return code
  throw new TypeError(`The number of an error must be an integer, as in error=-32603, and "${clip(value)}" is none`)
}

/** Says which faults strike what is about to be sent. */
export type Fate = (method: string) => readonly Fault[]

export function fateOf(faults: FaultsOption = [], seed = 1): Fate {
  const rules = faults.map(fault => (typeof fault === 'string' ? parseFault(fault) : fault))
  const random = seeded(seed)
  // Each rule draws each time, so that one rule more changes nothing about the others' luck.
  return method => rules.filter(({ method: wanted, probability = 1 }) => strikes(wanted, method) && random() < probability)
}

function strikes(wanted: string | undefined, method: string): boolean {
  if (wanted === undefined || wanted === method) return true
  return wanted.endsWith('*') && method.startsWith(wanted.slice(0, -1))
}
