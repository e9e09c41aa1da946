/** Equality of JSON values, and arrays without equal items, both without comparing everything with everything. */
import { isRecord } from '../../jsonrpc/message.ts'
import { canonicalJson } from '../digest.ts'
import type { Meter } from './meter.ts'

/** In one pass: equal values have equal canonical text. */
export function allUnique(items: readonly unknown[], meter?: Meter): boolean {
  const seen = new Set<unknown>()
  for (const item of items) {
    const structured = typeof item === 'object' && item !== null
    // A mark tells a string from the text of an object that reads the same.
    const key = structured ? canonicalJson(item) : typeof item === 'string' ? `"${item}` : item
    if (seen.has(key)) return false
    seen.add(key)
    meter?.spend(typeof key === 'string' ? (structured ? 16 : 2) + (key.length >> 1) : 2)
  }
  return true
}

/** Costs no more than the smaller of the two. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, index) => sameJson(item, other[index]))
  }
  if (!isRecord(one) || !isRecord(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every(name => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
  )
}
