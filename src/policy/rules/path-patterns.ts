/** Texts that may be paths or addresses, against patterns: with their detours and escapes, as whoever gets them may understand them. */
import { matches } from '../../core/scope.ts'

interface ReadAs {
  /** Stands before each reading. */
  readonly before?: string
  /** It is an address, whatever the pattern looks like. */
  readonly address?: boolean
}

const asItLooks: ReadAs = {}

/** In one of the ways in which whoever gets it may understand it. */
export function fitsAny(patterns: readonly string[], text: string, as = asItLooks): boolean {
  return patterns.some(pattern => readings(pattern, text, as).some(reading => matches(pattern, (as.before ?? '') + reading)))
}

/** In all of them: what lies in one folder as it is written, and in another one as it is meant, is in the other one. */
export function fitsAll(patterns: readonly string[], text: string, as = asItLooks): boolean {
  return patterns.some(pattern => readings(pattern, text, as).every(reading => matches(pattern, (as.before ?? '') + reading)))
}

/** An address, in all or in one of the ways in which its server may understand it. */
export function fitsAddress(patterns: readonly string[], address: string, all: boolean): boolean {
  return all ? fitsAll(patterns, address, asAddress) : fitsAny(patterns, address, asAddress)
}

const asAddress: ReadAs = { address: true }

/** How often what is escaped may be escaped once more. */
const mostEscapes = 3

/** A text, and where it is an address, or the pattern speaks of a path or of one, what becomes of its dots and escapes. */
function readings(pattern: string, text: string, { address }: ReadAs): readonly string[] {
  if ((address !== true && !/[/\\]/.test(pattern)) || !/[\\%]|\.\.|\/\.?\//.test(text)) return [text]
  const found = [text, straight(text)]
  let plain = text
  for (let i = 0; i < mostEscapes && plain.includes('%'); i++) {
    // One by one: what cannot be read whole is perhaps read so.
    plain = plain.replace(/%[0-9a-f]{2}/gi, code => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    found.push(plain, straight(plain))
  }
  return found
}

/** Without detours: `/a/./b//../c` is `/a/c`. */
function straight(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? ''
  const parts: string[] = []
  const rest = text.slice(scheme.length).split(/[/\\]/)
  for (const [at, part] of rest.entries()) {
    if (part === '.' || (part === '' && at > 0 && at < rest.length - 1)) continue
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') {
      // Above the root there is nothing.
      if (parts.length > 1 || parts[0] !== '') parts.pop()
    } else parts.push(part)
  }
  return scheme + parts.join('/')
}
