/** Writing results: JSON as one value, and for people lines whose foreign words cannot command a terminal. */
import { durationText } from '../core/clock.ts'
import type { Io } from './io.ts'
import { Screen } from './terminal/screen.ts'
import {
  brief,
  drawn,
  escaped,
  foreignMark,
  foreignText,
  harmlessJson,
  type Paint,
  painter,
  type TerminalText,
  type Words,
  wantsColours,
} from './terminal/text.ts'

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
    foreign: text => foreignText(text, mark),
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
  return foreignText(lines.join('\n'), mark)
}

export function widthOf({ output }: Io): number {
  return Math.min(120, Math.max(40, output.columns ?? 100))
}

/** In the largest unit that makes a number above 1. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

interface Step {
  readonly progress: number
  readonly total?: number
  readonly message?: string
  readonly remainingMs?: number
}

interface ProgressBar {
  show(step: Step): void
  /** Takes the bar away. */
  end(): void
}

const barWidth = 24
const clearLine = '\r\u001b[K'
/** Where it is no terminal. */
const linesEveryMs = 1_000

export function createProgress(
  { errors, env }: Pick<Io, 'errors' | 'env'>,
  now: () => number = () => performance.now(),
): ProgressBar {
  const drawn = errors.isTTY === true && env['TERM'] !== 'dumb'
  const paint = painter(wantsColours(errors, env))
  let shown = false
  let last = Number.NEGATIVE_INFINITY
  return {
    show(step) {
      const text = stepText(step)
      if (drawn) {
        errors.write(`${clearLine}${paint.dim(text.slice(0, Math.max(20, (errors.columns || 80) - 1)))}`)
        shown = true
      } else if (now() - last >= linesEveryMs) {
        last = now()
        errors.write(`${text}\n`)
      }
    },
    end() {
      if (shown) errors.write(clearLine)
      shown = false
    },
  }
}

/** Shows in a terminal what is waited for, until it is there or has failed. */
export async function whileWaiting<T>({ errors, env }: Pick<Io, 'errors' | 'env'>, label: string, work: Promise<T>): Promise<T> {
  const done = new Screen({ output: errors, env }).work(label)
  try {
    return await work
  } finally {
    done()
  }
}

function stepText({ progress, total, message, remainingMs }: Step): string {
  const share = total !== undefined && total > 0 ? Math.min(1, Math.max(0, progress / total)) : undefined
  const bar = share === undefined ? `${Number(progress.toFixed(2))}` : `${barOf(share)} ${Math.round(share * 100)} %`
  const left = remainingMs === undefined ? '' : ` · ${durationText(remainingMs)} left`
  return `${bar}${message === undefined ? '' : ` ${escaped(brief(message, 80))}`}${left}`
}

function barOf(share: number): string {
  const full = Math.round(share * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
}
