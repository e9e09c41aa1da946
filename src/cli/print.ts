/** Writing results: JSON as one value, and for people lines whose foreign words cannot command a terminal. */
import type { Io } from './io.ts'
import { type Paint, painter, wantsColours } from './terminal/paint.ts'

export interface Printer {
  readonly paint: Paint
  line(text?: string): void
  /** One JSON value, or one line of many where `compact`. */
  json(value: unknown, compact?: boolean): void
  /** Beside the result: on standard error. */
  readonly aside: { readonly paint: Paint; line(text: string): void }
}

export function printerOf({ output, errors, colour, env }: Io): Printer {
  return {
    paint: painter(colour),
    line: (text = '') => void output.write(`${text}\n`),
    json: (value, compact = false) =>
      void output.write(`${harmless(compact ? JSON.stringify(value) : JSON.stringify(value, null, 2))}\n`),
    aside: { paint: painter(wantsColours(errors, env)), line: text => void errors.write(`${text}\n`) },
  }
}

/** The same JSON, also for a terminal: what could command one, and JSON lets stand, is written as an escape. */
function harmless(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Lines of at most so many columns, broken between words and indented alike. */
export function wrapped(text: string, width: number, indent: string): string {
  const room = Math.max(20, width - indent.length)
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
  return lines.map(line => `${indent}${line}`).join('\n')
}

export function widthOf({ output }: Io): number {
  return Math.min(120, Math.max(40, output.columns ?? 100))
}

/** In the largest unit that makes a number above 1. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
