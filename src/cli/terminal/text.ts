/**
 * The one place through which words reach a terminal. A string is foreign: whatever in it a terminal would obey, or a reader could
 * not see, is written as an escape, and it stays on one line. Only a `Text` may hold colours and line ends, and only the functions
 * here make one. So a print that somebody forgot to think about is safe: it is a string.
 */
import { styleText } from 'node:util'

/** Not exported: who could call it could print anything. */
let make: (drawn: string) => TerminalText

/** Fit for a terminal as it is. */
export class TerminalText {
  readonly #drawn: string

  private constructor(drawn: string) {
    this.#drawn = drawn
  }

  toString(): string {
    return this.#drawn
  }

  static {
    make = drawn => new TerminalText(drawn)
  }
}

/** What can be printed: a string is foreign and is escaped. */
export type Words = string | number | TerminalText

/** Controls, format characters (direction, zero width, tags), separators of lines, halves of characters. */
const harmful = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
/** They join letters and signs of one word in some scripts, and reorder nothing. */
const joiners = /[\u200c\u200d]/

/** Foreign words on one line: nothing in them commands a terminal, turns the direction of writing, or ends the line. */
export function escaped(text: string): string {
  return text.replace(harmful, char => (joiners.test(char) ? char : escapeOf(char)))
}

/** The same, and also what only joins: for what somebody agrees to by reading it. */
export function fullyEscaped(text: string): string {
  return text.replace(harmful, escapeOf)
}

/** Escapes that people know. */
const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A character as an escape. */
function escapeOf(char: string): string {
  return short[char] ?? `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`
}

/** What a terminal gets: a TerminalText as it is, anything else escaped. */
export function drawn(words: Words): string {
  return words instanceof TerminalText ? words.toString() : escaped(String(words))
}

/** A line of ours around words of others: say`${paint.name(tool)} took ${ms} ms`. */
export function say(ours: TemplateStringsArray, ...theirs: readonly Words[]): TerminalText {
  return make(ours.map((part, at) => `${part}${at < theirs.length ? drawn(theirs[at] ?? '') : ''}`).join(''))
}

/** Several texts with something between them. */
export function joinedText(parts: readonly Words[], between: Words): TerminalText {
  return make(parts.map(drawn).join(drawn(between)))
}

/** How lines that somebody else wrote begin, so that none of them can pass for a line or a question of ours. */
export const foreignMark = '│ '

/** Several lines of others, each behind the mark. Without a mark only where no person reads it: in a pipe. */
export function foreignText(text: string, mark: string = foreignMark): TerminalText {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  return make(lines.map(line => `${mark}${line.split('\t').map(escaped).join('\t')}`).join('\n'))
}

/** JSON that is the same for programs, and harmless where it is shown on a terminal. */
export function harmlessJson(json: string): string {
  return json.replace(harmful, char => (char === '\n' ? char : jsonEscape(char)))
}

/** A character as JSON escapes it: one escape, or two where it is made of halves. */
export function jsonEscape(char: string): string {
  return char
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

/** Gives words a colour. */
type Brush = (words: Words) => TerminalText

/** Colours by what they mean. */
export interface Paint {
  readonly bold: Brush
  /** What is beside the point. */
  readonly dim: Brush
  readonly good: Brush
  readonly bad: Brush
  /** What deserves attention and is no failure. */
  readonly warn: Brush
  /** Servers, tools, commands. */
  readonly name: Brush
}

/** The colours; without them all words stay plain. */
export function painter(colours: boolean): Paint {
  const brush =
    (format: Parameters<typeof styleText>[0]): Brush =>
    words =>
      colours ? make(styleText(format, drawn(words), { validateStream: false })) : make(drawn(words))
  return {
    bold: brush('bold'),
    dim: brush('dim'),
    good: brush('green'),
    bad: brush('red'),
    warn: brush('yellow'),
    name: brush('cyan'),
  }
}

/** Whether somebody wants colours on this output (https://no-color.org: any value but an empty one). */
export function wantsColours(
  output: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return output.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}

/** On one line, and no longer than so. */
export function brief(text: string, length = 100): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`
}

// Commands that are suggested, so that they can be typed as they stand.

/** What lists one kind of a target's. A program stands last. */
export function listCommand(again: string, kind: string): string {
  return again.startsWith('-- ') ? `vivarium list ${kind} ${again}` : `vivarium list ${again} ${kind}`
}
