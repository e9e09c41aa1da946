/** Writing results: JSON as one value, and for people lines whose foreign words cannot command a terminal. */
import type { Io } from './io.ts'
import { type Paint, painter, wantsColours } from './terminal/paint.ts'
import { drawn, foreign, foreignMark, harmlessJson, type TerminalText, type Words } from './terminal/text.ts'

export interface Printer {
  readonly paint: Paint
  line(text?: Words): void
  /** Several lines that a server wrote: marked where a person reads them, as they are in a pipe. */
  foreign(text: string): TerminalText
  /** One JSON value, or one line of many where `compact`. */
  json(value: unknown, compact?: boolean): void
  /** Beside the result: on standard error. */
  readonly aside: { readonly paint: Paint; line(text: Words): void }
}

/** A line on standard error, for whoever has no printer. */
export function aside({ errors }: Pick<Io, 'errors'>, text: Words): void {
  errors.write(`${drawn(text)}\n`)
}

export function printerOf({ output, errors, colour, env }: Io): Printer {
  const mark = output.isTTY === true ? foreignMark : ''
  return {
    paint: painter(colour),
    line: (text = '') => void output.write(`${drawn(text)}\n`),
    foreign: text => foreign(text, mark),
    json: (value, compact = false) =>
      void output.write(`${harmlessJson(compact ? JSON.stringify(value) : JSON.stringify(value, null, 2))}\n`),
    aside: { paint: painter(wantsColours(errors, env)), line: text => aside({ errors }, text) },
  }
}

/** Lines of at most so many columns, broken between words, each behind the same mark. */
export function wrapped(text: string, width: number, mark: string): TerminalText {
  const room = Math.max(20, width - mark.length)
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let line = ''
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > room) {
        lines.push(line)
        line = word
      } else line = line === '' ? word : `${line} ${word}`
    }
    lines.push(line)
  }
  return foreign(lines.join('\n'), mark)
}

export function widthOf({ output }: Io): number {
  return Math.min(120, Math.max(40, output.columns ?? 100))
}

/** In the largest unit that makes a number above 1. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
