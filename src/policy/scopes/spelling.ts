/**
 * How a place is spelled. Only the plain spelling can be approved without a question, since servers, shells and file systems read
 * the others differently: dots, escapes, look-alikes. Against what is forbidden every reading counts.
 */
import { clean, folded, unescaped } from './readings.ts'

interface Spelling {
  /** What is unusual about it, as words; undefined where there is one way to read it. */
  readonly flaw: string | undefined
  /** Whatever it may be taken for, in lower case. */
  readonly readings: readonly string[]
}

/** Longer ones are no place. */
export const placeLength = 4_096

const slashLike =
  /[\u2044\u2215\u29f8\u29f9\u2571\u2572\u3033\u27cb\u27cd\u29f5\u2216\ufe68\u2024\ua4f8\ua60e\u0701\u0702\u1735]/u
const latin = /\p{Script=Latin}/u
const greekOrCyrillic = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}]/u

export function spell(text: string): Spelling {
  if (text.length > placeLength) return { flaw: `longer than ${placeLength} characters`, readings: [] }
  return { flaw: characterFlaw(text) ?? segmentFlaw(text), readings: readingsOf(text) }
}

function characterFlaw(text: string): string | undefined {
  if (text.includes('\0')) return 'it holds a NUL'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'it holds control characters'
  if (/\p{Cf}/u.test(text) || /[^\S ]/u.test(text)) return 'it holds characters that nobody sees'
  if (!text.isWellFormed()) return 'it holds half a character'
  if (text.includes('\\')) return 'it holds a backslash'
  if (/%(?:[0-9a-f]{2}|u[0-9a-f]{4})/i.test(text)) return 'it holds escapes in percent'
  if (/&(?:#|[a-z]{2,8};)/i.test(text)) return 'it holds escapes of HTML'
  if (slashLike.test(text)) return 'it holds characters that look like a slash or a dot'
  if (text.normalize('NFKC') !== text) return 'its characters have a simpler form'
  return undefined
}

function segmentFlaw(text: string): string | undefined {
  const path = text.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').replace(/^[a-z]:(?=\/)/i, '')
  if (path.includes('//')) return 'it has an empty segment'
  for (const segment of path.split('/')) {
    if (/^\.+(?:;|$)/.test(segment)) return 'it has a segment of dots'
    if (/[. ]$|^ /.test(segment)) return 'a segment begins with a blank, or ends in a blank or a dot'
    if (/~\d/.test(segment)) return 'it has a short name'
    if (path.includes('/') && segment.includes(':')) return 'a segment holds a colon'
    if (latin.test(segment) && greekOrCyrillic.test(segment)) return 'it mixes alphabets'
  }
  return undefined
}

function readingsOf(text: string): readonly string[] {
  const found = new Set<string>()
  const plain = unescaped(text)
  for (const form of [text, plain, plain.split('\0', 1)[0] ?? '']) {
    const simple = folded(form)
    found.add(simple)
    found.add(clean(simple))
  }
  return [...found]
}
