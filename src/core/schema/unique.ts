/** Whether no two items of an array are equal, in one pass: equal JSON has equal canonical text. */
import { canonicalJson } from '../digest.ts'
import type { Meter } from './meter.ts'

export function allUnique(items: readonly unknown[], meter?: Meter): boolean {
  const seen = new Set<unknown>()
  for (const item of items) {
    // Text of an object is told from an equal string by what stands before it.
    const key =
      typeof item === 'object' && item !== null ? `\0${canonicalJson(item)}` : typeof item === 'string' ? `s${item}` : item
    if (seen.has(key)) return false
    seen.add(key)
    meter?.spendText(typeof key === 'string' ? key.length : 1)
  }
  return true
}
