/**
 * Whitelist and blacklist of a feature set (MCP Live 0.2 §7.6), held against the label and against every place in the payload.
 * What is forbidden is forbidden in every spelling and every case; what is allowed must be spelled plainly.
 */
import type { Scope, ScopeLists } from '../../features/live/scopes/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

type ScopeVerdict =
  | { readonly is: 'forbidden'; readonly pattern: string; readonly text: string }
  | { readonly is: 'allowed'; readonly pattern: string }
  /** Neither: somebody has to be asked. `flaw`: the spelling is unusual, and this is how. */
  | { readonly is: 'open'; readonly flaw: string | undefined }

/** The lists of a feature set, ready to be held against scopes. Throws where a pattern is none. */
export function scopeJudge(lists: ScopeLists) {
  const allows = (lists.whitelist ?? []).map(pattern => ({ pattern: checked(pattern), fits: glob(pattern) }))
  const forbids = (lists.blacklist ?? []).flatMap(pattern =>
    withFolder(folded(checked(pattern))).map(text => ({ pattern, fits: glob(text) })),
  )
  const forbidden = (text: string): ScopeVerdict | undefined => {
    const { readings } = spell(text)
    const hit = forbids.find(({ fits }) => readings.some(fits))
    return hit && { is: 'forbidden', pattern: hit.pattern, text: clip(text) }
  }
  const judge = ({ label, payload }: Scope): ScopeVerdict => {
    const { texts, places, cut } = scopePlacesIn(payload)
    for (const text of [label, ...texts]) {
      const denied = forbidden(text)
      if (denied !== undefined) return denied
    }
    const wanted = [label, ...places]
    const flaw = cut ? 'its payload is too large to check' : firstFlaw([label, ...texts], wanted)
    const by = allows.find(({ fits }) => fits(label))
    const all = by !== undefined && flaw === undefined && wanted.every(text => allows.some(({ fits }) => fits(text)))
    return all ? { is: 'allowed', pattern: by.pattern } : { is: 'open', flaw }
  }
  return { lists, judge }
}

/** Texts that are no places may be spelled as they like, unless nobody could compare them with what is forbidden. */
function firstFlaw(texts: readonly string[], places: readonly string[]): string | undefined {
  for (const place of places) {
    const { flaw } = spell(place)
    if (flaw !== undefined) return `${clip(place)}: ${flaw}`
  }
  return texts.some(text => text.length > placeLength)
    ? `a string in its payload is longer than ${placeLength} characters`
    : undefined
}

/** Who forbids all that lies in a folder forbids the folder. */
function withFolder(pattern: string): readonly string[] {
  return pattern.endsWith('/**') && pattern.length > 3 ? [pattern, pattern.slice(0, -3)] : [pattern]
}

function checked(pattern: string): string {
  if (typeof pattern === 'string' && pattern !== '' && pattern.length <= globLength) return pattern
  throw new TypeError(`"${clip(String(pattern))}" is not a scope pattern. Use 1 to ${globLength} characters`)
}

// Globs of scopes: one star stands for any characters within a segment, two for any across segments, and where they are a whole
// segment with others behind it also for none at all. Everything else stands for itself. Takes pattern × text steps at most.

const star = -1
const across = -2
const segments = -3
const slash = 47

/** Operators write these; longer ones are a mistake. */
const globLength = 1024

/**
 * @example
 * const inside = glob('/project/**')
 * inside('/project/src/main.ts') // true
 */
export function glob(pattern: string): (text: string) => boolean {
  const tokens = read(pattern)
  const end = tokens.length
  return text => {
    let at = begin(tokens)
    for (let i = 0; i < text.length; i++) {
      const next = new Uint8Array(end + 1)
      const code = text.charCodeAt(i)
      for (let state = 0; state < end; state++) if (at[state] === 1) step(tokens, next, state, code)
      at = next
    }
    return at[end] === 1
  }
}

/** Compiles a pattern into tokens. */
function read(pattern: string): readonly number[] {
  const tokens: number[] = []
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] !== '*') tokens.push(pattern.charCodeAt(i))
    else if (pattern[i + 1] !== '*') tokens.push(star)
    else {
      const whole = pattern[i + 2] === '/' && (i === 0 || pattern[i - 1] === '/')
      tokens.push(whole ? segments : across)
      i += whole ? 2 : 1
    }
  }
  return tokens
}

/** The states before the first character. */
function begin(tokens: readonly number[]): Uint8Array {
  const states = new Uint8Array(tokens.length + 1)
  reach(tokens, states, 0)
  return states
}

