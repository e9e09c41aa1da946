/**
 * Whether a host's whitelist lets a label pass without a question. Which language its patterns are of is the host's to say; globs are
 * the default. Here only plain labels pass: whatever could be read in two ways is asked about.
 */
import type { ScopeLists } from './messages.ts'

/** `..`, `.`, empty segments, escapes, backslashes and what cannot be seen: spellings of something else. */
const devious = /(^|\/)\.{1,2}(\/|$)|\/\/|[\\%~]|\p{C}|[^\S ]/u

const most = 1_024

/** True only where no question is needed. */
export function passes(label: string, { whitelist = [], blacklist = [] }: ScopeLists): boolean {
  if (label.length > most || devious.test(label) || label !== label.normalize('NFKC') || label.trim() !== label) return false
  return !blacklist.some(pattern => barred(pattern, label)) && whitelist.some(pattern => globbed(pattern, label))
}

/** What is barred is barred in whatever case, and in the folders where `**` stands for none. */
function barred(pattern: string, label: string): boolean {
  const [glob, text] = [pattern.toLowerCase(), label.toLowerCase()]
  return [glob, glob.replace(/^\*\*\//, ''), glob.replaceAll('/**/', '/'), glob.replace(/\/\*\*$/, '')].some(one =>
    globbed(one, text),
  )
}

/** `*` and `?` stay within a segment, `**` does not; all else stands for itself. Takes at most length × length steps. */
export function globbed(pattern: string, text: string): boolean {
  let at = 0
  let here = 0
  let near: Retry | undefined
  let far: Retry | undefined
  for (;;) {
    if (pattern[at] === '*') {
      const deep = pattern[at + 1] === '*'
      at += deep ? 2 : 1
      if (deep) [far, near] = [{ at, here }, undefined]
      else near = { at, here }
    } else if (here === text.length && at === pattern.length) return true
    else if (here < text.length && (pattern[at] === text[here] || (pattern[at] === '?' && text[here] !== '/'))) {
      at++
      here++
    } else {
      if (near !== undefined && (near.here >= text.length || text[near.here] === '/')) near = undefined
      const again: Retry | undefined = near ?? far
      if (again === undefined || again.here >= text.length) return false
      // One more character belongs to the star; what stood behind it is tried from there.
      again.here++
      if (again === far) near = undefined
      at = again.at
      here = again.here
    }
  }
}

interface Retry {
  readonly at: number
  here: number
}
