/** The order of keys: that of their UTF-8 bytes, which is the order of code points and not that of JavaScript's strings. */

/** Negative, zero or positive, as sort functions want it. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above all others, though their units do not. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** The least key above all that begin with `prefix`; undefined where there is none. */
export function prefixEnd(prefix: string): string | undefined {
  const points = Array.from(prefix)
  while (points.length > 0) {
    const last = points.pop()?.codePointAt(0) ?? 0
    if (last < 0x10ffff) return points.join('') + String.fromCodePoint(last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

/** Where the keys lie that a scan may find: from `from` on, to before `end`. With both an index is walked no further than it has to be. */
export function scanBounds(
  prefix: string,
  after: string | undefined,
  before: string | undefined,
): { readonly from: string; readonly end: string | undefined } {
  const last = prefixEnd(prefix)
  const isLess = before !== undefined && (last === undefined || compareKeys(before, last) < 0)
  return { from: after !== undefined && compareKeys(after, prefix) > 0 ? after : prefix, end: isLess ? before : last }
}

/** The index of the first of the sorted keys that is not below `key`. */
export function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareKeys(keys[middle] as string, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}