/** Stars may also stand for nothing. */
function reach(tokens: readonly number[], states: Uint8Array, state: number): void {
  let at = state
  states[at] = 1
  while (at < tokens.length && (tokens[at] as number) < 0) states[++at] = 1
}

/** Follows one character from one state. */
function step(tokens: readonly number[], next: Uint8Array, state: number, code: number): void {
  const token = tokens[state] as number
  if (token >= 0) {
    if (token === code) reach(tokens, next, state + 1)
    return
  }
  const stays = token === across || (token === star) === (code !== slash)
  if (stays) reach(tokens, next, state)
  // Amid a segment: what follows begins only after its slash.
  else if (token === segments) next[state] = 1
}

// The places that the payload of a scope names: a label is what the server says of it, the payload is what it will act on.

/** Members whose text is a place, also where it does not look like one. */
const placeName = /path|file|dir|folder|uri|url|href|cwd|root|dest/i
const most = 1_000
const depth = 16

interface Places {
  /** Every text in it, names of members too. */
  readonly texts: readonly string[]
  /** Those that are places. */
  readonly places: readonly string[]
  /** Not all was looked at: there is more of it than anybody reads. */
  readonly cut: boolean
}

/** Collects the texts and places of a payload, up to a limit. */
function scopePlacesIn(payload: unknown): Places {
  const texts: string[] = []
  const places: string[] = []
  let cut = false
  const walk = (value: unknown, name: string, level: number): void => {
    if (texts.length >= most || level > depth) {
      cut = true
      return
    }
    if (typeof value === 'string') {
      texts.push(value)
      if (placeName.test(name) || looksLikePlace(value)) places.push(value)
    } else if (Array.isArray(value)) for (const item of value) walk(item, name, level + 1)
    else if (isRecord(value))
      for (const [key, member] of Object.entries(value)) {
        walk(key, '', level + 1)
        walk(member, key, level + 1)
      }
  }
  walk(payload, '', 0)
  return { texts, places, cut }
}

/** Whether a text looks like a path or URL. */
function looksLikePlace(text: string): boolean {
  return /[/\\]|^[.~]|%2f|%5c|%2e|\0/i.test(text) || /[\u2044\u2215\u29f8\u2571\uff0f\uff3c\u2024\uff0e]/u.test(text)
}

// How a place is spelled. Only the plain spelling can be approved without a question, since servers, shells and file systems read
// the others differently: dots, escapes, look-alikes. Against what is forbidden every reading counts.

interface Spelling {
  /** What is unusual about it, as words; undefined where there is one way to read it. */
  readonly flaw: string | undefined
  /** Whatever it may be taken for, in lower case. */
  readonly readings: readonly string[]
}

/** Longer ones are no place. */
const placeLength = 4_096

const slashLike =
  /[\u2044\u2215\u29f8\u29f9\u2571\u2572\u3033\u27cb\u27cd\u29f5\u2216\ufe68\u2024\ua4f8\ua60e\u0701\u0702\u1735]/u
const latin = /\p{Script=Latin}/u
const greekOrCyrillic = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}]/u

function spell(text: string): Spelling {
  if (text.length > placeLength) return { flaw: `it is longer than ${placeLength} characters`, readings: [] }
  return { flaw: characterFlaw(text) ?? segmentFlaw(text), readings: readingsOf(text) }
}

