/** Which words somebody may have meant. */

/** Those that are at most a third of their letters away, the nearest first; at most three. */
export function nearest(word: string, words: readonly string[]): readonly string[] {
  return words
    .map(each => ({ each, away: distance(word.toLowerCase(), each.toLowerCase()) }))
    .filter(({ each, away }) => away <= Math.max(1, Math.ceil(each.length / 3)) || (word.length > 2 && each.includes(word)))
    .sort((a, b) => a.away - b.away)
    .slice(0, 3)
    .map(({ each }) => each)
}

/** Longer words are not compared letter by letter. */
const longest = 64

/** Letters to change, add, leave out or swap. */
function distance(a: string, b: string): number {
  if (a.length > longest || b.length > longest) return longest
  let [before, row] = [new Array<number>(b.length + 1).fill(0), Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + same,
        swapped ? (before[j - 2] ?? 0) + 1 : longest,
      )
    }
    before = row
    row = next
  }
  return row[b.length] ?? longest
}
