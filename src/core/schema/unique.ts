/** Arrays without equal items, without comparing everything with everything. */
import { canonicalJson } from '../digest.ts'

/** In one pass: equal values have equal canonical text. */
export function allUnique(items: readonly unknown[]): boolean {
  const seen = new Set<unknown>()
  for (const item of items) {
    const structured = typeof item === 'object' && item !== null
    // A mark tells a string from the text of an object that reads the same.
    const key = structured ? canonicalJson(item) : typeof item === 'string' ? `"${item}` : item
    if (seen.has(key)) return false
    seen.add(key)
  }
  return true
}
