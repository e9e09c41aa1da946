/** Characters that nobody sees and a model reads: zero-width ones, those that turn the direction of text, tags, and the like. */
import { isRecord } from '../../jsonrpc/message.ts'

/** Format characters, and all that is drawn as nothing. */
const unseen = /\p{Default_Ignorable_Code_Point}|\p{Cf}/gu
/** What joins letters and pictures, where it stands behind one of those that need it: scripts of Asia, and emoji. */
const joiners: ReadonlySet<string> = new Set(['\u200c', '\u200d', '\ufe0e', '\ufe0f'])
const joined = /(?:(?!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})\p{L}|\p{M}|\p{So}|\p{Sk}|\p{N})$/u

const deepest = 32

/** Where a value holds such a character, and which; undefined where it holds none. */
export function invisibleIn(value: unknown, path = '', depth = 0): string | undefined {
  if (typeof value === 'string') {
    const found = unseenIn(value)
    return found === undefined ? undefined : `${path || '/'} holds U+${found.toString(16).toUpperCase().padStart(4, '0')}`
  }
  // Nobody looks that deep, and somebody may count on it.
  if (depth > deepest) return `${path.slice(0, 80)} is nested deeper than ${deepest} levels`
  if (Array.isArray(value)) {
    for (const [i, each] of value.entries()) {
      const found = invisibleIn(each, `${path}/${i}`, depth + 1)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isRecord(value)) return undefined
  for (const [name, each] of Object.entries(value)) {
    const found = invisibleIn(name, `${path}/(a name)`, depth + 1) ?? invisibleIn(each, `${path}/${name}`, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

function unseenIn(text: string): number | undefined {
  for (const { 0: char, index } of text.matchAll(unseen)) {
    if (joiners.has(char) && joined.test(text.slice(Math.max(0, index - 2), index))) continue
    return char.codePointAt(0)
  }
  return undefined
}
