/** Patterns of actions and resources: a `*` stands for any characters, also none; everything else for itself. */

/** Longer ones are refused when a grant is issued: matching takes at most pattern × text steps, never more. */
export const patternLength = 256

export function matches(pattern: string, text: string): boolean {
  let at = 0
  let star = -1
  let resume = 0
  for (let i = 0; i < text.length; ) {
    if (pattern[at] === '*') {
      star = at++
      resume = i
    } else if (pattern[at] === text[i]) {
      at++
      i++
    } else if (star >= 0) {
      // The last star takes one character more. Earlier ones need no second look: what fits behind them fits still.
      at = star + 1
      i = ++resume
    } else return false
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}