/** What is unusual about the characters. */
function characterFlaw(text: string): string | undefined {
  if (text.includes('\0')) return 'it contains a NUL character'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'it contains control characters'
  if (/\p{Cf}/u.test(text) || /[^\S ]/u.test(text)) return 'it contains invisible characters'
  if (!text.isWellFormed()) return 'it contains an incomplete character'
  if (text.includes('\\')) return 'it contains a backslash'
  if (/%(?:[0-9a-f]{2}|u[0-9a-f]{4})/i.test(text)) return 'it contains percent escapes'
  if (/&(?:#|[a-z]{2,8};)/i.test(text)) return 'it contains HTML escapes'
  if (slashLike.test(text)) return 'it contains characters that look like a slash or a dot'
  if (text.normalize('NFKC') !== text) return 'it contains characters that have a simpler form (NFKC)'
  return undefined
}

/** What is unusual about the path segments. */
function segmentFlaw(text: string): string | undefined {
  const path = text.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').replace(/^[a-z]:(?=\/)/i, '')
  if (path.includes('//')) return 'it has an empty path segment'
  for (const segment of path.split('/')) {
    if (/^\.+(?:;|$)/.test(segment)) return 'it has a path segment that consists of dots'
    if (/[. ]$|^ /.test(segment)) return 'a path segment begins with a space, or ends with a space or a dot'
    if (/~\d/.test(segment)) return 'it has a short file name such as NAME~1'
    if (path.includes('/') && segment.includes(':')) return 'a path segment contains a colon'
    if (latin.test(segment) && greekOrCyrillic.test(segment)) return 'it mixes alphabets'
  }
  return undefined
}

/** All readings of a text: as it is, unescaped and cleaned. */
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

// What a spelling may be taken for: escapes resolved, look-alikes as what they look like, dots walked.

/** Deeper escapes are read by nobody. */
const rounds = 5

/** Letters of other alphabets that look like these, in lower case. */
const likeness: ReadonlyMap<string, string> = new Map(
  [
    ['a', 'аαɑ'],
    ['b', 'ьв'],
    ['c', 'сϲ'],
    ['d', 'ԁɗ'],
    ['e', 'еεҽ'],
    ['g', 'ɡց'],
    ['h', 'һհн'],
    ['i', 'іιıɩ'],
    ['j', 'јϳ'],
    ['k', 'кκ'],
    ['l', 'ӏⅼǀ'],
    ['m', 'мṃ'],
    ['n', 'ոηп'],
    ['o', 'оοօσ'],
    ['p', 'рρ'],
    ['q', 'ԛգ'],
    ['r', 'гɾ'],
    ['s', 'ѕꜱ'],
    ['t', 'тτ'],
    ['u', 'υսʋ'],
    ['v', 'νѵ'],
    ['w', 'ԝω'],
    ['x', 'хχ'],
    ['y', 'уγү'],
    ['z', 'ᴢ'],
    ['/', '\u2044\u2215\u29f8\u2571\u3033\u27cb\u1735'],
    ['\\', '\u29f5\u2216\u29f9\u2572\u27cd\ufe68'],
    ['.', '\u2024\ua4f8\ua60e\u0701\u0702'],
  ].flatMap(([letter = '', others = '']) => [...others].map(other => [other, letter] as const)),
)

/** Resolves escapes in percent (also overlong ones) and of HTML, again and again. */
function unescaped(text: string): string {
  let now = text
  for (let round = 0; round < rounds; round++) {
    const next = now
      .replace(/%c0%(?:ae|2e)|%e0%80%ae/gi, '.')
      .replace(/%c0%(?:af|2f)|%e0%80%af/gi, '/')
      .replace(/(?:%[0-9a-f]{2})+/gi, decoded)
      .replace(/%u([0-9a-f]{4})|\\u([0-9a-f]{4})|&#x([0-9a-f]{1,6});?/gi, (_, a, b, c) => character(`0x${a ?? b ?? c}`))
      .replace(/&#(\d{1,7});?/g, (_, digits) => character(digits))
      .replace(/&(period|sol|bsol|percnt);/gi, (_, name: string) => named.get(name.toLowerCase()) ?? '')
    if (next === now) break
    now = next
  }
  return now
}

const named: ReadonlyMap<string, string> = new Map([
  ['period', '.'],
  ['sol', '/'],
  ['bsol', '\\'],
  ['percnt', '%'],
])

function decoded(escapes: string): string {
  try {
    return decodeURIComponent(escapes)
  } catch {
    return escapes.replace(/%([0-9a-f]{2})/gi, (_, digits) => character(`0x${digits}`))
  }
}

function character(code: string): string {
  const point = Number(code)
  return Number.isInteger(point) && point <= 0x10ffff ? String.fromCodePoint(point) : ''
}

/** Lower case, one form for one look, one kind of slash; what nobody sees is gone. */
function folded(text: string): string {
  const simple = text.normalize('NFKC').toLowerCase().normalize('NFKC')
  const seen = simple.replace(/[\p{Cc}\p{Cf}]/gu, '')
  let out = ''
  for (const letter of seen) out += likeness.get(letter) ?? letter
  return out.replaceAll('\\', '/').replace(/^file:\/\/(?:localhost)?(?=\/)/, '')
}

/** As a file system walks it: no empty segments, no dots, no streams, no blanks or dots at the end of a name. */
function clean(text: string): string {
  const [, root = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*|[a-z]:)?(.*)$/su.exec(text) ?? []
  const walked: string[] = []
  for (const segment of rest.split('/')) {
    if (segment === '..' || segment.startsWith('..;')) walked.pop()
    else if (segment !== '.' && segment !== '') walked.push(bareName(segment))
  }
  return `${root}${rest.startsWith('/') ? '/' : ''}${walked.join('/')}`
}

/** `x:stream` is a part of `x`, and `x. ` is `x`. */
function bareName(segment: string): string {
  const whole = segment.includes(':') ? segment.slice(0, segment.indexOf(':')) : segment
  return whole.trim().replace(/[. ]+$/, '') || segment
}
